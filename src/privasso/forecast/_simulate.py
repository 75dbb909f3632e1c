"""The distribution of R² over simulated fits."""

from __future__ import annotations

import math
from dataclasses import dataclass, field, replace
from typing import Protocol

import numpy as np

from privasso.forecast._assumptions import Assumptions
from privasso.forecast._population import Estimate, Population, Truth
from privasso.forecast._scheme import Scheme

#: Simulated fits for which there is time with few columns; see `affordable`.
_AT_ALL = 2500
#: Tables of rows drawn with replacement that the fits share.
_TABLES = 12
#: With more rows per column than this, another table of the same law has practically the same
#: moments, and the rows themselves are used.
_MANY_ROWS = 50


class Fits(Protocol):
    """Fits on one table of covariates: what a mechanism does there to labels."""

    def outcome(self, truth: Truth, rng: np.random.Generator) -> Estimate | None:
        """Simulate one outcome; None if there is none."""
        ...


class Mechanism(Protocol):
    """What a mechanism supplies, so that its fits can be simulated."""

    def on(self, counts: np.ndarray | float) -> Fits:
        """Fits on a table in which each row occurs that often."""
        ...


@dataclass(frozen=True, eq=False)
class Simulated:
    """R² on new rows of simulated fits; −∞ where a fit found no model."""

    r2: np.ndarray = field(repr=False)

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


def simulate(
    mechanism: Mechanism,
    scheme: Scheme,
    suppose: Assumptions,
    *,
    fits: int,
    growth: float = 1.0,
    seed: int = 0,
) -> Simulated:
    """Simulate fits with truths that are drawn anew for each.

    The rows of a simulated table are drawn with replacement from those at hand, and R² is that on
    the rows at hand, so that a model meets rows that it was not fitted to. With the same seed,
    two simulations have the same truths and comparable noise.

    Parameters
    ----------
    mechanism : Mechanism
        What is done to labels.
    scheme : Scheme
        Rows and label bounds.
    suppose : Assumptions
        What truths are drawn from.
    fits : int
        Number of fits.
    growth : float
        Rows of a simulated table, relative to those at hand.
    seed : int
        Of the generator.
    """
    rows, privacy = scheme.rows, scheme.privacy
    population = Population(rows)
    suppose = replace(suppose, label_sd=suppose.label_sd / privacy.unit)
    half_width = 0.5 * privacy.width / privacy.unit
    m, n = rows.shape[0], int(rows.live.sum())
    tables = 1 if m >= _MANY_ROWS * n else min(_TABLES, fits)
    found: list[float] = []
    for number, own in enumerate(np.random.default_rng(seed).spawn(tables)):
        for_rows, rng = own.spawn(2)
        if tables == 1:
            table = mechanism.on(growth)
        else:
            drawn = for_rows.multinomial(round(growth * m), np.full(m, 1.0 / m))
            table = mechanism.on(drawn.astype(np.float64))
        for _ in range(fits // tables + (number < fits % tables)):
            truth = population.draw(suppose, half_width, rng)
            estimate = table.outcome(truth, rng)
            found.append(-math.inf if estimate is None else population.r2(truth, estimate))
    return Simulated(np.array(found))


def affordable(columns: int) -> int:
    """How many fits can be simulated in about ten seconds with that many columns.

    The number depends on nothing else, so that a forecast does not depend on the computer.

    >>> affordable(10), affordable(2000)
    (2475, 2)
    """
    return int(_AT_ALL / (1.0 + (columns / 100.0) ** 2 + (columns / 250.0) ** 3))
