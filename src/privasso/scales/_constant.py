"""All columns on one scale."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from privasso._validation import positive_float, squarable
from privasso.scales._law import FloatArray, ScaleLaw


@dataclass(frozen=True)
class Constant(ScaleLaw):
    """s = value for every column: the homogeneous case.

    Parameters
    ----------
    value : float
        The common scale, above zero.

    Examples
    --------
    >>> from privasso import Constant
    >>> Constant(2.0).quadrature(100)
    (array([4.]), array([1.]))
    """

    value: float = 1.0

    def __post_init__(self) -> None:
        value = squarable("value", positive_float("value", self.value))
        object.__setattr__(self, "value", value)

    @property
    def inverse_mean_is_finite(self) -> bool:
        """Always true: E[1/v] = value**-2."""
        return True

    def _quantile(self, p: FloatArray) -> FloatArray:
        return np.full(p.shape, self.value)

    def _quadrature(self, n: int) -> tuple[FloatArray, FloatArray]:
        return np.array([self.value * self.value]), np.array([1.0])

    def _moment(self, k: float) -> float:
        return self.value ** (2.0 * k)
