"""Where the estimator exists: by state evolution, and by linear programming on data sets."""

from __future__ import annotations

from itertools import product
from typing import Any

import numpy as np
import polars as pl

from privasso.figures import figure
from privasso.paper.experiments import CriticalExperiment, Experiment
from privasso.paper.figures._curves import grid
from privasso.paper.figures._figure import (
    DESIGNS,
    LAW_NAMES,
    LAW_TITLES,
    LAWS,
    LOOKS,
    PaperFigure,
    Tables,
    finish,
    note,
    shared,
)
from privasso.paper.figures._settings import Settings

LOW, HIGH = 0.03, 1.0
#: Relative distance of measured and predicted critical λ beyond which the caption names it.
APART = 0.1


def _points(settings: Settings) -> dict[str, list[Experiment]]:
    sizes = {"n_features": settings.critical_features, "samples": settings.critical_samples}
    experiment = CriticalExperiment(tuple(LAWS), DESIGNS, **sizes, **shared(settings))
    return {"map_critical": [experiment]}


def _theory(settings: Settings) -> dict[str, pl.DataFrame]:
    side = np.geomspace(LOW, HIGH, max(12, 3 * settings.curve // 8))
    size = settings.critical_features
    return {"map_stability": grid(LAWS, DESIGNS, side, side, n_features=size)}


def _draw(tables: Tables) -> Any:
    from matplotlib.colors import LogNorm

    critical, stability = tables["map_critical"], tables["map_stability"]
    canvas = figure(8.8, 8.0)
    panels = canvas.subplots(2, 2, sharex=True, sharey=True)
    scale = LogNorm(0.02, 2.0)
    mesh = None
    for axes, (law, design) in zip(panels.flat, product(LAWS, DESIGNS), strict=True):
        points = stability.filter(law=law, design=design)
        lam, sigma = (np.unique(points[name].to_numpy()) for name in ("lam", "sigma"))
        E = points.sort("lam", "sigma")["E"].to_numpy().reshape(lam.size, sigma.size)
        look = {"norm": scale, "cmap": "viridis", "shading": "nearest", "rasterized": True}
        mesh = axes.pcolormesh(sigma, lam, np.where(np.isfinite(E), E, np.nan), **look)
        found = critical.filter(law=law, design=design).row(0, named=True)
        _lines(axes, found, LOOKS[design].colour, named=axes is panels[0, 0])
        place = {"transform": axes.transAxes, "fontsize": 9, "ha": "right"}
        axes.text(0.97, 0.05, "no minimiser", color="#444444", **place)
        limits = {"xlim": (LOW, HIGH), "ylim": (LOW, HIGH), "aspect": "equal"}
        title = f"{LAW_TITLES[law]}, {LOOKS[design].name}"
        finish(axes, title, facecolor="#e8e8e8", **limits)
    for axes in panels[1]:
        axes.set_xlabel(r"noise level $\sigma_\eta$")
    for axes in panels[:, 0]:
        axes.set_ylabel("regularisation λ")
    bar = canvas.colorbar(mesh, ax=panels, shrink=0.6, label="predicted error E", extend="both")
    bar.ax.yaxis.set_major_formatter("{x:g}")
    bar.ax.yaxis.set_minor_formatter("")
    return canvas


def _lines(axes: Any, found: dict[str, Any], colour: str, *, named: bool) -> None:
    """Draw the critical lines: measured median and its 80 % band, and predicted (dashed)."""
    sigma = np.array([LOW / 10.0, HIGH])
    band = (found[name] * sigma for name in ("ratio_q10", "ratio_q90"))
    axes.fill_between(sigma, *band, color=colour, alpha=0.3, lw=0)
    axes.plot(sigma, found["ratio_median"] * sigma, color=colour, lw=1.8)
    axes.plot(sigma, found["ratio_theory"] * sigma, color="black", lw=1.2, ls="--")
    if named:
        place = {"rotation": 45, "rotation_mode": "anchor", "ha": "center", "va": "center"}
        theory, data = (0.16, found["ratio_theory"] * 0.16), (0.16, found["ratio_q10"] * 0.16)
        note(axes, "state evolution", theory, (-9, 9), color="white", **place)
        note(axes, "linear programming", data, (9, -9), color=colour, **place)


def _caption(tables: Tables) -> str:
    critical = tables["map_critical"]
    sentences, apart = [], []
    for row in critical.iter_rows(named=True):
        name = f"{LAW_NAMES[row['law']]}, {LOOKS[row['design']].name}"
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


MAP = PaperFigure("map", "Where the estimator exists", _draw, _caption, _points, _theory)
