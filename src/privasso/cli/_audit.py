"""`privasso audit`: attack a private fit of a table, and compare that with what it claims."""

from __future__ import annotations

import shlex
import sys
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, cast

import typer

from privasso._text import json_text
from privasso.cli._fit_settings import FitSettings
from privasso.cli._options import (
    AsJson,
    Data,
    Delta,
    Epsilon,
    Force,
    LabelDpFlag,
    RowNames,
    YBounds,
)

if TYPE_CHECKING:
    from privasso.privacy import Privacy


def audit(
    data: Data,
    target: Annotated[str | None, typer.Option("--target", help="Column of the labels.")] = None,
    label_dp: LabelDpFlag = False,
    record_dp: Annotated[bool, typer.Option("--record-dp", help="Protect whole records.")] = False,
    on_average: Annotated[
        bool, typer.Option("--on-average", help="Noise of a given level, no worst-case claim.")
    ] = False,
    epsilon: Epsilon = None,
    delta: Delta = None,
    y_bounds: YBounds = None,
    bounds: Annotated[
        str | None, typer.Option("--bounds", help="With --record-dp: the data dictionary.")
    ] = None,
    sigma: Annotated[
        float | None, typer.Option("--sigma", help="Noise level of --on-average.")
    ] = None,
    noise: Annotated[str | None, typer.Option("--noise", help="As for privasso fit.")] = None,
    mechanism: Annotated[
        str | None, typer.Option("--mechanism", help="As for privasso fit.")
    ] = None,
    lam: Annotated[str | None, typer.Option("--lam", help="λ; needed with --on-average.")] = None,
    no_intercept: Annotated[
        bool, typer.Option("--no-intercept", help="Fit through the origin.")
    ] = False,
    screen: Annotated[str | None, typer.Option("--screen", help="As for privasso fit.")] = None,
    binary: Annotated[bool, typer.Option("--binary", help="As for privasso fit.")] = False,
    command: Annotated[
        str | None,
        typer.Option("--command", help="A program to attack instead, with {data} and {out}."),
    ] = None,
    neighbour: Annotated[
        Path | None,
        typer.Option("--neighbour", help="With --command: a file that differs in one record."),
    ] = None,
    row: Annotated[
        list[int] | None,
        typer.Option("--row", help="Row to attack, from 0. Repeatable.  [default: a few]"),
    ] = None,
    releases: Annotated[
        int | None,
        typer.Option(
            "--releases",
            help="Runs of the fit on each data set.  [default: 1000, with --command 200]",
        ),
    ] = None,
    level: Annotated[
        float, typer.Option("--level", help="Chance that a correct fit is said to break its claim.")
    ] = 0.01,
    seed: Annotated[
        int | None, typer.Option("--seed", help="Fixed noise, for a repeatable audit.")
    ] = None,
    out: Annotated[
        Path | None, typer.Option("--out", help="Where the page (.html) or numbers (.json) go.")
    ] = None,
    row_names: RowNames = False,
    force: Force = False,
    as_json: AsJson = False,
) -> None:
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
    from privasso.attacks import audit as attack
    from privasso.attacks import audit_command
    from privasso.cli._fit_check import check
    from privasso.cli._outputs import AUDIT, Outputs, files_read
    from privasso.cli._progress import counting

    if out is not None and out.suffix.lower() not in (".html", ".json"):
        raise ValueError(f"--out needs a file that ends in .html or .json, not {out}")
    if (command is None) is not (neighbour is None):
        raise ValueError("--command and --neighbour belong together; give both or neither")
    settings = FitSettings(
        data, target, label_dp=label_dp, record_dp=record_dp, on_average=on_average,
        epsilon=epsilon, delta=delta, y_bounds=y_bounds, bounds=bounds, sigma=sigma, noise=noise,
        mechanism=mechanism, lam=lam, no_intercept=no_intercept, screen=screen, binary=binary,
        seed=seed, dry_run=True, row_names=row_names,
    )  # fmt: skip
    if command is None:
        check(settings)
        if on_average and settings.lam_value() is None:
            raise ValueError("--on-average needs a number for --lam")
    elif any((label_dp, record_dp, on_average, row, seed is not None)):
        raise ValueError("with --command the settings of the fit stand in the command itself")
    with Outputs(reads=files_read(data, neighbour, bounds), force=force) as outputs:
        outputs.claim("--out", out, AUDIT)
        if out is not None and out.suffix.lower() == ".html":
            outputs.claim("the numbers beside --out", out.with_suffix(".json"), AUDIT)
        with counting("Attacking", quiet=as_json) as show:

            def progress(done: int, total: int) -> None:
                show(done, total, "Attacking")

            if command is not None and neighbour is not None:
                secrets = _labels(settings)
                try:
                    found = audit_command(
                        command,
                        data,
                        neighbour,
                        secrets=secrets,
                        releases=200 if releases is None else releases,
                        level=level,
                        progress=progress,
                    )
                except RuntimeError as error:  # nothing is refuted by a program that fails
                    raise ValueError(f"--command: {error}") from None
            else:
                privacy, X, y = _data(settings, as_json)
                found_lam = settings.lam_value()
                found = attack(
                    privacy,
                    X,
                    y,
                    lam="auto" if found_lam is None else found_lam,
                    noise=settings.named_noise(),
                    fit_intercept=not no_intercept,
                    screen=settings.screened(),
                    binary=binary,
                    records=row or "auto",
                    releases=1000 if releases is None else releases,
                    level=level,
                    rng=seed,
                    progress=progress,
                )
        again = _in_lines(["privasso", *sys.argv[1:]])
        paths = dict(outputs.paths)
        outputs.write({name: found.text(path.suffix, again) for name, path in paths.items()})
    if as_json:
        print(json_text(found.to_dict()))
    else:
        print(found)
        if paths:
            print(f"\nwrote {' and '.join(map(str, paths.values()))}")
    if found.passed is False:
        raise typer.Exit(1)


def _in_lines(words: Sequence[str]) -> str:
    r"""A command, with each of its options on a line of its own.

    >>> print(_in_lines(["privasso", "audit", "my data.csv", "--y-bounds", "-1", "1", "--binary"]))
    privasso audit 'my data.csv' \
        --y-bounds -1 1 \
        --binary
    """
    lines: list[list[str]] = [[]]
    for word in words:
        if word.startswith("--"):
            lines.append([])
        lines[-1].append(word)
    return " \\\n    ".join(map(shlex.join, lines))


def _labels(settings: FitSettings) -> Any:
    """Labels to look for in what a program writes; None without a column of labels."""
    from privasso.cli._fit_read import table_of

    if settings.target is None:
        return None
    return table_of(settings).columns_and_labels([], settings.target, categorical=[])[1]


def _data(settings: FitSettings, quiet: bool) -> tuple[Privacy, Any, Any]:
    """What to protect, covariates and labels, read as a fit reads them."""
    from privasso.cli._fit_privacy import privacy_from
    from privasso.cli._fit_read import in_memory
    from privasso.cli._progress import working
    from privasso.tables import check_labels

    with working("Reading", quiet=quiet):
        table = in_memory(settings)
        assert table.labels is not None
        privacy, known = privacy_from(settings, table.dictionary), table.dictionary
        if known is None:
            check_labels(table.labels)
        elif known.bounds is not None:  # an attack knows no names
            privacy = replace(cast(Any, privacy), bounds=list(known.bounds.values()))
        return privacy, table.X, table.labels
