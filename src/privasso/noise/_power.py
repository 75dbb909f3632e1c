"""Variances that follow a power of the squared scale."""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np

from privasso._validation import real_float
from privasso.noise._design import FloatArray, NoiseDesign


@dataclass(frozen=True)
class PowerLaw(NoiseDesign):
    """σ_η²(v) = σ² v**γ / mean(v**γ).

    γ = 0 treats all columns alike and γ = 2 is the Gram-based design; values in between are
    often better than both.

    Parameters
    ----------
    sigma : float
        Root of the mean variance, zero or more.
    gamma : float
        Exponent of v = s². A negative one needs every v above zero.

    Examples
    --------
    >>> from privasso import PowerLaw
    >>> PowerLaw(sigma=1.0, gamma=1.0).variances([1.0, 3.0])
    array([0.5, 1.5])
    """

    gamma: float

    def __post_init__(self) -> None:
        super().__post_init__()
        object.__setattr__(self, "gamma", real_float("gamma", self.gamma))

    def in_words(self) -> str:
        """Name the power of v."""
        return "the same on all columns" if self.gamma == 0.0 else f"variance ∝ v^{self.gamma:g}"

    def log_profile(self, v: FloatArray) -> FloatArray:
        """Return γ log v."""
        if self.gamma == 0.0:
            return np.zeros_like(v)  # also where v = 0
        if self.gamma < 0.0 and np.min(v) == 0.0:
            raise ValueError(
                f"v has a zero, which gamma={self.gamma!r} < 0 would give infinite variance; "
                "drop the zero columns or choose gamma >= 0"
            )
        with np.errstate(divide="ignore"):
            return self.gamma * np.log(v)


@dataclass(frozen=True)
class Isotropic(PowerLaw):
    """The same variance σ² on every column, whatever its scale.

    Parameters
    ----------
    sigma : float
        Standard deviation, zero or more.

    Examples
    --------
    >>> from privasso import Isotropic
    >>> Isotropic(2.0).variances([0.0, 1.0, 100.0])
    array([4., 4., 4.])
    """

    gamma: float = field(default=0.0, init=False, repr=False)


@dataclass(frozen=True)
class Gram(PowerLaw):
    """σ_η²(v) = σ² v² / mean(v²): the Gram-based design.

    The noise enters the estimate multiplied by the inverse Gram matrix, whose diagonal is
    proportional to 1/v. A deviation proportional to v cancels that factor, so every coefficient
    receives noise of the same size.

    Parameters
    ----------
    sigma : float
        Root of the mean variance, zero or more.

    Examples
    --------
    >>> from privasso import Gram
    >>> Gram(1.0).variances([1.0, 1.0, 2.0])
    array([0.5, 0.5, 2. ])
    """

    gamma: float = field(default=2.0, init=False, repr=False)
