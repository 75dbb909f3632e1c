"""Noise of the best covariance for the rows at hand."""

from __future__ import annotations

from dataclasses import dataclass, replace

from privasso._validation import nonnegative_float, real_float, squarable


@dataclass(frozen=True)
class Shaped:
    """Noise whose covariance, not only its variances, is fitted to public covariates.

    Unlike a `NoiseDesign` it is no function of the scales of single columns: the covariance that
    adds the least noise at a given privacy depends on all rows together, see `optimal_shape`. Rows
    that are large in units of the noise would set its level for all others, so they are shrunk
    together with their labels.

    Parameters
    ----------
    sigma : float
        Root of the mean variance over the columns; privacy sets it.
    shrink : float
        Part of the rows, the largest ones, that are shrunk to the size of the largest of the
        others; 0 shrinks none.

    Examples
    --------
    >>> from privasso import Shaped
    >>> Shaped(shrink=0.5).in_words()
    'shaped by the covariates, the longest 50 % of the rows shrunk'
    """

    sigma: float = 1.0
    shrink: float = 0.75

    def __post_init__(self) -> None:
        object.__setattr__(
            self, "sigma", squarable("sigma", nonnegative_float("sigma", self.sigma))
        )
        object.__setattr__(self, "shrink", real_float("shrink", self.shrink))
        if not 0.0 <= self.shrink < 1.0:
            raise ValueError(
                f"shrink is a part of the rows, at least 0 and below 1, not {self.shrink}"
            )

    def in_words(self) -> str:
        """Say what the noise is like."""
        words = "shaped by the covariates"
        if self.shrink == 0.0:
            return words
        return f"{words}, the longest {100.0 * self.shrink:.3g} % of the rows shrunk"

    def with_sigma(self, sigma: float) -> Shaped:
        """Return the same noise at another level."""
        return replace(self, sigma=sigma)
