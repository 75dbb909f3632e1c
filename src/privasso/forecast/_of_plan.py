"""The forecast of any plan, or the reason why there is none."""

from __future__ import annotations

from collections.abc import Callable

from privasso.encoding import Dictionary
from privasso.fit import Plan
from privasso.forecast._assumptions import Assumptions
from privasso.forecast._forecast import Forecast, forecast
from privasso.forecast._records import RecordScheme
from privasso.forecast._scheme import Scheme
from privasso.forecast._state_evolution import Prediction, predictions


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
    return forecast(_scheme(plan, dictionary), suppose, progress=progress)


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
