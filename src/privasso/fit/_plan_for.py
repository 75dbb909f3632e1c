"""The plan of a fit, by what is private."""

from __future__ import annotations

import math
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
from privasso.privacy import PRIVATE, Formal, LabelDP, RecordDP, Terms
from privasso.programs import LabelRange, too_large
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
    """Plan a fit; it has what is left of the budget beside a range of the labels and intervals."""
    given = sample_weight, seeded, feature_names
    finds = options.privacy.formal and cast(Formal, options.privacy).finds_range
    if options.intervals or finds:
        return _divided(X, options, *given)
    return _alone(X, options, *given)


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


def _divided(
    X: Any, options: FitOptions, sample_weight: ArrayLike | None, seeded: bool, names: Any
) -> Plan:
    """Divide the budget between the questions of a fit, those before and those after it."""
    privacy = cast("LabelDP | RecordDP", options.privacy)
    epsilon, delta, asks, mu = privacy.epsilon, privacy.delta, None, 0.0
    if options.intervals:
        if privacy.protects_records and cast(RecordDP, privacy).bounds == PRIVATE:
            raise ValueError(
                "intervals need bounds of the columns from public knowledge; give bounds, or leave "
                "intervals out"
            )
        mu = interval_sensitivity(epsilon, delta)
    if privacy.finds_range:
        if isinstance(options.lam, float | int):
            raise ValueError(
                "lam as a number is in units of the labels, whose range is not known beforehand "
                "with y_bounds='private'; leave lam out, or give y_bounds"
            )
        asks = LabelRange.of_budget(
            epsilon, delta, privacy.pair, X.shape[0], centred=options.fit_intercept
        )
    before = 0.0 if asks is None else asks.mu

    def alone(share: float) -> tuple[Plan, tuple[Loss, ...]]:
        part = replace(options, privacy=privacy.within(share), ledger=None)
        found = _alone(X, part, sample_weight, seeded, names)
        return found, found.guarantee.losses

    inner = divided(epsilon, delta, math.hypot(mu, before), alone)
    inner_options = replace(inner.options, ledger=options.ledger)
    whole = replace(inner, options=inner_options, mu=mu, range=asks)
    asked, stated = declared(whole.program, whole.shape[0]), inner.guarantee
    check_asked(asked, stated)
    said, start = [query.sentence for query in asked], 0 if asks is None else asks.questions
    if asks is not None:
        terms = Terms(fit_intercept=options.fit_intercept, seeded=seeded, n_rows=whole.shape[0])
        stated = replace(privacy.guarantee(terms), released=stated.released)
    also = said[start + len(inner.guarantee.losses) :]
    released = (*said[:start], *stated.released, *also, *((_ALSO,) if mu else ()))
    return whole.stating(
        replace(
            stated,
            parameters=tuple({**dict(stated.parameters), "epsilon": epsilon}.items()),
            losses=tuple(query.loss for query in asked if query.loss is not None),
            released=tuple(dict.fromkeys(released)),
        )
    )
