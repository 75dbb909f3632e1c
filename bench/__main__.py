"""Run the benchmarks: ``python -m bench [NAME ...] [--write]``.

With ``--write``, the tables are kept in `docs/data`, from which `docs/benchmarks.md` takes them.
"""

from __future__ import annotations

import argparse
import importlib
import os
import platform

import polars as pl

from bench.page import write

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
    "boundary",
    "design",
    "formal",
    "audits",
]


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m bench", description=__doc__)
    parser.add_argument("names", nargs="*", default=NAMES, help=f"any of {', '.join(NAMES)}")
    parser.add_argument("--write", action="store_true", help="renew docs/data/bench-*.csv")
    arguments = parser.parse_args()
    for name in arguments.names:
        module = importlib.import_module(f"bench.{name}")
        table = module.run()
        print(f"\n{module.TITLE}\n{module.NOTE}")
        with pl.Config(tbl_rows=-1, tbl_cols=-1, tbl_hide_dataframe_shape=True, float_precision=3):
            print(table)
        if arguments.write:
            write(f"bench-{name}", table, f"python -m bench {name} --write", digits=3)
    if arguments.write:
        facts = {"machine": platform.machine(), "cores": os.cpu_count()}
        facts |= {"Python": platform.python_version()}
        found = pl.DataFrame({"fact": list(facts), "value": [str(x) for x in facts.values()]})
        write("bench-machine", found, "python -m bench --write")


if __name__ == "__main__":
    main()
