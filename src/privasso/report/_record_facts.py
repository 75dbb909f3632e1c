"""The facts about a fit of whole records that a report may show."""

from __future__ import annotations

import numpy as np

from privasso.encoding import Dictionary
from privasso.fit import KeptStatistics, RecordPlan, ReleasedModel
from privasso.forecast import Forecast
from privasso.report._facts import FitFacts
from privasso.report._record_mechanism import RecordMechanism


def record_facts(
    model: ReleasedModel,
    plan: RecordPlan,
    dictionary: Dictionary | None,
    *,
    command: str,
    target: str,
    forecast: Forecast | None = None,
    statistics: KeptStatistics | None = None,
) -> FitFacts:
    """Collect what may be shown: the model, and what was public before the data were read.

    Ranges that were found with noise are shown where they are released, as with `statistics`.
    """
    privacy, bounds = plan.options.privacy, None if dictionary is None else dictionary.bounds
    ranges = None
    if bounds is not None:
        ranges = np.array([high - low for low, high in bounds.values()])
    elif statistics is not None:
        ranges = _ranges(statistics)
    return FitFacts(
        model=model,
        target=target,
        n_rows=int(plan.guarantee["n_rows"]),
        command=command,
        composition=privacy.composition(None),
        label_width=privacy.label_width,
        coef_noise=model.coef_se,
        forecast=forecast,
        mechanism=RecordMechanism.of(plan),
        ranges=ranges,
        outlook=plan.outlook,
        records=privacy.protects_records,
        effect_error=None if forecast is None else forecast.effect_error,
    )


def statistics_facts(model: ReleasedModel, kept: KeptStatistics, *, command: str) -> FitFacts:
    """Collect what may be shown of a model from kept statistics, which the guarantee covers."""
    return FitFacts(
        model=model,
        target=kept.target or "the labels",
        n_rows=kept.n_rows,
        command=command,
        composition=kept.privacy.composition(None),
        label_width=kept.privacy.label_width,
        coef_noise=model.coef_se,
        ranges=_ranges(kept),
        records=True,
    )


def _ranges(kept: KeptStatistics) -> np.ndarray:
    return np.diff(kept.statistics.table.bounds, axis=1)[:, 0]
