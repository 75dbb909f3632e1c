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

#: Options that a program under attack has of its own.
_OF_THE_COMMAND = ("label_dp", "record_dp", "on_average", "classes", "seed")


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
    command: str | None = option("A program to attack instead, with {data} and {out}.")
    neighbour: Path | None = option("With --command: a file that differs in one record.")
    row: list[int] | None = option("Row to attack, from 0. Repeatable.  [default: a few]")
    releases: int | None = option(
        "Runs of the fit on each data set.  [default: 1000, with --command 200]"
    )
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

    A whole program is attacked by all that it writes, for a file and for a neighbour of it:

    `privasso audit one.csv --neighbour two.csv --releases 200 --command "privasso fit {data}
    --out {out} --target pressure --label-dp --epsilon 5 --delta 0.05 --y-bounds 60 200"`
    """
    from privasso.cli._fit_check import check
    from privasso.cli._fit_show import command_of
    from privasso.cli._outputs import AUDIT, Outputs, files_read
    from privasso.cli._progress import counting

    out, command, neighbour = settings.out, settings.command, settings.neighbour
    check_ending("--out", out, ".html", ".json")
    if (command is None) is not (neighbour is None):
        raise ValueError("--command and --neighbour belong together; give both or neither")
    if command is None:
        check(settings.fit)
        if settings.on_average and settings.fit.lam_value() is None:
            raise ValueError("--on-average needs a number for --lam")
    elif settings.row or settings.fit.given(*_OF_THE_COMMAND):
        raise ValueError("with --command the settings of the fit stand in the command itself")
    reads = files_read(settings.data, neighbour, settings.bounds)
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
    """Attack the fit, or the program."""
    from privasso.attacks import audit as attack
    from privasso.attacks import audit_command

    if settings.command is not None and settings.neighbour is not None:
        secrets = _labels(settings.fit)
        try:
            return audit_command(
                settings.command,
                settings.data,
                settings.neighbour,
                secrets=secrets,
                releases=200 if settings.releases is None else settings.releases,
                level=settings.level,
                progress=progress,
            )
        except RuntimeError as error:  # nothing is refuted by a program that fails
            raise ValueError(f"--command: {error}") from None
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
        releases=1000 if settings.releases is None else settings.releases,
        level=settings.level,
        rng=settings.seed,
        progress=progress,
    )


def _labels(settings: FitSettings) -> np.ndarray | None:
    """Labels to look for in what a program writes; None without a column of labels."""
    from privasso.cli._fit_read import table_of

    if settings.target is None:
        return None
    return table_of(settings).columns_and_labels([], settings.target, categorical=[])[1]


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
