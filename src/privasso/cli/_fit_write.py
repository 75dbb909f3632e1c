"""The files that `privasso fit` writes, and whether there is room for them."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

import numpy as np

from privasso.artefact import model_text, release_text
from privasso.cli._fit import FitSettings
from privasso.cli._fit_read import FitTable
from privasso.cli._fit_rescue import RELEASE, RESULT
from privasso.cli._outputs import Outputs, check_room
from privasso.fit import CoefficientPath, Plan, ReleasedModel
from privasso.programs import made_up_intervals
from privasso.report import FitFacts, fit_page
from privasso.tables import table_bytes

#: A number that takes as many characters as a number can, how many it has in statistics, and by how
#: many bytes the few other numbers of a release can be longer than those that stand for them.
_LONGEST, _DIGITS, _OTHERS = -1.2345678901234567e-300, 24, 256
#: Bytes of a report, of which most are pictures, and of a number in a path with as many points.
_REPORT, _NUMBER, PATH_POINTS = 1_000_000, 20, 25


@dataclass(frozen=True, eq=False)
class FitResult:
    """What a fit did: its facts and the files it wrote."""

    facts: FitFacts
    files: dict[str, Path]
    ledger: str | None = None
    """What was spent and what is left, in words."""
    labels: str = ""
    """What labels were read as, in words."""


def rehearse(settings: FitSettings, plan: Plan, table: FitTable) -> None:
    """Refuse a fit whose model or release could not be written or read back, or has no room.

    Nothing of this depends on the labels, so that it costs nothing to know.
    """
    encoding = table.rehearsed(plan)
    text = model_text(
        ReleasedModel(
            coef=np.full(len(encoding.names), _LONGEST),
            intercept=_LONGEST,
            lam=-_LONGEST,
            guarantee=plan.guarantee,
            noise=plan.noise,
            feature_names=encoding.names,
            target=table.target,
            classes=None if plan.options.classes is None else plan.options.classes.names,
            encoding=None if encoding.plain else encoding,
            intervals=made_up_intervals(plan.options.targets, len(encoding.names), _LONGEST)
            if plan.mu
            else None,
        )
    )
    assert settings.out is not None
    model, kept = len(text.encode()), _kept_size(plan, table)
    ending, rescued = (RESULT, model) if kept is None else (RELEASE, kept)
    sizes = {settings.out: model, settings.out.with_suffix(ending): rescued}
    if settings.keep_release is not None:
        sizes[settings.keep_release] = rescued
    if settings.report is not None:
        sizes[settings.report] = _REPORT
    if settings.path_out is not None:
        points = len(settings.lams() or range(PATH_POINTS))
        sizes[settings.path_out] = _NUMBER * points * (len(encoding.names) + 3)
    check_room(sizes)


def _kept_size(plan: Plan, table: FitTable) -> int | None:
    """About as many bytes as models are solved from; None if the model is all that is released."""
    if not plan.solves_again:
        return None if plan.options.privacy.formal else 0
    made = table.published(plan.rehearsed(table.names, table.target))
    columns = plan.shape[1] + 2
    numbers = columns if made.public_rows is not None else columns * (columns + 1) // 2
    more = _DIGITS * numbers + _OTHERS
    assert made.kept is not None
    return len(release_text(made.kept, more).encode()) + more


def write_files(
    settings: FitSettings, outputs: Outputs, facts: FitFacts, path: CoefficientPath | None
) -> dict[str, Path]:
    """Write path, report and model, the model last; all of them or none."""
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
    return files


def _path_columns(path: CoefficientPath, facts: FitFacts) -> dict[str, object]:
    return {
        "lam": path.lams,
        "status": [str(status.value) for status in path.status],
        "intercept": path.intercept,
        **{f"coef:{name}": path.coef[k] for k, name in enumerate(facts.names)},
    }
