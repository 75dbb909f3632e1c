"""`privasso fit --label-dp --screen`: columns are chosen with noise, and these are fitted."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any

from privasso._text import json_text
from privasso.cli._fit_rehearsal import rehearse_model
from privasso.cli._fit_show import print_outlook, print_size, print_statement
from privasso.cli._fit_write import FitResult, write_files, written
from privasso.cli._ledger import remainder
from privasso.cli._progress import working

if TYPE_CHECKING:
    import numpy as np

    from privasso.cli._fit_rescue import Paid
    from privasso.cli._outputs import Outputs
    from privasso.encoding import Encoding
    from privasso.fit import Published, ScreenedLabelPlan


def fit_screened(
    paid: Paid,
    outputs: Outputs,
    plan: ScreenedLabelPlan,
    labels: np.ndarray | None,
    encoding: Encoding,
    target: str,
    *,
    quiet: bool,
) -> FitResult:
    """Choose, fit and write the files; there is nothing to solve again."""
    from privasso.report import screened_facts

    settings = paid.settings
    rehearse_model(settings, plan.guarantee, None, encoding)

    def encoded(made: Published) -> Published:
        own = None if encoding.plain else encoding
        return replace(made, model=replace(made.model, encoding=own))

    with working("Releasing", quiet=quiet):
        made = plan.release(
            labels,
            rng=settings.rng(),
            feature_names=encoding.names,
            target=target,
            keep=lambda made, spent: paid.keep(encoded(made), spent),
        )
    model = encoded(made).model
    facts = screened_facts(model, plan, command=settings.command(), target=target)
    return written(paid, write_files(settings, outputs, facts, None), plan.options.ledger)


def dry_run_screened(
    plan: ScreenedLabelPlan, encoding: Encoding, target: str, *, as_json: bool
) -> None:
    """Print what is predicted and what would be stated; no label has been read."""
    outlook, ledger = plan.outlook, plan.options.ledger
    n_rows, n_columns = plan.X.shape
    record: dict[str, Any] = {
        "n_rows": n_rows,
        "n_features": n_columns,
        "screening": outlook.to_dict(),
        "guarantee": plan.guarantee.to_dict(),
        "ledger": None if ledger is None else remainder(ledger, plan.guarantee),
    }
    if as_json:
        print(json_text(record))
        return
    print(f"Dry run: no label has been read (column {target!r}), no budget is spent.\n")
    if plan.guarantee.warning is not None:
        print(f"{plan.guarantee.warning}\n")
    print_size(n_rows, n_columns, encoding.in_words())
    print_outlook(outlook)
    print_statement(plan.guarantee, ledger)
