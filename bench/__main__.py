"""Run the benchmarks: ``python -m bench [NAME ...] [--write]``.

With ``--write``, the tables replace their sections of `docs/benchmarks.md`.
"""

from __future__ import annotations

import argparse
import importlib
import os
import platform
from pathlib import Path

import polars as pl

NAMES = [
    "passes",
    "single",
    "everywhere",
    "paths",
    "memory",
    "clipped",
    "many",
    "batches",
    "unbounded",
    "start_up",
    "theory",
    "reproduction",
    "fit",
    "fit_records",
    "boundary",
    "design",
    "formal",
    "audits",
]
PAGE = Path(__file__).parent.parent / "docs" / "benchmarks.md"
HEAD = """# Benchmarks

Ratios, each table measured in one run on one machine; `make bench` runs them again and
`python -m bench --write` renews this page. Contenders take turns and the best of several runs
counts. Last run: {machine}, {cores} cores, Python {python}.
"""


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m bench", description=__doc__)
    parser.add_argument("names", nargs="*", default=NAMES, help=f"any of {', '.join(NAMES)}")
    parser.add_argument("--write", action="store_true", help="renew docs/benchmarks.md")
    arguments = parser.parse_args()
    sections = read()
    for name in arguments.names:
        module = importlib.import_module(f"bench.{name}")
        table = module.run()
        print(f"\n{module.TITLE}\n{module.NOTE}")
        with pl.Config(tbl_rows=-1, tbl_cols=-1, tbl_hide_dataframe_shape=True, float_precision=3):
            print(table)
        sections[module.TITLE] = f"{module.NOTE}\n\n{markdown(table)}\n"
    if arguments.write:
        write(sections)


def read() -> dict[str, str]:
    """Sections of the page by title, in their order."""
    parts = PAGE.read_text(encoding="utf-8").split("\n## ")[1:] if PAGE.exists() else []
    return {title: body.strip("\n") + "\n" for title, _, body in (p.partition("\n") for p in parts)}


def write(sections: dict[str, str]) -> None:
    head = HEAD.format(
        machine=platform.machine(), cores=os.cpu_count(), python=platform.python_version()
    )
    bodies = [f"## {title}\n\n{body}" for title, body in sections.items()]
    PAGE.write_text("\n".join([head, *bodies]), encoding="utf-8")


def markdown(table: pl.DataFrame) -> str:
    """The table in Markdown, numbers to three digits."""

    def cell(value: object) -> str:
        return f"{value:.3g}" if isinstance(value, float) else "" if value is None else str(value)

    lines = ["| " + " | ".join(table.columns) + " |", "|" + "---|" * table.width]
    lines += ["| " + " | ".join(cell(v) for v in row) + " |" for row in table.iter_rows()]
    return "\n".join(lines)


if __name__ == "__main__":
    main()
