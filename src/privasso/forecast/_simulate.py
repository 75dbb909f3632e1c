"""A fit that can be simulated, and the distribution of R² over simulated fits."""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass, field
from typing import Self

import numpy as np

from privasso.forecast._assumptions import Assumptions


@dataclass(frozen=True, eq=False)
class Simulated:
    """R² on new rows of simulated fits; −∞ where a fit found no model.

    `effect_error` (N,): root mean square error of a coefficient times the range of its column;
    None where it is not computed.
    """

    r2: np.ndarray = field(repr=False)
    effect_error: np.ndarray | None = field(default=None, repr=False)

    @property
    def median(self) -> float:
        """The R² that half of the fits reach."""
        return float(np.quantile(self.r2, 0.5, method="inverted_cdf"))

    @property
    def interval(self) -> tuple[float, float]:
        """The middle 80 %: one fit of ten is below, and one above."""
        low, high = np.quantile(self.r2, [0.1, 0.9], method="inverted_cdf")
        return float(low), float(high)

    @property
    def positive(self) -> float:
        """Share of the fits that predict better than the mean label."""
        return float(np.mean(self.r2 > 0.0))


class Simulation(ABC):
    """A fit as a forecast sees it: all that is known without private data.

    Attributes
    ----------
    on : str
        What fits are simulated on.
    also : str
        What is assumed besides, about covariates.
    """

    also = ""

    @property
    @abstractmethod
    def on(self) -> str:
        """What fits are simulated on, in words."""

    @property
    @abstractmethod
    def unavailable(self) -> str | None:
        """Why fits of this kind cannot be simulated, or None."""

    @property
    @abstractmethod
    def budget(self) -> tuple[float, float]:
        """ε, and the distance between the bounds of the labels."""

    @property
    @abstractmethod
    def size(self) -> tuple[int, int]:
        """Numbers of rows, and of columns that carry data."""

    @abstractmethod
    def affordable(self, lines: int) -> tuple[int, bool]:
        """Number of fits for each of so many lines, and whether there is time for more than one."""

    @abstractmethod
    def with_epsilon(self, factor: float) -> Self:
        """The same fit with ε times `factor`."""

    @abstractmethod
    def grown(self, factor: float) -> Self:
        """The same fit of so many times as many rows."""

    @abstractmethod
    def half(self) -> Self | None:
        """The same fit of every second column; None where it is not of interest."""

    @abstractmethod
    def simulate(self, suppose: Assumptions, fits: int, seed: int = 0) -> Simulated:
        """Simulate fits with truths that are drawn anew for each; no private data are read.

        With the same seed, two simulations have the same truths and comparable noise.
        """
