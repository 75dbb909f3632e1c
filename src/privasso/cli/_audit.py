"""`privasso audit`: attack a private fit of a table, and compare that with what it claims."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, cast

import typer

from privasso.cli._fit import FitSettings
from privasso.cli._options import DATA, AsJson, Protecting, argument, check_ending, option, tell
from privasso.privacy import RecordDP

if TYPE_CHECKING:
    import numpy as np

    from privasso._types import Matrix
    from privasso.attacks import Audit
    from privasso.privacy import Privacy


@dataclass(frozen=True)
class AuditSettings(Protecting):
    """The options of `privasso audit` in the order of its help."""

    data: Path = argument(DATA)
    on_average: bool = option("Noise of a given level, no worst-case claim.", False)
    sigma: float | None = option("Noise level of --on-average.")
    noise: str | None = option("As for privasso fit.")
    mechanism: str | None = option("As for privasso fit.")
    lam: str | None = option("λ; needed with --on-average.")
    no_intercept: bool = option("Fit through the origin.", False)
    screen: str | None = option("As for privasso fit.")
    binary: bool = option("As for privasso fit.", False)
    classes: str | None = option("As for privasso fit.", metavar="NEGATIVE,POSITIVE")
    loss: str | None = option("As for privasso fit.")
    row: list[int] | None = option("Row to attack, from 0. Repeatable.  [default: a few]")
    releases: int = option("Runs of the fit on each data set.", 1000)
    level: float = option("Chance that a correct fit is said to break its claim.", 0.01)
    seed: int | None = option("Fixed noise, for a repeatable audit.")
    out: Path | None = option("Where the page (.html) or numbers (.json) go.")

    @property
    def fit(self) -> FitSettings:
        """The options of the fit."""
        return FitSettings(**self.of_fit(FitSettings), dry_run=True)


def audit(settings: AuditSettings, as_json: AsJson = False) -> None:
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
    from privasso.cli._outputs import AUDIT, Outputs, files_read
    from privasso.cli._progress import counting

    out = settings.out
    check_ending("--out", out, ".html", ".json")
    check(settings.fit)
    if settings.on_average and settings.fit.lam_value() is None:
        raise ValueError("--on-average needs a number for --lam")
    reads = files_read(settings.data, settings.bounds)
    with Outputs(reads=reads, force=settings.force) as outputs:
        outputs.claim("--out", out, AUDIT)
        if out is not None and out.suffix.lower() == ".html":
            outputs.claim("the numbers beside --out", out.with_suffix(".json"), AUDIT)
        with counting("Attacking", quiet=as_json) as show:
            found = _found(settings, lambda done, total: show(done, total, "Attacking"), as_json)
        again = command_of("audit", settings)
        paths = dict(outputs.paths)
        outputs.write({name: found.text(path.suffix, again) for name, path in paths.items()})
    tell(found.to_dict() if as_json else str(found))
    if paths and not as_json:
        print(f"\nwrote {' and '.join(map(str, paths.values()))}")
    if found.passed is False:
        raise typer.Exit(1)


def _found(settings: AuditSettings, progress: Callable[[int, int], None], quiet: bool) -> Audit:
    from privasso.attacks import audit as attack

    privacy, X, y = _data(settings.fit, quiet)
    return attack(
        privacy,
        X,
        y,
        lam=settings.fit.lam_value() or "auto",
        noise=settings.fit.named_noise(),
        fit_intercept=not settings.no_intercept,
        screen=settings.fit.screened(),
        loss=settings.fit.named_loss(),
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
