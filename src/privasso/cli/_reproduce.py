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
    """Print the claims with their verdicts and numbers, and where the files are."""
    from privasso.paper import parted

    for name, part in parted(found.claims).items():
        print(f"\n{name}")
        for claim, finding in part:
            print(f"{claim.key:<3} {finding.verdict.value:<13} {claim.statement}")
            print(f"{'':17} {finding.measured}")
    print(f"\nClaims with their tests and numbers: {found.folder / 'claims.md'}")
    print(f"Page: {found.page}")
