"""`privasso reproduce`: the paper's figures and claims, computed again."""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import TYPE_CHECKING

from privasso._text import escaped
from privasso.cli._options import AsJson, Force, argument, option

if TYPE_CHECKING:
    from privasso.paper import Reproduction

#: Width of a terminal, in characters, from which the table shows the numbers too.
WIDE = 140
COLOURS = {
    "confirmed": "green", "partly": "yellow", "undecided": "yellow", "contradicted": "red"
}  # fmt: skip


def reproduce(
    figures: list[str] | None = argument(
        "Some of fig1 … fig5, similar, small, map, kkt, leakage, tail, correlated; all if none.",
        None,
    ),
    quick: bool = option("Smaller and fewer data sets: about a minute.", False),
    out: Path = option("Folder for the page, tables and figures.", Path("reproduction")),
    samples: int | None = option("Data sets per point [default: 100, quick 12]."),
    jobs: int | None = option("Processes [default: the number of cores]."),
    seed: int = option("Seed of all draws.", 0),
    force: Force = False,
    as_json: AsJson = False,
) -> None:
    """Compute the paper's figures and claims again; write a page, tables and figures.

    After an interruption the same command continues where it stopped.

    Example: `privasso reproduce --quick --out reproduction`
    """
    from privasso._validation import integer
    from privasso.cli._progress import counting
    from privasso.paper import Settings
    from privasso.paper import reproduce as run

    if not force and out.is_dir() and any(out.iterdir()) and not (out / ".store").is_dir():
        raise ValueError(
            f"--out {escaped(out)} holds files that are not of a reproduction; name a new folder, "
            "or replace files of the same names with --force"
        )
    make = Settings.quick if quick else Settings.full
    given = {} if samples is None else {"samples": integer("--samples", samples, minimum=2)}
    settings = make(seed=integer("--seed", seed, minimum=0), **given)
    workers = os.cpu_count() or 1 if jobs is None else integer("--jobs", jobs, minimum=1)
    try:
        with counting("Simulating", quiet=as_json, lines=True) as progress:
            found = run(out, figures or [], settings=settings, jobs=workers, progress=progress)
    except KeyboardInterrupt as error:
        error.add_note("Run the same command again to continue.")
        raise
    if as_json:
        claims = [claim.record(finding) for claim, finding in found.claims]
        print(json.dumps({"claims": claims, "manifest": found.manifest}, indent=2))
    else:
        _print(found)


def _print(found: Reproduction) -> None:
    """Print the claims with their verdicts, and where the files are."""
    from rich.console import Console
    from rich.table import Table

    from privasso.paper import parted

    console = Console(highlight=False)
    wide = console.width >= WIDE
    for name, part in parted(found.claims).items():
        table = Table(title=name, title_justify="left", show_lines=True)
        for column in ("", "claim", "verdict", "measured") if wide else ("", "claim", "verdict"):
            table.add_column(column)
        for claim, finding in part:
            verdict = finding.verdict.value
            colour = COLOURS.get(verdict, "dim")
            cells = [claim.key, claim.statement, f"[{colour}]{verdict}[/{colour}]"]
            table.add_row(*cells, *([finding.measured] if wide else []))
        console.print(table)
    console.print(
        f"Claims with their tests and numbers: {found.folder / 'claims.md'}", soft_wrap=True
    )
    console.print(f"Page: {found.page}", soft_wrap=True)
