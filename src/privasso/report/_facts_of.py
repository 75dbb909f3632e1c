"""The facts about what any fit has published."""

from __future__ import annotations

from dataclasses import replace

from privasso.encoding import Dictionary
from privasso.fit import (
    CoefficientPath,
    KeptStatistics,
    Outcome,
    Plan,
    RecordPlan,
    Released,
    ReleasedModel,
    ScreenedLabelPlan,
)
from privasso.forecast import Assumptions, Forecast
from privasso.report._facts import FitFacts, fit_facts
from privasso.report._outlook import screened_facts
from privasso.report._record_facts import record_facts, statistics_facts


def facts_of(
    made: Outcome,
    model: ReleasedModel,
    plan: Plan | None = None,
    dictionary: Dictionary | None = None,
    *,
    command: str,
    target: str | None = None,
    path: CoefficientPath | None = None,
    assumptions: Assumptions | None = None,
    forecast: Forecast | None = None,
    given_lam: float | None = None,
    resolve: str | None = None,
) -> FitFacts:
    """Collect what may be shown of a fit, or of a model from a kept release, which has no plan.

    `dictionary` describes the columns of private records, and `forecast` is about them. The other
    arguments are those of `fit_facts`.
    """
    if isinstance(made, Released):
        return fit_facts(
            made,
            model,
            command=command,
            path=path,
            assumptions=assumptions,
            given_lam=given_lam,
            resolve=resolve,
        )
    statistics = made if isinstance(made, KeptStatistics) else None
    named = target or "the labels"
    if isinstance(plan, ScreenedLabelPlan):
        facts = screened_facts(model, plan, command=command, target=named)
    elif isinstance(plan, RecordPlan):
        facts = record_facts(
            model,
            plan,
            dictionary,
            command=command,
            target=named,
            forecast=forecast,
            statistics=statistics,
        )
    else:
        assert statistics is not None
        facts = statistics_facts(model, statistics, command=command)
    return replace(facts, path=path, resolve=resolve)
