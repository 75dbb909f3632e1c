"""Two figures about leakage: error against it (Fig. 5), and formulas against the exact density."""

from __future__ import annotations

from itertools import product

import numpy as np
import polars as pl

from privasso.figures import BLUE, GREY, ORANGE, Figure, figure
from privasso.paper.experiments import Experiment, LeakageExperiment
from privasso.paper.figures import _ink as ink
from privasso.paper.figures._curves import compare, frontier, infinite_limit, noise_curves
from privasso.paper.figures._figure import LAMS, LAWS, LOOKS, PaperFigure, Settings, Tables

#: Columns of leakage and their names.
MEASURES = {"onavekl_paper": "paper's cwOnAveKL", "onavekl": "exact OnAveKL"}
#: A panel shows leakages from below the least to this multiple of it.
SHOWN = 60.0
#: Law, design, λ, σ_η: from the middle of the stable region to near its edge.
POINTS = (
    ("uniform", "gram", 0.5, 0.2),
    ("uniform", "gram", 0.2, 0.1),
    ("uniform", "gram", 0.1, 0.08),
    ("lognormal", "gram", 0.5, 0.2),
    ("lognormal", "gram", 0.2, 0.1),
    ("lognormal", "gram", 0.1, 0.1),
    ("lognormal", "isotropic", 0.5, 0.2),
    ("lognormal", "isotropic", 0.2, 0.1),
)


def _curves(settings: Settings) -> dict[str, pl.DataFrame]:
    parts = []
    for law, design in product(LAWS, LOOKS):
        size = settings.n_features if infinite_limit(law, design) else None
        grid = [law], [design], LAMS, None
        parts.append(noise_curves(*grid, points=settings.curve, n_features=size))
    return {"fig5_tradeoff": pl.concat(parts)}


def _draw_curves(tables: Tables) -> Figure:
    table = tables["fig5_tradeoff"]
    canvas = figure(10.5, 11.0)
    rows = list(product(LAWS, MEASURES))
    panels = canvas.subplots(len(rows), len(LAMS), squeeze=False)
    for (i, (law, measure)), (j, lam) in product(enumerate(rows), enumerate(LAMS)):
        axes, ends = panels[i, j], []
        for design, look in LOOKS.items():
            curve = table.filter(law=law, design=design, lam=lam)
            line, (leakage, E) = (
                curve.filter(status="stable").sort("sigma"),
                frontier(curve, measure),
            )
            least = int(line[measure].arg_min() or 0)
            ahead, beyond = line.head(least + 1), line.slice(least)
            axes.plot(ahead["E"], ahead[measure], color=look.colour, lw=1.6)
            axes.plot(beyond["E"], beyond[measure], color=look.colour, lw=1.0, ls=":")
            axes.plot(E[0], leakage[0], look.marker, color=look.colour, mfc="white", ms=5)
            ends.append((E.min(), E[0], leakage[0]))
        first, last, lowest = np.array(ends).T
        left, right = 0.97 * first.min(), max(1.25 * last.max(), 1.3 * first.min())
        limits = {"xlim": (left, right), "ylim": (0.7 * lowest.min(), SHOWN * lowest.min())}
        ink.finish(axes, f"{LAWS[law].name}, λ = {lam:g}", log="y", **limits)
        axes.locator_params(axis="x", nbins=4)
        if j == 0:
            axes.set_ylabel(f"leakage:\n{MEASURES[measure]}")
    for axes in panels[-1]:
        axes.set_xlabel("prediction error E")
    entries = [
        (look.name, {"color": look.colour, "lw": 1.6, "marker": look.marker, "mfc": "white"})
        for look in LOOKS.values()
    ]
    beyond = ("more noise than at the least leakage", {"color": GREY, "lw": 1.0, "ls": ":"})
    ink.legend(canvas, [*entries, beyond])
    return canvas


def _curves_caption(tables: Tables) -> str:
    table = tables["fig5_tradeoff"]
    sentences = []
    for law, (measure, name) in product(LAWS, MEASURES.items()):
        found = [compare(table, law, lam, measure, "gram", "isotropic") for lam in LAMS]
        excess = max(0.0, max(c.worst for c in found) - 1.0)
        reach = ", ".join(f"{c.reach:.2f}" for c in found)
        sentences.append(
            f"{LAWS[law].name}, {name}: least leakage {reach} times as large, E at equal "
            f"leakage up to {excess:.1%} larger"
        )
    finite = table.filter(law="uniform", design="isotropic")["n_features"][0]
    infinite = (
        "Under isotropic noise on v1 E has no finite limit for many columns, so the curves are "
        f"those of {finite} columns. "
    )
    return (
        "Along each curve the noise level σ_η grows, from the upper left. The mark is at the least "
        "leakage; more noise than there (dotted) raises both error and leakage. Each panel has "
        "axes of its own. Power 1 is noise of variance ∝ v. Gram-based noise compared with "
        "isotropic noise, for λ = "
        f"{', '.join(f'{lam:g}' for lam in LAMS)}: {'; '.join(sentences)}. "
        f"{infinite if finite else ''}OnAveKL is an average under the model. It bounds the leakage "
        "of no single person and is not an ε."
    )


