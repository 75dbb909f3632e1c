"""The figure of a comparison: R² against ε for every method."""

from __future__ import annotations

from typing import Any

import polars as pl

from privasso.examples._compare import LABEL_NOISE, LABELS, NO_PRIVACY, RECORDS
from privasso.figures import BLUE, GREY, ORANGE, SKY, panels

LOOKS = {RECORDS: (BLUE, "o"), LABELS: (SKY, "D"), LABEL_NOISE: (ORANGE, "x")}
#: R² below this is cut off.
_LOWEST = -0.25


def comparison_figure(table: pl.DataFrame, title: str) -> Any:
    """Draw medians over the splits with quartiles; `table` comes from `summarise`."""
    fig, (axes,) = panels(6.4, 3.8)
    for number, (method, (colour, marker)) in enumerate(LOOKS.items()):
        of = table.filter(method=method).sort("epsilon")
        spread = [of["r2"] - of["lower"], of["upper"] - of["r2"]]
        shift = 1.0 + 0.03 * (number - 1)  # so that error bars do not overlap
        axes.errorbar(
            of["epsilon"] * shift, of["r2"], spread, color=colour, marker=marker, markersize=6,
            linewidth=1.3, elinewidth=0.8, capsize=2, label=method, markerfacecolor="white",
        )  # fmt: skip
    without = table.filter(method=NO_PRIVACY)["r2"].item()
    axes.axhline(without, color=GREY, linewidth=1.0, linestyle="--", label=NO_PRIVACY)
    axes.axhline(0.0, color=GREY, linewidth=0.6)
    axes.set_xscale("log")
    at = table["epsilon"].drop_nulls().unique().sort().to_list()
    axes.set_xticks(at, [f"{epsilon:g}" for epsilon in at])
    axes.set_xticks([], minor=True)
    axes.set_xlabel("ε")
    axes.set_ylabel("R² on new rows")
    axes.set_ylim(_LOWEST, 1.08 * max(without, 0.1))
    axes.legend(frameon=False, fontsize=8.5, loc="lower right")
    fig.suptitle(title, fontsize=10.5, x=0.01, ha="left")
    return fig
