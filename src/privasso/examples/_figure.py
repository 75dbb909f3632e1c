"""The figure of a comparison: R² against ε for every method."""

from __future__ import annotations

from typing import Any

import polars as pl

from privasso.figures import BLACK, BLUE, GREEN, GREY, ORANGE, PINK, SKY, panels

LOOKS = {
    "default": (BLACK, "*", "-"),
    "isotropic": (ORANGE, "s", "-"),
    "power 1/2": (SKY, "D", "-"),
    "power 1": (GREEN, "^", "-"),
    "Gram": (BLUE, "o", "-"),
    "label noise": (PINK, "v", "-"),
    "isotropic, standardised": (ORANGE, "s", ":"),
    "label noise, standardised": (PINK, "v", ":"),
}
FLAT = {"no privacy": "-", "no privacy, standardised": ":"}
TITLES = {
    "auto": "λ from the noisy statistics alone",
    "oracle": "λ tuned on the test rows (impossible in practice)",
}


def comparison_figure(table: pl.DataFrame, title: str) -> Any:
    """Draw medians over the draws with quartiles; `table` comes from `summarise`."""
    fig, both = panels(10.0, 4.6, 2, sharex=True, sharey=True)
    for axes, (rule, name) in zip(both, TITLES.items(), strict=True):
        part = table.filter(rule=rule)
        for number, (method, (colour, marker, line)) in enumerate(LOOKS.items()):
            of = part.filter(method=method).sort("epsilon")
            if of.height == 0:
                continue
            shift = 1.0 + 0.025 * (number - 4)  # so that error bars do not overlap
            spread = [of["r2"] - of["lower"], of["upper"] - of["r2"]]
            axes.errorbar(
                of["epsilon"] * shift, of["r2"], spread, color=colour, marker=marker,
                linestyle=line, markersize=5, linewidth=1.3, elinewidth=0.8, capsize=2,
                label=method, markerfacecolor="white",
            )  # fmt: skip
        for method, line in FLAT.items():
            level = part.filter(method=method)["r2"].mean()
            if level is not None:
                axes.axhline(level, color=GREY, linewidth=1.0, linestyle=line, label=method)
        axes.set_xscale("log")
        at = sorted(table["epsilon"].unique().to_list())
        axes.set_xticks(at, [f"{epsilon:g}" for epsilon in at])
        axes.set_xticks([], minor=True)
        axes.set_xlabel("ε")
        axes.set_title(name, loc="left", fontsize=10)
        axes.axhline(0.0, color=GREY, linewidth=0.6)
    top = float(table["upper"].max())  # type: ignore[arg-type]
    both[0].set_ylim(-0.25, max(top, 0.1) * 1.08)
    both[0].set_ylabel("R² on new rows")
    handles, labels = both[0].get_legend_handles_labels()
    fig.legend(handles, labels, loc="outside lower center", ncols=5, frameon=False, fontsize=8.5)
    fig.suptitle(title, fontsize=10.5, x=0.01, ha="left")
    return fig
