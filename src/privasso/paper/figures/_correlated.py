"""What correlated columns do to the claims: where the estimator exists, and what noise costs."""

from __future__ import annotations

from itertools import product
from typing import Any

import numpy as np
import polars as pl

from privasso import __version__
from privasso.figures import BLUE, GREEN, ORANGE, SKY, figure
from privasso.noise import column_noise_from_name
from privasso.paper.experiments import CorrelatedExperiment, Experiment, covariance_model
from privasso.paper.figures._figure import (
    LAW_NAMES,
    LAWS,
    PaperFigure,
    Tables,
    finish,
    legend,
    shared,
)
from privasso.paper.figures._settings import Settings
from privasso.theory import correlated_edge, tradeoff

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


def _points(settings: Settings) -> dict[str, list[Experiment]]:
    sizes = {
        "n_features": settings.correlated_features,
        "samples": settings.correlated_samples,
        "draws": settings.correlated_draws,
    }
    grid = tuple(LAWS), tuple(CORRELATIONS), ("isotropic", *GRAMS)
    experiment = CorrelatedExperiment(*grid, lam=LAM, sigmas=LEVELS, **sizes, **shared(settings))
    return {"correlated_points": [experiment]}


def _theory(settings: Settings) -> dict[str, pl.DataFrame]:
    """E and the exact OnAveKL over levels of noise, up to 0.9 of the critical one."""
    parts = []
    drawn = {"draws": settings.correlated_draws, "rng": settings.seed}
    for correlation, design in product(CORRELATIONS, NAMES):
        case = {"law": LAW, "columns": correlation, "n_features": settings.correlated_features}
        model = covariance_model(shared(settings) | case)
        noise = column_noise_from_name("design", design, 1.0)
        edge = correlated_edge(model, noise, **drawn).ratio
        sigmas = np.geomspace(0.01, 0.9 * LAM / edge, settings.correlated_levels)
        named = case | {"design": design, "seed": settings.seed, "version": __version__}
        rows = tradeoff(model, LAM, noise, sigmas, **drawn)
        parts.append(rows.with_columns(pl.lit(value).alias(name) for name, value in named.items()))
    first = ["law", "columns", "design", "lam", "sigma", "n_features", "seed", "version"]
    return {"correlated_tradeoff": pl.concat(parts).select(*first, pl.exclude(first))}


def _draw(tables: Tables) -> Any:
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
    names = [f"{LAW_NAMES[law]}, {CORRELATIONS[columns]}" for law, columns in cases]
    left.set_yticks(range(len(cases)), names)
    left.invert_yaxis()
    finish(left, log="x", xlabel="smallest λ/σ with an estimator")
    part = curves.filter(columns=SHOWN)
    for design, name in NAMES.items():
        line = part.filter(design=design, status="stable").sort("sigma")
        look = {"ms": 3, "lw": 1.3, "color": COLOURS[design], "label": name}
        right.plot(line["onavekl"], line["E"], "o-", **look)
    finish(right, f"{LAW_NAMES[LAW]}, {CORRELATIONS[SHOWN]}", ylabel="prediction error E")
    right.set_ylim(top=10.0 * float(part["E"].to_numpy().min()))
    right.set_xlabel("OnAveKL of one replaced record")
    mark = {"ls": "none", "ms": 6}
    entries = [(NAMES[x], {**mark, "marker": "o", "color": COLOURS[x]}) for x in NAMES]
    legend(canvas, [*entries, ("state evolution", {**mark, "marker": "x", "color": "black"})])
    return canvas


def _caption(tables: Tables) -> str:
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


CORRELATED = PaperFigure("correlated", "Correlated columns", _draw, _caption, _points, _theory)
