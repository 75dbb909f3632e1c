"""The plan of a fit, by the mechanism of its kind of privacy."""

from __future__ import annotations

from typing import Any, TypeAlias

from numpy.typing import ArrayLike

from privasso.blocks import RowBlocks
from privasso.fit._interval_plan import plan_intervals
from privasso.fit._label_plan import plan_fit
from privasso.fit._options import FitOptions
from privasso.fit._plan import Plan
from privasso.fit._record_plan import (
    Published,
    plan_labels_at_one_lam,
    plan_perturbed,
)
from privasso.fit._released import Released
from privasso.fit._screened_label_plan import plan_screened_labels
from privasso.fit._statistics import KeptStatistics
from privasso.privacy import LabelDP, RecordDP

#: What comes of a plan: a model, or what models are solved from.
Outcome: TypeAlias = Released | Published | KeptStatistics


def plan_for(
    X: Any,
    options: FitOptions,
    *,
    sample_weight: ArrayLike | None = None,
    seeded: bool = False,
    feature_names: tuple[str, ...] | None = None,
) -> Plan:
    """Plan a fit by the mechanism of its kind of privacy; see `plan_fit` and `plan_perturbed`."""
    if options.intervals:
        given: dict[str, Any] = {
            "sample_weight": sample_weight,
            "seeded": seeded,
            "feature_names": feature_names,
        }
        return plan_intervals(options, lambda part: _plan_alone(X, part, **given))
    return _plan_alone(
        X, options, sample_weight=sample_weight, seeded=seeded, feature_names=feature_names
    )


def _plan_alone(
    X: Any,
    options: FitOptions,
    *,
    sample_weight: ArrayLike | None,
    seeded: bool,
    feature_names: tuple[str, ...] | None,
) -> Plan:
    privacy = options.privacy
    if isinstance(X, RowBlocks) and not privacy.formal:
        raise ValueError(
            "blocks of rows are fitted with RecordDP or LabelDP; for other kinds of privacy pass "
            "an array in memory"
        )
    if isinstance(privacy, LabelDP) and options.classes is None and not options.loss.about_mean:
        if sample_weight is not None or options.screen is not None:
            raise ValueError(
                f"screen and sample_weight do not go with {options.loss.about} under LabelDP; "
                "leave them out"
            )
        return plan_labels_at_one_lam(X, options, privacy, seeded=seeded)
    if isinstance(privacy, LabelDP) and options.screen is not None:
        if sample_weight is not None:
            raise ValueError("sample_weight is not supported with screen; leave one of them out")
        screened = plan_screened_labels(X, options, privacy, seeded=seeded)
        if screened is not None:
            return screened
    if not isinstance(privacy, RecordDP):
        return plan_fit(X, options, sample_weight=sample_weight, seeded=seeded)
    if sample_weight is not None:
        raise ValueError(
            f"sample_weight is not supported with {type(privacy).__name__}: the weight of a "
            "person would have to be protected too; leave it out"
        )
    return plan_perturbed(X, options, privacy, seeded=seeded, feature_names=feature_names)
