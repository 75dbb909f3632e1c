"""The verbs with which figures are drawn."""

from __future__ import annotations

import numpy as np
import polars as pl

from privasso._types import Passed
from privasso.figures import GREY, PINK, Axes, Figure, figure, plain_ticks
from privasso.paper._figure import DESIGNS, LOOKS, shown

#: An entry of a legend: its name, and the look of its line or marker, or of several side by side.
Ink = dict[str, Passed]
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


def panels(
    width: float,
    height: float,
    rows: int,
    columns: int,
    *,
    x: str = "",
    y: str = "",
    **layout: Passed,
) -> tuple[Figure, np.ndarray]:
    """A figure and its panels, with names of the axes below the last and left of the first ones."""
    canvas = figure(width, height)
    found = canvas.subplots(rows, columns, squeeze=False, **layout)
    for axes in found[-1]:
        axes.set_xlabel(x)
    for axes in found[:, 0]:
        axes.set_ylabel(y)
    return canvas, found


def finish(axes: Axes, title: str = "", *, log: str = "xy", **properties: Passed) -> None:
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


def note(
    axes: Axes, text: str, at: tuple[float, float], shift: tuple[float, float], **look: Passed
) -> None:
    """Write a few words next to a point, shifted by some points of print."""
    look = {"fontsize": 9, **look}
    axes.annotate(text, at, xytext=shift, textcoords="offset points", **look)


def legend(figure: Figure, entries: list[Entry], *, columns: int = 0) -> None:
    """Add a legend above the figure, from names and looks, in one line or in some columns."""
    from matplotlib.legend_handler import HandlerTuple
    from matplotlib.lines import Line2D

    several = [looks if isinstance(looks, list) else [looks] for _, looks in entries]
    handles: list[Passed] = [tuple(Line2D([], [], **look) for look in looks) for looks in several]
    figure.legend(
        handles, [name for name, _ in entries], frameon=False, fontsize=9,
        loc="outside upper left", ncols=columns or len(handles), handlelength=2.0,
        columnspacing=1.6, borderaxespad=0.2,
        handler_map={tuple: HandlerTuple(ndivide=None, pad=0.4)},
    )  # fmt: skip


#: Entries of a legend: a thick line in the colour of each design of the paper.
LINES: list[Entry] = [(LOOKS[x].name, {"color": LOOKS[x].colour, "lw": 3}) for x in DESIGNS]


def marks(**changes: Passed) -> list[Ink]:
    """The markers of the two designs side by side, as they are drawn, or changed."""
    looks = ({"marker": LOOKS[x].marker, "color": LOOKS[x].colour} for x in DESIGNS)
    return [{"ls": "none", "ms": 5, "mfc": "white", **look, **changes} for look in looks]


#: Lines of state evolution, and marks of the exact solver and of Algorithm 1.
SOLVED: list[Entry] = [
    *LINES,
    ("state evolution", [{"color": LOOKS[x].colour, "lw": 1.4} for x in DESIGNS]),
    ("exact solver", marks()),
]
RUNS: list[Entry] = [*SOLVED, ("Algorithm 1", marks(marker="x", mew=1.2))]
#: The same and how runs of Algorithm 1 end, as `strip` draws it.
ENDS: list[Entry] = RUNS + [
    (name, {"ls": "none", "marker": "s", "ms": 8, "mew": 0, "color": colour})
    for _, name, colour in OUTCOMES
    if colour is not None
]


def compared(
    axes: Axes,
    points: pl.DataFrame,
    theory: pl.DataFrame,
    x: str,
    y: str,
    *,
    runs: bool = True,
    **at: object,
) -> None:
    """Both designs against x: state evolution as far as it has a fixed point, and means.

    Open marks are the exact solver, crosses the `runs` of Algorithm 1, with standard errors.
    """
    for design in DESIGNS:
        colour, own = LOOKS[design].colour, points.filter(design=design, **at)
        line = theory.filter(design=design, status="stable", **at).sort(x)
        axes.plot(line[x], line[y], color=colour, lw=1.4)
        looks = {"exists": {**OPEN, "fmt": LOOKS[design].marker, "zorder": 3}}
        if runs:
            looks["amp_converged"] = {"fmt": "x", "ms": 4.5, "lw": 1.0, "mew": 1.2, "zorder": 4}
        for count, look in looks.items():
            rows, name = shown(own, count), y if count == "exists" else f"amp_{y}"
            axes.errorbar(rows[x], rows[name], rows[f"{name}_se"], color=colour, **look)


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
            bar = {"align": "edge", "color": colour or LOOKS[design].colour, "lw": 0}
            axes.bar(left, share, right - left, floor, **bar)
            floor = floor + share
    axes.set_ylim(-0.05, 2.15)
    axes.set_yticks([0.5, 1.6], ["Gram", "iso."] if names else ["", ""])
    axes.tick_params(axis="y", length=0, labelsize=8)
    axes.spines[["top", "right", "left"]].set_visible(False)
    if names:
        axes.set_title("runs of Algorithm 1", loc="left", fontsize=8, pad=2, color=GREY)
