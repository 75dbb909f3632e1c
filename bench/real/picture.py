"""A picture of what privacy costs on real tables, from the pages with all results."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

from privasso.figures import BLUE, GREY, ORANGE, figure, save

_PAGES = {
    "labels are private, covariates public": (
        Path("docs/real-tables.md"),
        ("label noise + LassoCV", "noisy products", "diagonal noise"),
    ),
    "whole records are private": (
        Path("docs/real-records.md"),
        ("AdaSSP", "boosted AdaSSP", "TukeyEM", "DP-SGD"),
    ),
}
_EPSILON = "1"
#: Scores below this are drawn at the edge.
_LOWEST = -0.12


def draw(path: Path) -> None:
    """Draw R² at ε = 1 of privasso, of the best alternative of each table and without privacy."""
    found = {title: _scores(page, peers) for title, (page, peers) in _PAGES.items()}
    fig = figure(9.2, 4.6)
    for axes, (title, rows) in zip(fig.subplots(1, 2), found.items(), strict=True):
        _panel(axes, title, rows, f"best of {len(_PAGES[title][1])} alternatives")
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


def _scores(page: Path, peers: tuple[str, ...]) -> dict[str, tuple[float, float, float]]:
    """(privasso, best alternative, no privacy) of each table, columns as they were recorded."""
    lines = page.read_text(encoding="utf-8").splitlines()
    start = next(k for k, line in enumerate(lines) if line.startswith("| table |"))
    names = _cells(lines[start])
    found = {}
    for line in lines[start + 2 :]:
        if not line.startswith("|"):
            break
        row = dict(zip(names, _cells(line), strict=True))
        if row["ε"] == _EPSILON and row.get("form", "raw") == "raw":
            best = max(_number(row[name]) for name in peers)
            found[row["table"]] = (_number(row["privasso"]), best, _number(row["no privacy"]))
    return found


def _cells(line: str) -> list[str]:
    return [cell.strip() for cell in line.strip("|").split("|")]


def _number(cell: str) -> float:
    found = re.match(r"[−-]?[0-9.]+", cell.replace("<", "").strip())
    assert found is not None, cell
    return float(found.group().replace("−", "-"))
