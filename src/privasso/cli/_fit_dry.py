"""`privasso fit --dry-run`: what a fit would do, before labels are read or anything is spent."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from privasso._text import json_text
from privasso.cli._fit_dry_labels import (
    in_numbers,
    noise_of,
    predictions_of,
    print_noise,
    print_predictions,
)
from privasso.cli._fit_plan import assumptions_of, foreseen, planned
from privasso.cli._fit_privacy import privacy_from
from privasso.cli._fit_read import without_labels
from privasso.cli._fit_settings import FitSettings
from privasso.cli._fit_show import (
    encoding_words,
    print_outlook,
    print_settings,
    print_size,
    print_statement,
)
from privasso.cli._ledger import remainder

if TYPE_CHECKING:
    from privasso.forecast import Forecast


def dry_run(settings: FitSettings, as_json: bool) -> None:
    """Print noise, predictions and guarantee; of private records only the size is used."""
    from privasso.fit import LabelPlan, RecordPlan
    from privasso.report import RecordMechanism

    suppose = assumptions_of(settings, privacy_from(settings))
    table = without_labels(settings)
    assert table.encoding is not None
    plan = planned(settings, table)
    (n_rows, n_columns), ledger, outlook = plan.shape, plan.options.ledger, plan.outlook
    expected, why_not = foreseen(settings, plan, table, quiet=as_json)
    predicted, mechanism = (), None
    record: dict[str, Any] = {"n_rows": n_rows, "n_features": n_columns}
    if isinstance(plan, LabelPlan):
        predicted = predictions_of(plan, suppose)
        record |= noise_of(plan, table.names)
    elif isinstance(plan, RecordPlan):
        mechanism = RecordMechanism.of(plan)
        record["mechanism"] = mechanism.to_dict()
    if outlook is not None or mechanism is not None:
        record["screening"] = None if outlook is None else outlook.to_dict()
    if outlook is None or mechanism is not None:
        record["assumptions"] = {"rho": suppose.rho, "r2": suppose.r2, "label_sd": suppose.label_sd}
        record["forecast"] = None if expected is None else expected.to_dict()
    if isinstance(plan, LabelPlan):
        record["predictions"] = [in_numbers(one) for one in predicted]
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
    print_size(n_rows, n_columns, encoding_words(table.encoding, settings.record_dp))
    if isinstance(plan, LabelPlan):
        print_noise(plan, record)
    if mechanism is not None:
        print_settings(mechanism)
        print(end="" if outlook is None else "\n")
    if outlook is not None:
        print_outlook(outlook)
    elif expected is not None:
        on = expected.on if settings.record_dp else "these columns"
        _print_forecast(expected, on, plan.options.fixed_lam)
    elif predicted:
        print_predictions(predicted, suppose, plan)
    else:
        print(f"\nNo prediction is available: {why_not}.")
    print_statement(plan.guarantee, ledger)


def _print_forecast(expected: Forecast, on: str, lam: float | None) -> None:
    """Print a table of R² and what it assumes; `lam` is λ where it is given."""
    from rich.console import Console
    from rich.table import Table

    at = "" if lam is None else f" at λ = {lam:g}"
    print(f"\nR² on new rows: {expected.fits} simulated fits on {on}{at}")
    table = Table(box=None, padding=(0, 2, 0, 0))
    for title in ("", "median", "8 of 10 fits", "above 0"):
        table.add_column(title, justify="right" if title else "left", no_wrap=True)
    for line in expected.lines():
        table.add_row(*line)
    Console(width=120, highlight=False).print(table)
    print(
        f"{expected.in_words()} It is a forecast under these assumptions, not a promise; "
        "--assume-rho, --assume-r2 and --assume-label-sd change them."
    )
