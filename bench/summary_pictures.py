"""Pictures of long tables in `docs/data`."""

from __future__ import annotations

import csv
from typing import Any

from bench.page import DATA
from privasso.figures import BLUE, GREY, ORANGE, figure, plain_ticks, save

IMAGES = DATA.parent / "images"
#: Scores below this are drawn at the edge.
LOWEST = -0.12


def _rows(name: str) -> list[dict[str, str]]:
    with (DATA / f"{name}.csv").open(encoding="utf-8", newline="") as source:
        return list(csv.DictReader(source))


def draw() -> None:
    """Draw the solvers on many matrices, and chosen columns on real tables."""
    save(_everywhere(), IMAGES / "bench-everywhere.png")
    save(_wide(), IMAGES / "wide-real.png")


def _everywhere() -> Any:
    """The time of the fastest peer over ours: a mark for each λ, a line for each matrix."""
    rows = _rows("bench-everywhere")
    names = list(dict.fromkeys(row["matrix"] for row in rows))
    canvas = figure(8.4, 7.4)
    axes = canvas.subplots()
    edge = 60.0
    for row in rows:
        place = names.index(row["matrix"])
        if row["ratio"] == "tie":
            axes.plot(1.0, place, "o", mfc="white", mec=GREY, ms=5)
        elif row["ratio"] == "only ours":
            axes.plot(edge, place, ">", color=BLUE, ms=6, alpha=0.7)
        else:
            ratio = float(row["ratio"])
            axes.plot(ratio, place, "o", color=BLUE if ratio >= 1.0 else ORANGE, ms=5, alpha=0.7)
    axes.axvline(1.0, color=GREY, lw=0.8)
    axes.set_xscale("log")
    axes.set_xlim(0.7, 75.0)
    plain_ticks(axes.xaxis)
    axes.set_yticks(range(len(names)), names, fontsize=8)
    axes.invert_yaxis()
    axes.spines[["top", "right"]].set_visible(False)
    axes.grid(axis="y", color=GREY, alpha=0.15)
    axes.set_xlabel("time of the fastest peer / time of privasso, one mark for each λ")
    marks = [
        ("we are faster", {"marker": "o", "color": BLUE}),
        ("a peer is faster", {"marker": "o", "color": ORANGE}),
        ("both take less than 2 ms", {"marker": "o", "mfc": "white", "mec": GREY}),
        ("no peer finished", {"marker": ">", "color": BLUE}),
    ]
    _legend(canvas, marks)
    return canvas


def _wide() -> Any:
    """R² at ε = 1 of chosen columns, of the best peer as published, and without privacy."""
    canvas = figure(9.2, 4.6)
    panels = canvas.subplots(1, 2)
    titles = {"wide-real-labels": "private labels", "wide-real-records": "private records"}
    for axes, (name, title) in zip(panels, titles.items(), strict=True):
        rows = [row for row in _rows(name) if row["ε"] == "1"]
        rows.sort(key=lambda row: -float(row["no privacy"]))
        for place, row in enumerate(rows):
            ours, without = float(row["**screen, then fit**"]), float(row["no privacy"])
            skip = {"table", "rows × columns", "ε", "**screen, then fit**", "no privacy"}
            peers = max(float(cell.split(" (")[0]) for key, cell in row.items() if key not in skip)
            axes.plot([max(ours, LOWEST), without], [place] * 2, color=BLUE, lw=1.0, zorder=1)
            axes.plot(without, place, "o", mfc="white", mec=GREY)
            axes.plot(max(peers, LOWEST), place, "x", color=ORANGE, zorder=4)
            axes.plot(max(ours, LOWEST), place, "o", color=BLUE, zorder=3)
        axes.set_yticks(range(len(rows)), [row["table"] for row in rows], fontsize=8)
        axes.invert_yaxis()
        axes.axvline(0.0, color=GREY, lw=0.8)
        axes.spines[["top", "right"]].set_visible(False)
        axes.set_title(title, loc="left", fontsize=10)
        axes.set_xlabel("R² on new rows, ε = 1, δ = 10⁻⁶")
        axes.set_xlim(LOWEST - 0.02, 1.0)
    _legend(
        canvas,
        [
            ("no privacy", {"marker": "o", "mfc": "white", "mec": GREY}),
            ('screen="auto"', {"marker": "o", "color": BLUE}),
            ("best of the peers as published", {"marker": "x", "color": ORANGE}),
        ],
    )
    return canvas


def _legend(canvas: Any, entries: list[tuple[str, dict[str, Any]]]) -> None:
    from matplotlib.lines import Line2D

    handles = [Line2D([], [], ls="none", label=name, **look) for name, look in entries]
    canvas.legend(
        handles=handles, frameon=False, fontsize=9, loc="outside upper left", ncols=len(handles)
    )
