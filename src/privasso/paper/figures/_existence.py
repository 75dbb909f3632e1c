"""Where the estimator exists, for the columns of the paper and for correlated ones."""

from __future__ import annotations

from itertools import product
from typing import Any

import numpy as np
import polars as pl

from privasso.figures import BLUE, GREEN, ORANGE, SKY, Axes, Figure, figure
from privasso.noise import column_noise_from_name
from privasso.paper.experiments import (
    CorrelatedExperiment,
    CriticalExperiment,
    Experiment,
    covariance_model,
)
from privasso.paper.figures import _ink as ink
from privasso.paper.figures._curves import grid
from privasso.paper.figures._figure import (
    DESIGNS,
    LAWS,
    LOOKS,
    PaperFigure,
    Settings,
    Tables,
    named,
)
from privasso.theory import correlated_edge, tradeoff

LOW, HIGH = 0.03, 1.0
#: Relative distance of measured and predicted critical λ beyond which the caption names it.
APART = 0.1
#: Correlations of the columns, and what they are called.
CORRELATIONS = {
    "ar:0.5": "AR(0.5)",
    "ar:0.9": "AR(0.9)",
    "factors:3,0.5": "3 factors",
    "levels:10,0.5": "two levels",
}
#: The designs of the paper, in both readings of "the Gram matrix", and C itself.
NAMES = {"isotropic": "isotropic", "gram": "diagonal v²", "matrix:1": "C", "matrix:2": "C²"}
COLOURS = {"isotropic": ORANGE, "gram": BLUE, "matrix:1": GREEN, "matrix:2": SKY}
#: The two readings of noise in proportion to the Gram matrix.
GRAMS = ("gram", "matrix:2")
LAM, LEVELS = 0.2, (0.05, 0.1)
#: Law and columns of the trade-off that is drawn.
LAW, SHOWN = "lognormal", "ar:0.9"


def _map_points(settings: Settings) -> dict[str, list[Experiment]]:
    experiment = CriticalExperiment(tuple(LAWS), DESIGNS, **settings.data("map"))
    return {"map_critical": [experiment]}


