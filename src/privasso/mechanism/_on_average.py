"""Privacy on average: noise of a given level, and no worst-case claim."""

from __future__ import annotations

from dataclasses import dataclass

from privasso._validation import nonnegative_float, squarable


@dataclass(frozen=True)
class OnAverage:
    """Objective perturbation of level σ; what it protects holds on average under a model.

    The noise vector η has variances σ_η²(v_i) that follow the noise design and average to σ².
    Nothing is promised to any one person; see `state_evolution` for what an average record
    gives away.

    Parameters
    ----------
    sigma : float
        Root of the mean noise variance, in units of Fᵀy. Zero adds no noise.

    Examples
    --------
    >>> from privasso import OnAverage
    >>> OnAverage(sigma=0.1)
    OnAverage(sigma=0.1)
    """

    sigma: float

    def __post_init__(self) -> None:
        object.__setattr__(
            self, "sigma", squarable("sigma", nonnegative_float("sigma", self.sigma))
        )
