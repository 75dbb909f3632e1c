"""The tables and pictures of `privasso demo` in the documentation.

``python -m bench.demo --write`` renews `docs/data/demo-*.csv` and the pictures.
"""

from __future__ import annotations

from functools import partial

import polars as pl

from bench.page import DATA, renew
from privasso.cli._demo import COMPARISONS, _columns, _compare
from privasso.examples import comparison_figure
from privasso.figures import save

DRAWS = 50


def table(name: str) -> pl.DataFrame:
    found = _compare(name, COMPARISONS[name][1], DRAWS, 0)
    title = f"{COMPARISONS[name][0]}; {DRAWS} splits"
    save(comparison_figure(found, title), DATA.parent / "images" / f"example-{name}.png")
    return pl.DataFrame(_columns(found))


if __name__ == "__main__":
    tables = {name: partial(table, name) for name in COMPARISONS}
    renew("python -m bench.demo", __doc__, tables, "demo")
