"""`privasso fit --record-dp --dry-run`: what a fit would do, from public numbers alone."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np

from privasso._text import json_text
from privasso.cli._fit_blocks import opened_blocks
from privasso.cli._fit_forecast import print_forecast
from privasso.cli._fit_read import features_of, table_of, target_of
from privasso.cli._fit_records import dictionary_of, forecast_of, plan_records
from privasso.cli._fit_run import assumptions_of
from privasso.cli._fit_settings import FitSettings
from privasso.cli._fit_show import (
    encoding_words,
    print_outlook,
    print_settings,
    print_size,
    print_statement,
)
from privasso.cli._ledger import remainder


def dry_run_records(settings: FitSettings, as_json: bool) -> None:
    """Print settings and guarantee; of the data only names and the number of rows are used."""
    from privasso.report import RecordMechanism, outlook_of

    if settings.in_blocks:
        with opened_blocks(replace(settings, engine="local", scheduler=None)) as opened:
            blocks, dictionary, _ = opened
        encoding, n_rows = dictionary.encoding, blocks.shape[0]
    else:
        table, target = table_of(settings), target_of(settings)
        dictionary = dictionary_of(settings, table, features_of(settings, table, target))
        encoding, n_rows = dictionary.encoding, table.n_rows
    # An array of this shape that has no memory of its own: only the shape is used.
    names = encoding.names
    plan = plan_records(settings, np.broadcast_to(0.0, (n_rows, len(names))), names, dictionary)
    mechanism, ledger = RecordMechanism.of(plan), plan.options.ledger
    outlook = outlook_of(plan)
    expected, why_not = forecast_of(settings, plan, dictionary, quiet=as_json)
    record: dict[str, Any] = {
        "n_rows": n_rows,
        "n_features": len(encoding.names),
        "mechanism": mechanism.to_dict(),
        "screening": None if outlook is None else outlook.to_dict(),
        "assumptions": {
            "rho": settings.assume_rho,
            "r2": settings.assume_r2,
            "label_sd": assumptions_of(settings, plan.options.privacy).label_sd,
        },
        "forecast": None if expected is None else expected.to_dict(),
        "guarantee": plan.guarantee.to_dict(),
        "ledger": None if ledger is None else remainder(ledger, plan.guarantee),
    }
    if as_json:
        print(json_text(record))
        return
    print(
        "Dry run: nothing of the data but the names of the columns and the number of rows is used, "
        "no budget is spent.\n"
    )
    if plan.guarantee.warning is not None:
        print(f"{plan.guarantee.warning}\n")
    print_size(n_rows, len(encoding.names), encoding_words(encoding, True))
    print_settings(mechanism)
    if outlook is not None:
        print()
        print_outlook(outlook)
    elif expected is None:
        print(f"\nNo prediction is available: {why_not}.")
    else:
        print_forecast(expected, plan.options.fixed_lam, expected.on)
    print_statement(plan.guarantee, ledger)