def _leakage_points(settings: Settings) -> dict[str, list[Experiment]]:
    data = settings.data("leakage")
    sizes = data.pop("n_features")
    return {"leakage": [LeakageExperiment(POINTS, n_features=size, **data) for size in sizes]}


def largest_data(table: pl.DataFrame) -> pl.DataFrame:
    """Rows of the largest N, which is closest to the limit in which the formulas hold."""
    size = table["n_features"].to_numpy().max()
    return table.filter(table["n_features"] == size).sort("onavekl")


def deviations(rows: pl.DataFrame, column: str) -> np.ndarray:
    """Monte Carlo minus a formula, in standard errors."""
    return ((rows["onavekl_mc"] - rows[column]) / rows["onavekl_mc_se"]).to_numpy()


def measured_over(table: pl.DataFrame, column: str) -> dict[int, float]:
    """Mean over the points of Monte Carlo divided by a formula, for each N."""
    means = {}
    for size in table["n_features"].unique().sort():
        rows = table.filter(table["n_features"] == size)
        means[size] = float((rows["onavekl_mc"] / rows[column]).to_numpy().mean())
    return means


def _draw_leakage(tables: Tables) -> Figure:
    rows = largest_data(tables["leakage"])
    canvas = figure(8.6, 0.5 * rows.height + 1.3)
    axes = canvas.subplots()
    y = np.arange(rows.height)
    names = []
    for place, row in enumerate(rows.to_dicts()):
        ends = [row["onavekl_paper"], row["onavekl_mc"]]
        axes.plot(ends, [place, place], color="#cccccc", lw=1.0, zorder=0)
        names.append(
            f"{LAWS[row['law']].name}, {LOOKS[row['design']].name}, "
            f"λ = {row['lam']:g}, $\\sigma_\\eta$ = {row['sigma']:g}"
        )
    spread = 2.0 * rows["onavekl_mc_se"]
    look = {"fmt": "o", "color": "black", "ms": 5, "capsize": 3, "lw": 1.2}
    axes.errorbar(rows["onavekl_mc"], y, xerr=spread, **look)
    exact = {"color": BLUE, "mfc": "none", "mew": 1.5, "marker": "d", "ls": "none"}
    paper = {"color": ORANGE, "mew": 2.0, "marker": "x", "ls": "none"}
    axes.plot(rows["onavekl"], y, ms=9, **exact)
    axes.plot(rows["onavekl_paper"], y, ms=7, **paper)
    axes.set_yticks(y, names)
    density = {"color": "black", "marker": "o", "ls": "none", "ms": 7}
    ink.legend(
        canvas,
        [
            ("paper's cwOnAveKL", {"ms": 7, **paper}),
            ("exact formula", {"ms": 7, **exact}),
            ("Monte Carlo of the density ± 2 s.e.", density),
        ],
    )
    ink.finish(axes, log="x", ylim=(-0.6, rows.height - 0.4))
    axes.grid(axis="x", color=GREY, alpha=0.15)
    axes.set_xlabel("leakage of one replaced record, on average over the model")
    return canvas


def _leakage_caption(tables: Tables) -> str:
    rows = largest_data(tables["leakage"])
    paper = (rows["onavekl_mc"] / rows["onavekl_paper"]).to_numpy()
    z = deviations(rows, "onavekl")
    means = measured_over(tables["leakage"], "onavekl").items()
    trend = ", ".join(f"{mean:.2f} (N = {size})" for size, mean in means)
    return (
        "Not in the paper. The OnAveKL measured from the exact density of the released vector "
        f"(N = {rows['n_features'][0]}, {rows['samples'][0]} data sets) is {paper.min():.2f} to "
        f"{paper.max():.2f} times the component-wise divergence of the paper. The formula for the "
        f"whole vector agrees within three standard errors at {int(np.sum(np.abs(z) <= 3.0))} of "
        f"{rows.height} points (largest deviation: {np.abs(z).max():.1f} standard errors). Monte "
        f"Carlo divided by that formula is on average {trend}."
    )


FIG5 = PaperFigure(
    "fig5", "Fig. 5: error against leakage", _draw_curves, _curves_caption, predicted=_curves
)
LEAKAGE = PaperFigure(
    "leakage", "Does the paper's formula give the leakage?",
    _draw_leakage, _leakage_caption, _leakage_points,
)  # fmt: skip
