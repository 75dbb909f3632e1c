"""Measured points with error bars, and strips that show how the runs of Algorithm 1 ended."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from privasso.figures import GREY, PINK
from privasso.paper.figures._looks import DESIGNS, LOOKS

if TYPE_CHECKING:
    import polars as pl

#: Column, name and colour of each way in which Algorithm 1 ends (None: colour of the design).
OUTCOMES = (
    ("amp_converged", "converged", None),
    ("amp_flicker", "does not settle", "#F0E442"),
    ("amp_diverged", "blows up", PINK),
    ("amp_unbounded", "no minimiser", "#333333"),
)


def shown(table: pl.DataFrame, count: str) -> pl.DataFrame:
    """Rows in which at least half of the data sets gave a value; means of fewer are not shown."""
    return table.filter(table[count] * 2 >= table["samples"])


def measured(axes: Any, table: pl.DataFrame, x: str, y: str, design: str) -> None:
    """Draw the exact solver (open marks) and Algorithm 1 (crosses) against x, with error bars."""
    look = LOOKS[design]
    exact = shown(table, "exists")
    axes.errorbar(
        exact[x], exact[y], exact[f"{y}_se"], fmt=look.marker, color=look.colour, ms=5,
        mfc="white", lw=1.0, capsize=2, zorder=3,
    )  # fmt: skip
    paper = shown(table, "amp_converged")
    axes.errorbar(
        paper[x], paper[f"amp_{y}"], paper[f"amp_{y}_se"], fmt="x", color=look.colour, ms=4.5,
        lw=1.0, mew=1.2, zorder=4,
    )  # fmt: skip


def strip(axes: Any, table: pl.DataFrame, x: str, *, names: bool) -> None:
    """Draw one row of bars per design: the shares of data sets by how Algorithm 1 ended."""
    levels = np.unique(table[x].to_numpy())
    half = 0.42 * np.min(np.diff(np.log(levels)))
    for base, design in ((1.1, "isotropic"), (0.0, "gram")):
        rows = table.filter(design=design).sort(x)
        centre = np.log(rows[x].to_numpy())
        left, right = np.exp(centre - half), np.exp(centre + half)
        floor = np.full(rows.height, base)
        for column, _, colour in OUTCOMES:
            share = (rows[column] / rows["samples"]).to_numpy()
            axes.bar(
                left, share, right - left, floor, align="edge",
                color=colour or LOOKS[design].colour, lw=0,
            )  # fmt: skip
            floor = floor + share
    axes.set_ylim(-0.05, 2.15)
    axes.set_yticks([0.5, 1.6], ["Gram", "iso."] if names else ["", ""])
    axes.tick_params(axis="y", length=0, labelsize=8)
    axes.spines[["top", "right", "left"]].set_visible(False)
    if names:
        axes.set_title("runs of Algorithm 1", loc="left", fontsize=8, pad=2, color=GREY)


def strip_legend() -> list[tuple[str, dict[str, Any]]]:
    """Return the entries of the legend for `measured` and `strip`."""
    square = {"ls": "none", "marker": "s", "ms": 8, "mew": 0}
    marks: list[tuple[str, dict[str, Any]]] = [
        (LOOKS[design].name, {"color": LOOKS[design].colour, "lw": 3}) for design in DESIGNS
    ]
    marks += [
        ("state evolution", {"color": GREY, "lw": 1.4}),
        ("exact solver", {"color": GREY, "ls": "none", "marker": "o", "mfc": "white", "ms": 5}),
        ("Algorithm 1", {"color": GREY, "ls": "none", "marker": "x", "ms": 5}),
    ]
    return marks + [
        (name, {**square, "color": colour}) for _, name, colour in OUTCOMES if colour is not None
    ]
