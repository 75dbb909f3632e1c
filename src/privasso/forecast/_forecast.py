"""What a fit can be expected to reach, and what would help it."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, replace

import numpy as np

from privasso.encoding import Dictionary
from privasso.fit import Plan
from privasso.forecast._population import Assumptions, Simulated
from privasso.forecast._records import RecordScheme
from privasso.forecast._scheme import Scheme
from privasso.forecast._state_evolution import Prediction, predictions

#: Factors of ε and of the number of rows that are tried.
_EPSILONS, _GROWTH = (2.0, 3.0), 2.0
#: Most lines of a forecast.
_LINES = 7


@dataclass(frozen=True, eq=False)
class Change:
    """Something that would be different, and the fits that would come of it.

    Attributes
    ----------
    name : str
        A short name: "no privacy", "epsilon", "rows", "label bounds" or "columns".
    value : float or None
        ε, the number of rows, the distance between the bounds, or the number of columns.
    words : str
        The change in words.
    outcome : Simulated
        R² of simulated fits.
    """

    name: str
    value: float | None
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
    """

    assumptions: Assumptions
    outcome: Simulated
    changes: tuple[Change, ...]
    on: str = "these covariates"
    also: str = ""

    @property
    def effect_error(self) -> np.ndarray | None:
        """That of the fits as planned, see `Simulated`."""
        return self.outcome.effect_error

    def in_words(self) -> str:
        """Say what is assumed."""
        return f"{self.assumptions.in_words()} {self.also}".rstrip()

    @property
    def fits(self) -> int:
        """Number of simulated fits for each line."""
        return int(self.outcome.r2.size)

    def lines(self) -> list[tuple[str, str, str, str, str]]:
        """A table: what is fitted, the median, the middle 80 %, and how many are above 0.

        The last entry is the part of the R² without privacy that is kept, of the same truths.
        """
        best = next((one.outcome for one in self.changes if one.name == "no privacy"), None)
        named = [("as planned", self.outcome), *((one.words, one.outcome) for one in self.changes)]
        return [
            (
                words,
                f"{found.median:.2f}",
                f"{found.interval[0]:.2f} to {found.interval[1]:.2f}",
                f"{100.0 * found.positive:.0f} %",
                "" if best is None else f"{100.0 * found.part_of(best):.0f} %",
            )
            for words, found in named
        ]

    def to_dict(self) -> dict[str, object]:
        """The numbers in a form for JSON; None stands for fits that find no model."""
        best = next((one.outcome for one in self.changes if one.name == "no privacy"), None)
        return {
            "fits": self.fits,
            "kept": None if best is None else self.outcome.part_of(best),
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
    scheme: Scheme | RecordScheme,
    suppose: Assumptions,
    *,
    epsilon: float | None = None,
    bounds_are_found: bool = False,
    fits: int | None = None,
    progress: Callable[[int, int], None] | None = None,
) -> Forecast:
    """Simulate fits, as planned and with changes; no private data are read.

    The outcome is the same each time: the generator has a fixed seed.

    Parameters
    ----------
    scheme : Scheme or RecordScheme
        The fit, one that is not `unavailable`: of labels on public covariates, whose releases have
        a law that is known, or of whole records, whose program runs on simulated rows.
    suppose : Assumptions
        What the truths are drawn from.
    epsilon : float, optional
        ε of everything that is released, if the fit has only a part of it. It is supposed that the
        part of the fit grows like the whole.
    bounds_are_found : bool
        Whether the bounds of the labels are found in them, so that others cannot be given.
    fits : int, optional
        Simulated fits for each line; by default as many as take some seconds. With very many
        columns these are for the fit as planned only, and changes are left out.
    progress : callable, optional
        Called with the number of lines that are done and of all lines.
    """
    if scheme.unavailable is not None:
        raise ValueError(scheme.unavailable)
    (own, width), (m, n), half = scheme.budget, scheme.size, scheme.half()
    whole = own if epsilon is None else epsilon
    suppose.check_width(width)
    changes: list[tuple[str, float | None, str, Scheme | RecordScheme, Assumptions]] = []
    changes.append(("no privacy", None, "without privacy", scheme.free(), suppose))
    for factor in _EPSILONS:
        words = f"ε = {factor * whole:.3g} instead of {whole:.3g}"
        changed = scheme.with_epsilon(factor)
        changes.append(("epsilon", factor * whole, words, changed, suppose))
    more = round(_GROWTH * m)
    words = f"{more} rows instead of {m}"
    changes.append(("rows", more, words, scheme.grown(_GROWTH), suppose))
    narrowed = None if bounds_are_found else scheme.narrowed()
    if narrowed is not None and suppose.label_sd <= 0.25 * width:
        words = "bounds of the labels half as wide, around the same middle"
        changes.append(("label bounds", 0.5 * width, words, narrowed, suppose))
    if half is not None:
        few = half.size[1]
        denser = replace(suppose, rho=min(1.0, suppose.rho * n / few))
        words = f"{few} columns instead of {n}, if the others say nothing"
        changes.append(("columns", float(few), words, half, denser))
    if fits is None:
        fits, several = scheme.affordable(_LINES)
        changes = changes if several else []
    tell, done = progress or (lambda done, total: None), []
    for name, value, words, changed, among in changes:
        tell(len(done), len(changes) + 1)
        done.append(Change(name, value, words, changed.simulate(among, fits)))
    tell(len(done), len(changes) + 1)
    outcome = scheme.simulate(suppose, fits)
    return Forecast(suppose, outcome, tuple(done), scheme.on, scheme.also)


def unavailable(plan: Plan, dictionary: Dictionary | None = None) -> str | None:
    """Why fits by a plan are not simulated, or None; records need a data dictionary."""
    if plan.outlook is not None:
        return "fits of chosen columns are not simulated; see the chances above"
    if not plan.options.privacy.formal:
        return "the noise does not follow the scales of the columns at hand"
    classes = plan.options.classes is not None and plan.covariates is None
    if not (plan.options.loss.about_mean or classes):
        return f"fits of {plan.options.loss.about} are not simulated"
    return _scheme(plan, dictionary).unavailable


def forecast_of(
    plan: Plan,
    suppose: Assumptions,
    dictionary: Dictionary | None = None,
    *,
    progress: Callable[[int, int], None] | None = None,
) -> Forecast:
    """Simulate fits by a plan, which must be available: on its covariates, or from public numbers.

    `progress` is called with what is done and with all that there is to do.
    """
    return forecast(
        _scheme(plan, dictionary),
        suppose,
        epsilon=plan.guarantee["epsilon"],
        bounds_are_found=plan.range is not None,
        progress=progress,
    )


def predictions_of(plan: Plan, suppose: Assumptions) -> tuple[Prediction, ...]:
    """State evolution, where covariates are not public and fits on them may not be simulated.

    It assumes that the noise follows the scales of the columns at hand.
    """
    privacy = plan.options.privacy
    rows = plan.covariates
    if rows is None or privacy.formal or plan.options.scales is not None:
        return ()
    return predictions(rows, privacy, plan.noise, suppose, plan.options.fixed_lam)


def _scheme(plan: Plan, dictionary: Dictionary | None) -> Scheme | RecordScheme:
    if plan.covariates is not None:
        return Scheme.of_plan(plan, plan.options.fixed_lam)
    assert dictionary is not None
    return RecordScheme.of(plan, dictionary)
