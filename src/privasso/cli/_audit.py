"""`privasso audit`: attack a private fit of a table, and compare that with what it claims."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, TypeAlias, cast

import typer

from privasso.cli._fit import FitSettings
from privasso.cli._options import DATA, AsJson, Force, argument, check_ending, option, tell
from privasso.privacy import RecordDP

if TYPE_CHECKING:
    import numpy as np

    from privasso._types import Matrix
    from privasso.attacks import Audit
    from privasso.privacy import Privacy


#: What of a fit is attacked.
AuditedFit: TypeAlias = Annotated[
    FitSettings,
    "target label_dp record_dp binary classes loss epsilon delta y_bounds bounds screen mechanism "
    "neighbours on_average sigma noise lam no_intercept row_names",
]


@dataclass(frozen=True)
class AuditSettings:
    """The options of `privasso audit` beside those of the fit."""

    data: Path = argument(DATA)
    row: list[int] | None = option("Row to attack, from 0. Repeatable.  [default: a few]")
    releases: int = option("Runs of the fit on each data set.", 1000)
    level: float = option("Chance that a correct fit is said to break its claim.", 0.01)
    seed: int | None = option("Fixed noise, for a repeatable audit.")
    out: Path | None = option("Where the page (.html) or numbers (.json) go.")
    force: Force = False


def audit(fit: AuditedFit, settings: AuditSettings, as_json: AsJson = False) -> None:
    """Attack a private fit of a table by the strongest test, and report what it learns.

    The fit is run many times on the table and on neighbours of it. Nothing is published: what an
    audit writes says more about the data than a fit does, so keep it with them, or audit simulated
    data. The exit code is 1 if a claim is refuted. A page gets the numbers beside it, as JSON.

    `privasso audit patients.csv --target pressure --label-dp --epsilon 1 --delta 1e-6
    --y-bounds 60 200 --out audit.html`

    For noise without a worst-case claim it shows how exposed single records are:

    `privasso audit patients.csv --target pressure --on-average --sigma 20 --lam 300`
    """
    from privasso.cli._fit_check import check
    from privasso.cli._fit_show import command_of
    from privasso.cli._outputs import AUDIT, Outputs
    from privasso.cli._progress import counting

    out, options = settings.out, replace(fit, data=settings.data, dry_run=True)
    check_ending("--out", out, ".html", ".json")
    check(options)
    if options.on_average and options.lam_value() is None:
        raise ValueError("--on-average needs a number for --lam")
    reads = options.files_read()
    with Outputs(reads=reads, force=settings.force) as outputs:
        outputs.claim("--out", out, AUDIT)
        if out is not None and out.suffix.lower() == ".html":
            outputs.claim("the numbers beside --out", out.with_suffix(".json"), AUDIT)
        with counting("Attacking", quiet=as_json) as show:
            found = _found(
                options, settings, lambda done, total: show(done, total, "Attacking"), as_json
            )
        again = command_of("audit", fit, settings)
        paths = dict(outputs.paths)
        outputs.write({name: found.text(path.suffix, again) for name, path in paths.items()})
    tell(found.to_dict() if as_json else str(found))
    if paths and not as_json:
        print(f"\nwrote {' and '.join(map(str, paths.values()))}")
    if found.passed is False:
        raise typer.Exit(1)


def _found(
    options: FitSettings,
    settings: AuditSettings,
    progress: Callable[[int, int], None],
    quiet: bool,
) -> Audit:
    from privasso.attacks import audit as attack

    privacy, X, y = _data(options, quiet)
    return attack(
        privacy,
        X,
        y,
        lam=options.lam_value() or "auto",
        noise=options.named_noise(),
        fit_intercept=not options.no_intercept,
        screen=options.screened(),
        loss=options.named_loss(),
        records=settings.row or "auto",
        releases=settings.releases,
        level=settings.level,
        rng=settings.seed,
        progress=progress,
    )


def _data(settings: FitSettings, quiet: bool) -> tuple[Privacy, Matrix, np.ndarray]:
    """What to protect, covariates and labels, read as a fit reads them."""
    from privasso.cli._fit_check import privacy_from
    from privasso.cli._fit_read import coded, in_memory
    from privasso.cli._progress import working
    from privasso.tables import check_labels

    with working("Reading", quiet=quiet):
        table = in_memory(settings)
        assert table.labels is not None
        labels = coded(settings, table.labels)
        privacy, known = privacy_from(settings, table.dictionary), table.dictionary
        if known is None:
            check_labels(labels)
        elif known.bounds is not None:  # an attack knows no names
            privacy = replace(cast(RecordDP, privacy), bounds=list(known.bounds.values()))
        return privacy, table.X, labels
