"""Fig. 3 again for other shapes α of the data and other sparsities ρ of the signal."""

from __future__ import annotations

from itertools import product
from typing import Any

import numpy as np
import polars as pl

import privasso as pv
from privasso.figures import figure
from privasso.paper.experiments import Experiment, GridExperiment
from privasso.paper.figures._figure import (
    DESIGNS,
    LAW_NAMES,
    LAWS,
    LOOKS,
    PaperFigure,
    Tables,
    compared,
    finish,
    legend,
    model,
    runs_legend,
    shared,
)
from privasso.paper.figures._settings import LAMS, Settings

#: α and ρ; one of them differs from the paper's figures.
OTHERS = ((0.3, 0.1), (0.8, 0.1), (0.5, 0.05), (0.5, 0.2))
LAM = LAMS[1]


def _points(settings: Settings) -> dict[str, list[Experiment]]:
    data = shared(settings)
    data |= {"n_features": settings.similar_features, "samples": settings.similar_samples}
    grid = tuple(LAWS), DESIGNS, (LAM,), settings.sigmas
    experiments: list[Experiment] = [
        GridExperiment(*grid, **{**data, "alpha": alpha, "rho": rho}) for alpha, rho in OTHERS
    ]
    return {"similar_points": experiments}


def _theory(settings: Settings) -> dict[str, pl.DataFrame]:
    levels = np.geomspace(0.8 * settings.sigmas[0], settings.sigmas[-1], settings.curve)
    n, parts = settings.similar_features, []
    for (alpha, rho), law, design in product(OTHERS, LAWS, DESIGNS):
        named = {"law": law, "design": design, "alpha": alpha, "rho": rho, "n_features": n}
        curve = pv.tradeoff(model(law, alpha, rho), LAM, LOOKS[design].noise, levels, n_features=n)
        named |= {"version": pv.__version__}
        parts.append(curve.with_columns(pl.lit(value).alias(name) for name, value in named.items()))
    first = ["law", "design", "alpha", "rho", "n_features", "version"]
    return {"similar_theory": pl.concat(parts).select(*first, pl.exclude(first))}


def _draw(tables: Tables) -> Any:
    points, theory = tables["similar_points"], tables["similar_theory"]
    canvas = figure(11.0, 5.8)
    panels = canvas.subplots(2, len(OTHERS), sharex=True, sharey=True)
    for (i, law), (j, (alpha, rho)) in product(enumerate(LAWS), enumerate(OTHERS)):
        axes = panels[i, j]
        compared(axes, points, theory, "sigma", "E", law=law, alpha=alpha, rho=rho)
        finish(axes, f"{LAW_NAMES[law]}, α = {alpha:g}, ρ = {rho:g}", ylim=(0.01, 3.0))
    for axes in panels[1]:
        axes.set_xlabel(r"noise level $\sigma_\eta$")
    for axes in panels[:, 0]:
        axes.set_ylabel("prediction error E")
    legend(canvas, runs_legend(ends=False))
    return canvas


def _caption(tables: Tables) -> str:
    points = tables["similar_points"]
    return (
        "The paper says that its Fig. 3 looks alike for other α and ρ, and does not show it. "
        f"λ = {LAM:g}, N = {points['n_features'][0]}, {points['samples'][0]} data sets per point."
    )


SIMILAR = PaperFigure("similar", "Fig. 3 for other α and ρ", _draw, _caption, _points, _theory)