def _map_theory(settings: Settings) -> dict[str, pl.DataFrame]:
    side = np.geomspace(LOW, HIGH, max(12, 3 * settings.curve // 8))
    size = settings.data("map")["n_features"]
    return {"map_stability": grid(LAWS, DESIGNS, side, side, n_features=size)}


def _draw_map(tables: Tables) -> Figure:
    from matplotlib.colors import LogNorm

    critical, stability = tables["map_critical"], tables["map_stability"]
    canvas = figure(8.8, 8.0)
    panels = canvas.subplots(2, 2, sharex=True, sharey=True)
    scale = LogNorm(0.02, 2.0)
    for axes, (law, design) in zip(panels.flat, product(LAWS, DESIGNS), strict=True):
        points = stability.filter(law=law, design=design)
        lam, sigma = (np.unique(points[name].to_numpy()) for name in ("lam", "sigma"))
        E = points.sort("lam", "sigma")["E"].to_numpy().reshape(lam.size, sigma.size)
        look = {"norm": scale, "cmap": "viridis", "shading": "nearest", "rasterized": True}
        axes.pcolormesh(sigma, lam, np.where(np.isfinite(E), E, np.nan), **look)
        found = critical.filter(law=law, design=design).row(0, named=True)
        _lines(axes, found, LOOKS[design].colour, named=axes is panels[0, 0])
        place = {"transform": axes.transAxes, "fontsize": 9, "ha": "right"}
        axes.text(0.97, 0.05, "no minimiser", color="#444444", **place)
        limits = {"xlim": (LOW, HIGH), "ylim": (LOW, HIGH), "aspect": "equal"}
        title = f"{LAWS[law].title}, {LOOKS[design].name}"
        ink.finish(axes, title, facecolor="#e8e8e8", **limits)
    for axes in panels[1]:
        axes.set_xlabel(r"noise level $\sigma_\eta$")
    for axes in panels[:, 0]:
        axes.set_ylabel("regularisation λ")
    mesh = panels[-1, -1].collections[0]
    bar = canvas.colorbar(mesh, ax=panels, shrink=0.6, label="predicted error E", extend="both")
    bar.ax.yaxis.set_major_formatter("{x:g}")
    bar.ax.yaxis.set_minor_formatter("")
    return canvas


def _lines(axes: Axes, found: dict[str, Any], colour: str, *, named: bool) -> None:
    """Draw the critical lines: measured median and its 80 % band, and predicted (dashed)."""
    sigma = np.array([LOW / 10.0, HIGH])
    band = (found[name] * sigma for name in ("ratio_q10", "ratio_q90"))
    axes.fill_between(sigma, *band, color=colour, alpha=0.3, lw=0)
    axes.plot(sigma, found["ratio_median"] * sigma, color=colour, lw=1.8)
    axes.plot(sigma, found["ratio_theory"] * sigma, color="black", lw=1.2, ls="--")
    if named:
        place = {"rotation": 45, "rotation_mode": "anchor", "ha": "center", "va": "center"}
        theory, data = (0.16, found["ratio_theory"] * 0.16), (0.16, found["ratio_q10"] * 0.16)
        ink.note(axes, "state evolution", theory, (-9, 9), color="white", **place)
        ink.note(axes, "linear programming", data, (9, -9), color=colour, **place)


def _map_caption(tables: Tables) -> str:
    critical = tables["map_critical"]
    sentences, apart = [], []
    for row in critical.iter_rows(named=True):
        name = f"{LAWS[row['law']].name}, {LOOKS[row['design']].name}"
        sentences.append(
            f"{name}: {row['ratio']:.3f} ± {row['ratio_se']:.3f} measured, "
            f"{row['ratio_theory']:.3f} predicted"
        )
        if abs(row["ratio_median"] / row["ratio_theory"] - 1.0) > APART:
            apart.append(f"{name} ({row['ratio_median'] / row['ratio_theory']:.2f} times it)")
    text = (
        "Not in the paper. Colour: predicted error where state evolution has a fixed point; grey: "
        "it has none; dashed: the border. Solid: the critical λ by linear programming, "
        "λ_crit = min_u ‖Fᵀu − η‖_∞, below which a data set has no minimiser: the median, and a "
        "band that contains 80 % of the data sets. Both lines have a constant ratio λ/σ_η: "
        f"{'; '.join(sentences)} (N = {critical['n_features'][0]}, {critical['samples'][0]} data "
        "sets)."
    )
    if apart:
        text += f" The median is more than {APART:.0%} away from the prediction for "
        text += f"{', '.join(apart)}."
    return text


def _correlated_points(settings: Settings) -> dict[str, list[Experiment]]:
    data = settings.data("correlated") | {"draws": settings.draws}
    grid = tuple(LAWS), tuple(CORRELATIONS), ("isotropic", *GRAMS)
    experiment = CorrelatedExperiment(*grid, lam=LAM, sigmas=LEVELS, **data)
    return {"correlated_points": [experiment]}


def _correlated_theory(settings: Settings) -> dict[str, pl.DataFrame]:
    """E and the exact OnAveKL over levels of noise, up to 0.9 of the critical one."""
    parts = []
    data, drawn = settings.data("correlated"), {"draws": settings.draws, "rng": settings.seed}
    for correlation, design in product(CORRELATIONS, NAMES):
        case = {"law": LAW, "columns": correlation, "n_features": data["n_features"]}
        model = covariance_model(data | case)
        noise = column_noise_from_name("design", design, 1.0)
        edge = correlated_edge(model, noise, **drawn).ratio
        sigmas = np.geomspace(0.01, 0.9 * LAM / edge, settings.levels)
        rows = tradeoff(model, LAM, noise, sigmas, **drawn)
        first = "law columns design lam sigma n_features seed version"
        parts.append(named(rows, first, **case, design=design, seed=settings.seed))
    return {"correlated_tradeoff": pl.concat(parts)}


def _draw_correlated(tables: Tables) -> Figure:
    points, curves = tables["correlated_points"], tables["correlated_tradeoff"]
    canvas = figure(9.6, 4.6)
    left, right = canvas.subplots(1, 2, width_ratios=(1.15, 1.0))
    first = points.filter(sigma=LEVELS[0])
    cases = first.filter(design="isotropic").select("law", "columns").rows()
    shifts = zip((-0.2, 0.0, 0.2), ("isotropic", *GRAMS), strict=True)
    for (place, (law, columns)), (shift, design) in product(enumerate(cases), shifts):
        row = first.filter(design=design, law=law, columns=columns).row(0, named=True)
        look = {"fmt": "o", "ms": 4, "color": COLOURS[design], "lw": 1.0}
        left.errorbar(row["ratio"], place + shift, xerr=2.0 * row["ratio_se"], **look)
        left.plot(row["ratio_theory"], place + shift, "x", color="black", ms=5)
    names = [f"{LAWS[law].name}, {CORRELATIONS[columns]}" for law, columns in cases]
    left.set_yticks(range(len(cases)), names)
    left.invert_yaxis()
    ink.finish(left, log="x", xlabel="smallest λ/σ with an estimator")
    part = curves.filter(columns=SHOWN)
    for design, name in NAMES.items():
        line = part.filter(design=design, status="stable").sort("sigma")
        look = {"ms": 3, "lw": 1.3, "color": COLOURS[design], "label": name}
        right.plot(line["onavekl"], line["E"], "o-", **look)
    ink.finish(right, f"{LAWS[LAW].name}, {CORRELATIONS[SHOWN]}", ylabel="prediction error E")
    right.set_ylim(top=10.0 * float(part["E"].to_numpy().min()))
    right.set_xlabel("OnAveKL of one replaced record")
    mark = {"ls": "none", "ms": 6}
    entries = [(NAMES[x], {**mark, "marker": "o", "color": COLOURS[x]}) for x in NAMES]
    ink.legend(canvas, [*entries, ("state evolution", {**mark, "marker": "x", "color": "black"})])
    return canvas


def _correlated_caption(tables: Tables) -> str:
    points = tables["correlated_points"]
    shares = []
    for design in GRAMS:
        factors = gain(points, design)
        shares.append(f"{NAMES[design]}: {factors.min():.1f} to {factors.max():.1f} times smaller")
    return (
        "Not in the paper, which has independent columns. Left: the smallest λ/σ_η at which an "
        "estimator exists, by linear programming ± 2 standard errors and by state evolution "
        "(crosses), for columns of covariance C; v is its diagonal. Compared with isotropic noise "
        f"it is, for {'; '.join(shares)}. Right: error against leakage, traced by the noise level, "
        f"both predicted (N = {points['n_features'][0]}, {points['samples'][0]} data sets, "
        f"λ = {LAM:g})."
    )


def gain(points: pl.DataFrame, design: str) -> np.ndarray:
    """Critical ratio of isotropic noise divided by that of a design, in each case."""
    one = points.filter(sigma=points["sigma"][0]).sort("law", "columns")
    both = (one.filter(design=name)["ratio"].to_numpy() for name in ("isotropic", design))
    isotropic, other = both
    return isotropic / other


MAP = PaperFigure(
    "map", "Where the estimator exists", _draw_map, _map_caption, _map_points, _map_theory
)
CORRELATED = PaperFigure(
    "correlated", "Correlated columns",
    _draw_correlated, _correlated_caption, _correlated_points, _correlated_theory,
)  # fmt: skip
