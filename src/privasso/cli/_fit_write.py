"""The files that `privasso fit` writes, and what it returns."""

from __future__ import annotations

from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from privasso.cli._fit_rescue import Paid
    from privasso.cli._fit_settings import FitSettings
    from privasso.cli._outputs import Outputs
    from privasso.fit import CoefficientPath
    from privasso.ledger import Ledger
    from privasso.report import FitFacts


@dataclass(frozen=True, eq=False)
class FitResult:
    """What a fit did: its facts and the files it wrote."""

    facts: FitFacts
    files: dict[str, Path]
    ledger: str | None = None
    """What was spent and what is left, in words."""


def write_files(
    settings: FitSettings, outputs: Outputs, facts: FitFacts, path: CoefficientPath | None
) -> FitResult:
    """Write path, report and model, the model last; all of them or none."""
    from privasso.artefact import model_text
    from privasso.report import fit_page
    from privasso.tables import table_bytes

    contents: dict[str, str | bytes] = {}
    if settings.path_out is not None and path is not None:
        contents["--path-out"] = table_bytes(_path_columns(path, facts), settings.path_out)
    if settings.report is not None:
        contents["--report"] = fit_page(facts).html()
    contents["--out"] = model_text(facts.model)
    outputs.write(contents)
    files = {option: outputs.paths[option] for option in contents}
    if settings.keep_release is not None:
        files["--keep-release"] = settings.keep_release
    return FitResult(facts, files)


def written(paid: Paid, result: FitResult, ledger: Ledger | None) -> FitResult:
    """Note that the files are written, and add what was spent and what is left."""
    from privasso.ledger import summary

    paid.done(*result.files.values())
    return result if ledger is None else replace(result, ledger=summary(ledger.book))


def _path_columns(path: CoefficientPath, facts: FitFacts) -> dict[str, object]:
    return {
        "lam": path.lams,
        "status": [str(status.value) for status in path.status],
        "intercept": path.intercept,
        **{f"coef:{name}": path.coef[k] for k, name in enumerate(facts.names)},
    }
