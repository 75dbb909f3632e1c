"""What a fit can be expected to reach, and what would help it."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from privasso.forecast._assumptions import Assumptions
from privasso.forecast._scheme import Scheme
from privasso.forecast._simulate import Simulated, affordable, simulate
from privasso.forecast._simulated_release import SimulatedReleases

#: Factors of ε and of the number of rows that are tried.
_EPSILONS, _GROWTH = (2.0, 3.0), 4.0
#: Columns from which on it is of interest to leave half of them out.
_MANY_COLUMNS = 8
#: Simulated fits for each line: a number that makes quantiles stable to a few hundredths, and the
#: smallest that still says something. With very many columns there is time for one line only.
_MOST, _ENOUGH, _FEWEST, _LINES = 100, 24, 12, 5


@dataclass(frozen=True, eq=False)
class Change:
    """Something that would be different, and the fits that would come of it.

    Attributes
    ----------
    name : str
        A short name: "epsilon", "rows" or "columns".
    value : float
        ε, the number of rows or the number of columns.
    words : str
        The change in words.
    outcome : Simulated
        R² of simulated fits.
    """

    name: str
    value: float
    words: str
    outcome: Simulated


@dataclass(frozen=True, eq=False)
class Forecast:
    """R² on new rows to be expected of a fit, from simulated fits on the same covariates.

    Attributes
    ----------
    assumptions : Assumptions
        About labels and coefficients.
    outcome : Simulated
        R² of fits as planned.
    changes : tuple of Change
        R² of fits with more privacy loss, more rows or fewer columns.
    on : str
        What the fits are simulated on.
    also : str
        What is assumed besides, about covariates.
    effect_error : ndarray of shape (N,) or None
        Root mean square error, in the fits as planned, of a coefficient times the range of its
        column; None where it is not computed.
    """

    assumptions: Assumptions
    outcome: Simulated
    changes: tuple[Change, ...]
    on: str = "these covariates"
    also: str = ""
    effect_error: np.ndarray | None = None

    def in_words(self) -> str:
        """Say what is assumed."""
        return f"{self.assumptions.in_words()} {self.also}".rstrip()

    @property
    def fits(self) -> int:
        """Number of simulated fits for each line."""
        return int(self.outcome.r2.size)

    def lines(self) -> list[tuple[str, str, str, str]]:
        """A table: what is fitted, the median, the middle 80 %, and how many are above 0."""
        named = [("as planned", self.outcome), *((one.words, one.outcome) for one in self.changes)]
        return [
            (
                words,
                f"{found.median:.2f}",
                f"{found.interval[0]:.2f} to {found.interval[1]:.2f}",
                f"{100.0 * found.positive:.0f} %",
            )
            for words, found in named
        ]

    def to_dict(self) -> dict[str, Any]:
        """The numbers in a form for JSON; None stands for fits that find no model."""
        return {
            "fits": self.fits,
            **_numbers(self.outcome),
            "changes": [
                {"what": one.name, "value": one.value, **_numbers(one.outcome)}
                for one in self.changes
            ],
        }


def _numbers(found: Simulated) -> dict[str, float | None]:
    low, high = found.interval
    r2 = {"median": found.median, "low": low, "high": high}
    known = {name: value if math.isfinite(value) else None for name, value in r2.items()}
    return {**known, "above_zero": found.positive}


def forecast(
    scheme: Scheme,
    suppose: Assumptions,
    *,
    fits: int | None = None,
    progress: Callable[[int, int], None] | None = None,
) -> Forecast:
    """Simulate fits on these covariates, as planned and with changes; no label is read.

    The outcome is the same each time: the generator has a fixed seed.

    Parameters
    ----------
    scheme : Scheme
        The fit; one that is not `unavailable`.
    suppose : Assumptions
        What the truths are drawn from.
    fits : int, optional
        Simulated fits for each line; by default as many as take some seconds. With very many
        columns these are for the fit as planned only, and changes are left out.
    progress : callable, optional
        Called with the number of lines that are done and of all lines.
    """
    if scheme.unavailable is not None:
        raise ValueError(scheme.unavailable)
    privacy, rows = scheme.privacy, scheme.rows
    suppose.check_width(privacy.width)
    planned, time = SimulatedReleases.of(scheme), affordable(int(rows.live.sum()))
    if fits is None and time < _ENOUGH * _LINES:
        fits = min(_ENOUGH, max(_FEWEST, time))
        return Forecast(suppose, simulate(planned, scheme, suppose, fits=fits), ())
    fits = min(_MOST, time // _LINES) if fits is None else fits
    tell = progress or (lambda done, total: None)
    changes = []
    for done, factor in enumerate(_EPSILONS):
        tell(done, _LINES)
        changed = planned.with_epsilon(factor)
        epsilon = changed.scheme.privacy.epsilon
        outcome = simulate(changed, scheme, suppose, fits=fits)
        words = f"ε = {epsilon:g} instead of {privacy.epsilon:g}"
        changes.append(Change("epsilon", epsilon, words, outcome))
    m = rows.shape[0]
    tell(len(changes), _LINES)
    outcome = simulate(planned, scheme, suppose, fits=fits, growth=_GROWTH)
    more = round(_GROWTH * m)
    changes.append(Change("rows", more, f"{more} rows instead of {m}", outcome))
    tell(len(changes), _LINES)
    half = _half_of_the_columns(scheme, suppose, fits)
    tell(_LINES - 1, _LINES)
    return Forecast(
        suppose,
        simulate(planned, scheme, suppose, fits=fits),
        (*changes, half) if half is not None else tuple(changes),
    )


def _half_of_the_columns(scheme: Scheme, suppose: Assumptions, fits: int) -> Change | None:
    """Every second column, when those left out have coefficients of zero."""
    live = np.flatnonzero(scheme.rows.live)
    if live.size < _MANY_COLUMNS or scheme.noise is None:
        return None
    fewer = scheme.on_columns(live[::2])
    denser = replace(suppose, rho=min(1.0, suppose.rho * live.size / live[::2].size))
    outcome = simulate(SimulatedReleases.of(fewer), fewer, denser, fits=fits)
    words = f"{live[::2].size} columns instead of {live.size}, if the others say nothing"
    return Change("columns", float(live[::2].size), words, outcome)
