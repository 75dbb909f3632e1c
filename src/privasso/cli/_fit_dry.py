"""`privasso fit --dry-run`: what a fit would do, before labels are read or anything is spent."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

from privasso._text import json_text
from privasso.cli._fit_plan import assumptions_of, foreseen, planned
from privasso.cli._fit_privacy import privacy_from
from privasso.cli._fit_read import opened
from privasso.cli._fit_settings import FitSettings
from privasso.cli._fit_show import (
    effect_words,
    encoding_words,
    print_outlook,
    print_settings,
    print_size,
    print_statement,
)
from privasso.cli._ledger import remainder
from privasso.cli._options import NO_BOUND
from privasso.cli._print import print_table

if TYPE_CHECKING:
    from privasso.fit import Plan
    from privasso.forecast import Assumptions, Forecast, Prediction
    from privasso.report import LabelMechanism, RecordMechanism


def dry_run(settings: FitSettings, as_json: bool) -> None:
    """Print noise, predictions and guarantee; of private records only the size is used."""
    from privasso.forecast import predictions_of

    suppose = assumptions_of(settings, privacy_from(settings))
    with opened(settings, labels=False, quiet=as_json) as table:
        plan = planned(settings, table)
    (n_rows, n_columns), ledger, outlook = plan.shape, plan.options.ledger, plan.outlook
    expected, why_not = foreseen(settings, plan, table, quiet=as_json)
    predicted = predictions_of(plan, suppose)
    of_labels, of_records = _mechanism(plan, table.names)
    record: dict[str, Any] = {"n_rows": n_rows, "n_features": n_columns}
    if of_labels is not None:
        record |= of_labels.to_dict()
    if of_records is not None:
        record["mechanism"] = of_records.to_dict()
    if of_labels is None:
        record["screening"] = None if outlook is None else outlook.to_dict()
    if of_labels is not None or of_records is not None:
        record["assumptions"] = {"rho": suppose.rho, "r2": suppose.r2, "label_sd": suppose.label_sd}
        record["forecast"] = None if expected is None else expected.to_dict()
    if of_labels is not None:
        record["predictions"] = [one.to_dict() for one in predicted]
    record["guarantee"] = plan.guarantee.to_dict()
    record["ledger"] = None if ledger is None else remainder(ledger, plan.guarantee)
    if as_json:
        print(json_text(record))
        return
    unread = f"no label has been read (column {table.target!r})"
    if settings.record_dp:
        unread = "nothing of the data but the names of the columns and the number of rows is used"
    print(f"Dry run: {unread}, no budget is spent.\n")
    if plan.guarantee.warning is not None:
        print(f"{plan.guarantee.warning}\n")
    assert table.encoding is not None
    print_size(n_rows, n_columns, encoding_words(table.encoding, settings.record_dp))
    if of_labels is not None:
        _print_noise(of_labels)
    if of_records is not None:
        print_settings(of_records)
        print(end="" if outlook is None else "\n")
    if outlook is not None:
        print_outlook(outlook)
    elif expected is not None:
        on = expected.on if settings.record_dp else "these columns"
        _print_forecast(expected, on, plan.options.fixed_lam)
    elif predicted:
        _print_predictions(predicted, suppose, plan)
    else:
        print(f"\nNo prediction is available: {why_not}.")
    print_statement(plan.guarantee, ledger)


def _mechanism(
    plan: Plan, names: tuple[str, ...]
) -> tuple[LabelMechanism | None, RecordMechanism | None]:
    """The mechanism of a plan, in the place of its kind; a choice of columns by labels has none."""
    from privasso.fit import LabelPlan, RecordPlan
    from privasso.report import LabelMechanism, RecordMechanism

    if isinstance(plan, LabelPlan):
        return LabelMechanism(plan, names), None
    return None, RecordMechanism.of(plan) if isinstance(plan, RecordPlan) else None


def _print_noise(mechanism: LabelMechanism) -> None:
    from privasso.report import QUANTILES

    for sentence in mechanism.sentences():
        print(sentence)
    print()
    print_table(["", *QUANTILES], mechanism.table(), "Over the columns")
    plan = mechanism.plan
    if plan.options.classes is None:
        print(effect_words(mechanism.columns.in_label_units, plan.rows.live))


def _print_forecast(expected: Forecast, on: str, lam: float | None) -> None:
    """Print a table of R² and what it assumes; `lam` is λ where it is given."""
    at = "" if lam is None else f" at λ = {lam:g}"
    print(f"\nR² on new rows: {expected.fits} simulated fits on {on}{at}")
    print_table(["", "median", "8 of 10 fits", "above 0"], expected.lines())
    print(
        f"{expected.in_words()} It is a forecast under these assumptions, not a promise; "
        "--assume-rho, --assume-r2 and --assume-label-sd change them."
    )


def _print_predictions(predicted: tuple[Prediction, ...], suppose: Assumptions, plan: Plan) -> None:
    """Print a line for each noise design."""
    at = "at the given λ" if plan.options.fixed_lam is not None else "each at its best λ"
    styles = {"r2": ".3f", "nonzero": ".1f", "critical_lam": ".4g", "onavekl": ".3g"}
    lines = [
        (
            one.noise.in_words(),
            f"{one.noise.sigma:.4g}",
            f"{one.lam:.4g}",
            *(
                f"{getattr(one, name):{style}}" if math.isfinite(getattr(one, name)) else "—"
                for name, style in styles.items()
            ),
        )
        for one in predicted
    ]
    print_table(
        ["noise", "level", "λ", "R² on new rows", "non-zero", "critical λ", "OnAveKL"],
        lines,
        f"\nPredicted by state evolution, at the same {plan.options.privacy.compared_at}, {at}",
    )
    print(f"This assumes {suppose.as_model()}. It is a prediction under that model, not a promise.")
    print(NO_BOUND)
