"""The plan of a fit, by what is private."""

from __future__ import annotations

from dataclasses import replace
from typing import Any, cast

from numpy.typing import ArrayLike

from privasso.accounting import Loss
from privasso.blocks import RowBlocks
from privasso.fit._chosen_labels import plan_chosen_labels
from privasso.fit._label_plan import plan_fit
from privasso.fit._options import FitOptions
from privasso.fit._plan import Plan, check_asked
from privasso.fit._record_plan import plan_labels_at_one_lam, plan_records
from privasso.fit._rows import held_in_blocks
from privasso.planning import divided, interval_sensitivity
from privasso.privacy import PRIVATE, LabelDP, RecordDP
from privasso.programs import too_large
from privasso.queries import declared

#: What intervals are called among what is released.
_ALSO = "intervals for the coefficients"


def plan_for(
    X: Any,
    options: FitOptions,
    *,
    sample_weight: ArrayLike | None = None,
    seeded: bool = False,
    feature_names: tuple[str, ...] | None = None,
) -> Plan:
    """Plan a fit; with intervals, for which a part of the budget is taken, it has the rest."""
    if options.intervals:
        return _with_intervals(X, options, sample_weight, seeded, feature_names)
    return _alone(X, options, sample_weight, seeded, feature_names)


def _alone(
    X: Any,
    options: FitOptions,
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
    if privacy.protects_records:
        if sample_weight is not None:
            raise ValueError(
                f"sample_weight is not supported with {type(privacy).__name__}: the weight of a "
                "person would have to be protected too; leave it out"
            )
        records = cast(RecordDP, privacy)
        return plan_records(X, options, records, seeded=seeded, feature_names=feature_names)
    labels, shape = cast(LabelDP, privacy), getattr(X, "shape", ())
    screen = options.choice(shape[1] if len(shape) == 2 else 0)
    if options.classes is None and not options.loss.about_mean:
        if sample_weight is not None or options.screen not in (None, "all"):
            raise ValueError(
                f"screen and sample_weight do not go with {options.loss.about} under LabelDP; "
                "leave them out"
            )
        return plan_labels_at_one_lam(X, options, labels, seeded=seeded)
    if screen is None and (sample_weight is not None or held_in_blocks(X) or too_large(*shape)):
        screen = "all"
    if screen != "all":
        if sample_weight is not None:
            raise ValueError("sample_weight is not supported with screen; leave one of them out")
        return plan_chosen_labels(X, options, labels, seeded=seeded)
    return plan_fit(X, options, sample_weight=sample_weight, seeded=seeded)


def _with_intervals(X: Any, options: FitOptions, *given: Any) -> Plan:
    """Divide the budget between the questions of a fit and those for intervals after it."""
    privacy = cast("LabelDP | RecordDP", options.privacy)
    if privacy.protects_records and cast(RecordDP, privacy).bounds == PRIVATE:
        raise ValueError(
            "intervals need bounds of the columns from public knowledge; give bounds, or leave "
            "intervals out"
        )
    epsilon, delta = privacy.epsilon, privacy.delta
    mu = interval_sensitivity(epsilon, delta)

    def alone(share: float) -> tuple[Plan, tuple[Loss, ...]]:
        part = replace(options, privacy=replace(privacy, epsilon=share), ledger=None)
        found = _alone(X, part, *given)
        return found, found.guarantee.losses

    inner = divided(epsilon, delta, mu, alone)
    inner_options = replace(inner.options, ledger=options.ledger)
    whole, stated = replace(inner, options=inner_options, mu=mu), inner.guarantee
    asked = declared(whole.program, whole.shape[0])
    check_asked(asked, stated)
    said = dict.fromkeys(query.sentence for query in asked[len(stated.losses) :])
    return whole.stating(
        replace(
            stated,
            parameters=tuple({**dict(stated.parameters), "epsilon": epsilon}.items()),
            losses=tuple(query.loss for query in asked if query.loss is not None),
            released=(*stated.released, *said, _ALSO),
        )
    )
