"""The verbs with which figures are drawn."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import numpy as np
import polars as pl

from privasso.figures import GREY, PINK, Axes, Figure, plain_ticks
from privasso.paper.figures._figure import DESIGNS, LOOKS, shown

#: An entry of a legend: its name, and the look of its line or marker, or of several side by side.
Ink = dict[str, Any]
Entry = tuple[str, "Ink | list[Ink]"]

#: Column, name and colour of each way in which Algorithm 1 ends (None: colour of the design).
OUTCOMES = (
    ("amp_converged", "converged", None),
    ("amp_flicker", "does not settle", "#F0E442"),
    ("amp_diverged", "blows up", PINK),
    ("amp_unbounded", "no minimiser", "#333333"),
)
#: Look of a mean with its standard error.
OPEN = {"ms": 5, "mfc": "white", "lw": 1.0, "capsize": 2}


def finish(axes: Axes, title: str = "", *, log: str = "xy", **properties: Any) -> None:
    """Logarithmic axes with plain numbers, no upper and right lines, a title, and properties."""
    for name in log:
        getattr(axes, f"set_{name}scale")("log")
    axes.set(**properties)
    for name in log:
        plain_ticks(getattr(axes, f"{name}axis"))
    axes.spines[["top", "right"]].set_visible(False)
    axes.tick_params(labelsize=9)
    if title:
        axes.set_title(title, loc="left", fontsize=10)


def note(axes: Axes, text: str, at: Any, shift: tuple[float, float], **look: Any) -> None:
    """Write a few words next to a point, shifted by some points of print."""
    look = {"fontsize": 9, **look}
    axes.annotate(text, at, xytext=shift, textcoords="offset points", **look)


def legend(figure: Figure, entries: list[Entry], *, columns: int = 0) -> None:
    """Add a legend above the figure, from names and looks, in one line or in some columns."""
    from matplotlib.legend_handler import HandlerTuple
    from matplotlib.lines import Line2D

    several = [looks if isinstance(looks, list) else [looks] for _, looks in entries]
    handles: list[Any] = [tuple(Line2D([], [], **look) for look in looks) for looks in several]
    figure.legend(
        handles, [name for name, _ in entries], frameon=False, fontsize=9,
        loc="outside upper left", ncols=columns or len(handles), handlelength=2.0,
        columnspacing=1.6, borderaxespad=0.2,
        handler_map={tuple: HandlerTuple(ndivide=None, pad=0.4)},
    )  # fmt: skip


def lines(designs: Iterable[str]) -> list[Entry]:
    """Entries of a legend: a thick line in the colour of each design."""
    return [(LOOKS[name].name, {"color": LOOKS[name].colour, "lw": 3}) for name in designs]


def marks(**changes: Any) -> list[Ink]:
    """The markers of the two designs side by side, as they are drawn, or changed."""
    looks = ({"marker": LOOKS[x].marker, "color": LOOKS[x].colour} for x in DESIGNS)
    return [{"ls": "none", "ms": 5, "mfc": "white", **look, **changes} for look in looks]


def designs_legend() -> list[Entry]:
    """Entries of a legend: line and open marker of each of the paper's designs."""
    return [
        (LOOKS[x].name, {"color": LOOKS[x].colour, "lw": 1.4, "marker": LOOKS[x].marker,
                         "mfc": "white", "ms": 5})
        for x in DESIGNS
    ]  # fmt: skip


def predicted(axes: Axes, theory: pl.DataFrame, x: str, y: str, **at: object) -> None:
    """Draw state evolution against x for both designs, as far as it has a fixed point."""
    for design in DESIGNS:
        line = theory.filter(design=design, status="stable", **at).sort(x)
        axes.plot(line[x], line[y], color=LOOKS[design].colour, lw=1.4)


def measured(axes: Axes, points: pl.DataFrame, x: str, y: str, **at: object) -> None:
    """Draw means with standard errors against x for both designs: the exact solver (open marks)."""
    for design in DESIGNS:
        rows = shown(points.filter(design=design, **at), "exists")
        look = {"fmt": LOOKS[design].marker, "color": LOOKS[design].colour, **OPEN}
        axes.errorbar(rows[x], rows[y], rows[f"{y}_se"], zorder=3, **look)


def algorithm_1(axes: Axes, points: pl.DataFrame, x: str, y: str, **at: object) -> None:
    """Draw the same means of Algorithm 1 (crosses)."""
    for design in DESIGNS:
        rows = shown(points.filter(design=design, **at), "amp_converged")
        axes.errorbar(
            rows[x], rows[f"amp_{y}"], rows[f"amp_{y}_se"], fmt="x", color=LOOKS[design].colour,
            ms=4.5, lw=1.0, mew=1.2, zorder=4,
        )  # fmt: skip


def theory_and_solver() -> list[Entry]:
    """Entries of a legend: lines of state evolution, and marks of the exact solver."""
    line = [{"color": LOOKS[x].colour, "lw": 1.4} for x in DESIGNS]
    return [("state evolution", line), ("exact solver", marks())]


def compared(
    axes: Axes, points: pl.DataFrame, theory: pl.DataFrame, x: str, y: str, **at: object
) -> None:
    """State evolution, the exact solver and Algorithm 1 in one panel."""
    predicted(axes, theory, x, y, **at)
    measured(axes, points, x, y, **at)
    algorithm_1(axes, points, x, y, **at)


def strip(axes: Axes, table: pl.DataFrame, x: str, *, names: bool) -> None:
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
            ink = colour or LOOKS[design].colour
            axes.bar(left, share, right - left, floor, align="edge", color=ink, lw=0)
            floor = floor + share
    axes.set_ylim(-0.05, 2.15)
    axes.set_yticks([0.5, 1.6], ["Gram", "iso."] if names else ["", ""])
    axes.tick_params(axis="y", length=0, labelsize=8)
    axes.spines[["top", "right", "left"]].set_visible(False)
    if names:
        axes.set_title("runs of Algorithm 1", loc="left", fontsize=8, pad=2, color=GREY)


def runs_legend(*, ends: bool = True) -> list[Entry]:
    """Return the entries of the legend for all that is drawn of runs, and of how they ended."""
    square = {"ls": "none", "marker": "s", "ms": 8, "mew": 0}
    drawn: list[Entry] = [
        *lines(DESIGNS),
        *theory_and_solver(),
        ("Algorithm 1", marks(marker="x", mew=1.2)),
    ]
    if not ends:
        return drawn
    return drawn + [
        (name, {**square, "color": ink}) for _, name, ink in OUTCOMES if ink is not None
    ]
