"""The scales of a given set of columns."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from privasso._validation import LARGEST, SMALLEST, real_array
from privasso.scales._law import FloatArray, ScaleLaw


@dataclass(frozen=True, eq=False, repr=False, init=False)
class Empirical(ScaleLaw):
    """s equal to each of the given values with the same probability.

    Two such laws are equal when they hold the same values, in whatever order they were given.

    Parameters
    ----------
    values : array_like
        Scales s > 0 (not their squares), one per column. They are copied, sorted and kept
        read-only in the attribute of the same name.

    Examples
    --------
    >>> from privasso import Empirical
    >>> law = Empirical([3.0, 1.0, 2.0])
    >>> law
    Empirical(<3 values from 1 to 3>)
    >>> law.quantile([0.0, 0.5])
    array([1., 2.])
    >>> law == Empirical([1.0, 2.0, 3.0])
    True
    """

    values: FloatArray

    def __init__(self, values: ArrayLike) -> None:
        array = np.sort(real_array("values", values, ndim=1))
        if array[0] <= 0.0:
            raise ValueError(
                "values must be positive scales; drop the columns that are zero everywhere"
            )
        if array[0] < SMALLEST or array[-1] > LARGEST:
            raise ValueError(
                f"values must lie in {SMALLEST:g}...{LARGEST:g}, where their squares keep full "
                "precision; change the units"
            )
        array.flags.writeable = False
        object.__setattr__(self, "values", array)

    def __repr__(self) -> str:
        low, high = self.values[0], self.values[-1]
        return f"Empirical(<{self.values.size} values from {low:g} to {high:g}>)"

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, Empirical):
            return NotImplemented
        return np.array_equal(self.values, other.values)

    def __hash__(self) -> int:
        return hash((Empirical, self.values.tobytes()))

    def __reduce__(self) -> tuple[Any, ...]:
        # Through the constructor, since a copied or unpickled array would be writable again.
        return Empirical, (self.values,)

    @property
    def inverse_mean_is_finite(self) -> bool:
        """Always true: the values are finitely many and none is zero."""
        return True

    def _quantile(self, p: FloatArray) -> FloatArray:
        n = self.values.size
        # Compared with the steps of the distribution function as floats: rounding p·n up would
        # skip a value whenever the product lands just above an integer.
        return self.values[np.searchsorted(np.arange(1, n + 1) / n, p, side="left")]

    def _quadrature(self, n: int) -> tuple[FloatArray, FloatArray]:
        size = self.values.size
        return self.values**2, np.full(size, 1.0 / size)

    def _moment(self, k: float) -> float:
        with np.errstate(over="ignore"):
            return float(np.mean(self.values ** (2.0 * k)))
