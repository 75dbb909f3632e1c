"""A picture of what privacy costs on real tables, from the tables with all results."""

from __future__ import annotations

import csv
import re
from pathlib import Path
from typing import Any

from bench.page import DATA
from privasso.figures import BLUE, GREY, ORANGE, figure, save

_FILES = {
    "whole records are private": (
        "real-records",
        ("AdaSSP", "boosted AdaSSP", "TukeyEM", "DP-SGD"),
    ),
    "labels are private, covariates public": (
        "real-labels",
        ("label noise + LassoCV", "noisy products", "diagonal noise"),
    ),
}
_EPSILON = "1"
#: Scores below this are drawn at the edge.
_LOWEST = -0.12


def draw(path: Path) -> None:
    """Draw R² at ε = 1 of privasso, of the best alternative of each table and without privacy.

    A second picture, whose name ends in -phone, has one panel above the other.
    """
    _draw(path, (9.2, 4.6), (1, 2))
    _draw(path.with_stem(f"{path.stem}-phone"), (4.4, 8.4), (2, 1))


def _draw(path: Path, size: tuple[float, float], panels: tuple[int, int]) -> None:
    found = {title: _scores(file, peers) for title, (file, peers) in _FILES.items()}
    fig = figure(*size)
    for axes, (title, rows) in zip(fig.subplots(*panels), found.items(), strict=True):
        _panel(axes, title, rows, f"best of {len(_FILES[title][1])} alternatives")
    fig.suptitle(
        f"R² on new rows at ε = {_EPSILON}, δ = 10⁻⁶, default settings",
        fontsize=11,
        x=0.01,
        ha="left",
    )
    save(fig, path)


def _panel(axes: Any, title: str, rows: dict[str, tuple[float, float, float]], peer: str) -> None:
    names = sorted(rows, key=lambda name: -rows[name][2])
    for rank, name in enumerate(names):
        ours, theirs, without = rows[name]
        axes.plot([max(ours, _LOWEST), without], [rank, rank], color=BLUE, linewidth=1.0, zorder=1)
        first = rank == 0
        axes.plot(without, rank, "o", mfc="white", mec=GREY, label="no privacy" if first else None)
        axes.plot(
            max(ours, _LOWEST), rank, "o", color=BLUE, label="privasso" if first else None, zorder=3
        )
        marker = "<" if theirs < _LOWEST else "x"
        axes.plot(max(theirs, _LOWEST), rank, marker, color=ORANGE, zorder=4)
    axes.plot([], [], "x", color=ORANGE, label=peer)
    if any(theirs < _LOWEST for _, theirs, _ in rows.values()):
        axes.plot([], [], "<", color=ORANGE, label=f"the same, below −{-_LOWEST:g}")
    axes.axvline(0.0, color=GREY, linewidth=0.8)
    axes.set_yticks(range(len(names)), names, fontsize=8)
    axes.invert_yaxis()
    axes.set_xlim(_LOWEST - 0.04, 1.0)
    axes.set_title(title, loc="left", fontsize=10)
    axes.spines[["top", "right"]].set_visible(False)
    axes.legend(fontsize=8, frameon=False, loc="lower right")


def _scores(file: str, peers: tuple[str, ...]) -> dict[str, tuple[float, float, float]]:
    """(privasso, best alternative, no privacy) of each table; every method in its better form."""
    with (DATA / f"{file}.csv").open(encoding="utf-8", newline="") as source:
        rows = [row for row in csv.DictReader(source) if row["ε"] == _EPSILON]
    found: dict[str, tuple[float, float, float]] = {}
    for row in rows:
        best = max(_number(row[name]) for name in peers)
        here = (_number(row["privasso"]), best, _number(row["no privacy"]))
        before = found.get(row["table"], here)
        ours, theirs, without = (max(pair) for pair in zip(here, before, strict=True))
        found[row["table"]] = (ours, theirs, without)
    return found


def _number(cell: str) -> float:
    found = re.match(r"[−-]?[0-9.]+", cell.replace("<", "").strip())
    assert found is not None, cell
    return float(found.group().replace("−", "-"))
