"""The older keywords of `optimal_design`, each of which stands for a target."""

from __future__ import annotations

from typing import Any

from privasso._validation import positive_float, probability
from privasso.design._budget import ALONE, Budget, check_mechanism
from privasso.design._limits import MaxAdvantage, MaxError, MaxLeakage
from privasso.design._target import Target
from privasso.privacy import FormalBudget

_LIMITS = {
    "max_onavekl": (positive_float, MaxLeakage),
    "max_advantage": (probability, MaxAdvantage),
    "max_error": (positive_float, MaxError),
}


def target_of(
    *,
    label_dp: Any = None,
    record_dp: Any = None,
    mechanism: Any = None,
    screen: Any = None,
    **limits: float | None,
) -> Target[Any]:
    """Return the one target that the keywords describe."""
    if unknown := limits.keys() - _LIMITS.keys():
        raise TypeError(f"optimal_design has no argument {unknown.pop()!r}")
    given = {name: value for name, value in limits.items() if value is not None}
    check_mechanism(mechanism)
    if screen is not None or record_dp is not None or mechanism == "objective":
        if given:
            raise ValueError(ALONE)
        if screen is None:
            return Budget(objective_budget(label_dp, record_dp), mechanism or "objective")
        if (label_dp is None) == (record_dp is None):
            raise ValueError(
                "screen needs one budget: label_dp=LabelDP(...) or record_dp=RecordBudget(...)"
            )
        return Budget(label_dp if record_dp is None else record_dp, mechanism, screen)
    if mechanism is not None and label_dp is None:
        raise ValueError("mechanism goes with a budget, label_dp or record_dp; leave it out")
    if (count := len(given) + (label_dp is not None)) != 1:
        raise ValueError(
            "give exactly one of max_onavekl, max_advantage, max_error and label_dp: "
            f"{count or 'none'} of them {'were' if count > 1 else 'was'} given"
        )
    for name, value in given.items():
        check, target = _LIMITS[name]
        return target(check(name, value))
    if not isinstance(label_dp, FormalBudget) or label_dp.pair.unit != "label":
        raise ValueError("label_dp must be LabelDP(epsilon, delta, y_bounds)")
    return Budget(label_dp)


def objective_budget(label_dp: object, record_dp: object) -> FormalBudget:
    """Return the one budget that was given, for labels or for records."""
    if (label_dp is None) == (record_dp is None):
        raise ValueError("mechanism='objective' needs a budget: give label_dp or record_dp")
    name, budget = ("label_dp", label_dp) if record_dp is None else ("record_dp", record_dp)
    if isinstance(budget, FormalBudget) and (budget.pair.unit == "label") == (record_dp is None):
        return budget
    wanted = (
        "LabelDP(epsilon, delta, y_bounds)" if record_dp is None else "RecordBudget(epsilon, delta)"
    )
    raise ValueError(f"{name} must be a budget such as {wanted}, not {budget!r}")
