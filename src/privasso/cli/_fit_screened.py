"""`privasso fit --label-dp --screen`: columns are chosen with noise, and these are fitted."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any

from privasso._text import json_text
from privasso.cli._fit_rehearsal import rehearse_model
from privasso.cli._fit_show import print_outlook, print_size, print_statement
from privasso.cli._fit_write import FitResult, write_files
from privasso.cli._ledger import remainder
from privasso.cli._progress import working

if TYPE_CHECKING:
    import numpy as np

    from privasso.cli._fit_settings import FitSettings
    from privasso.cli._outputs import Outputs
    from privasso.encoding import Encoding
    from privasso.fit import ScreenedLabelPlan

_SPENT = (
    "Nothing of this fit is published, but its noise has been drawn, so count its budget as spent."
)


def fit_screened(
    settings: FitSettings,
    outputs: Outputs,
    plan: ScreenedLabelPlan,
    labels: np.ndarray,
    encoding: Encoding,
    target: str,
    *,
    quiet: bool,
) -> FitResult:
    """Choose, fit and write the files; there is nothing to solve again."""
    from privasso.fit import AfterReleaseError
    from privasso.ledger import summary
    from privasso.report import screened_facts

    rehearse_model(plan.guarantee, None, encoding)
    ledger = plan.options.ledger
    before = None if ledger is None else summary(ledger.book)
    try:
        with working("Releasing", quiet=quiet):
            model = plan.release(
                labels,
                rng=settings.rng(),
                feature_names=encoding.names,
                target=target,
            ).solve()
        model = replace(model, encoding=None if encoding.plain else encoding)
        facts = screened_facts(model, plan, command=settings.command(), target=target)
        result = write_files(settings, outputs, facts, None)
    except (ValueError, RuntimeError, OSError) as error:
        if ledger is not None and summary(ledger.book) == before:
            raise  # the ledger refused, and no noise was drawn
        raise AfterReleaseError(f"{_SPENT} What happened: {str(error).rstrip('.')}.") from error
    except BaseException as error:
        error.add_note(_SPENT)
        raise
    return result if ledger is None else replace(result, ledger=summary(ledger.book))


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
