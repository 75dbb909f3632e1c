"""Two figures against the number of columns N: the KKT violation of Algorithm 1, and the error."""

from __future__ import annotations

from itertools import product

import numpy as np
import polars as pl
from numpy.typing import ArrayLike

from privasso.figures import GREY, Figure, figure
from privasso.paper.experiments import Experiment, GridExperiment, KktExperiment
from privasso.paper.figures import _ink as ink
from privasso.paper.figures._curves import noise_curves
from privasso.paper.figures._figure import (
    DESIGNS,
    LAWS,
    LOOKS,
    PaperFigure,
    Settings,
    Tables,
    shown,
)

KKT_LAM, KKT_SIGMA = 0.2, 0.05
TAIL_LAW, TAIL_LAM = "uniform", 0.5
#: A level at which small columns are rarely active, and one at which most data sets have some.
TAIL_SIGMAS = (0.15, 0.22)
#: Largest N of the prediction.
FAR = 10_000


def _kkt_points(settings: Settings) -> dict[str, list[Experiment]]:
    return {
        "kkt": [
            KktExperiment(law, design, KKT_LAM, KKT_SIGMA, **settings.data("kkt"))
            for law, design in product(LAWS, DESIGNS)
        ]
    }


def slope(x: ArrayLike, y: ArrayLike) -> float:
    """Exponent of the power law that fits the points best, by least squares in logarithms."""
    return float(np.polyfit(np.log(np.asarray(x)), np.log(np.asarray(y)), 1)[0])


def kkt_curve(table: pl.DataFrame, law: str, design: str) -> pl.DataFrame:
    """Rows of one law and design by N, where Algorithm 1 converged on at least two data sets."""
    rows = table.filter(law=law, design=design)
    return rows.filter(rows["kkt_se"].is_not_null()).sort("n_features")


def _draw_kkt(tables: Tables) -> Figure:
    table = tables["kkt"]
    sizes = table["n_features"].unique().sort().to_numpy()
    canvas = figure(9.0, 4.0)
    panels = canvas.subplots(1, 2, sharex=True, sharey=True)
    for axes, law in zip(panels, LAWS, strict=True):
        for design in DESIGNS:
            rows = kkt_curve(table, law, design)
            if not rows.height:
                continue
            look = {**ink.OPEN, "fmt": f"{LOOKS[design].marker}-", "color": LOOKS[design].colour}
            look["lw"] = 1.2
            axes.errorbar(rows["n_features"], rows["kkt"], rows["kkt_se"], **look)
            if design == "gram":
                guide = 0.5 * rows["kkt"][0] * (sizes / rows["n_features"][0]) ** -0.5
                axes.plot(sizes, guide, color=GREY, lw=1.0, ls=":")
                ink.note(axes, r"$N^{-1/2}$", (sizes[0], guide[0]), (0, -14), color=GREY)
        limits = sizes[0] / 1.2, sizes[-1] * 1.2
        ink.finish(axes, LAWS[law].title, xlim=limits, xlabel="columns N")
    panels[0].set_ylabel("largest KKT violation / λ")
    ink.legend(canvas, ink.designs_legend())
    return canvas


def _kkt_caption(tables: Tables) -> str:
    table = tables["kkt"]
    sentences, away = [], []
    for law, design in product(LAWS, DESIGNS):
        rows = kkt_curve(table, law, design)
        if rows.height < 2:
            continue
        away.append(rows["distance"][-1])
        sentences.append(
            f"{LAWS[law].name}, {LOOKS[design].name}: {rows['kkt'][0]:.1%} at N = "
            f"{rows['n_features'][0]}, {rows['kkt'][-1]:.1%} at N = {rows['n_features'][-1]} "
            f"(exponent {slope(rows['n_features'], rows['kkt']):.2f})"
        )
    distance = f"{min(away):.1%} to {max(away):.1%}" if away else "unknown"
    return (
        "Not in the paper. The fixed point of the literal Algorithm 1 violates the optimality "
        f"conditions of the LASSO that it is meant to solve (λ = {KKT_LAM:g}, σ_η = "
        f"{KKT_SIGMA:g}): {'; '.join(sentences)}. At the largest N its relative distance to the "
        f"minimiser is {distance}; it reaches the minimiser only in the limit of large N. The "
        "exact solver violates the conditions by at most "
        f"{table['kkt_exact'].to_numpy().max():.0e}."
    )


def _tail_points(settings: Settings) -> dict[str, list[Experiment]]:
    data = settings.data("tail")
    grid = (TAIL_LAW,), DESIGNS, (TAIL_LAM,), TAIL_SIGMAS
    sizes = data.pop("n_features")
    return {"tail_points": [GridExperiment(*grid, n_features=size, **data) for size in sizes]}


def _tail_theory(settings: Settings) -> dict[str, pl.DataFrame]:
    sizes = np.geomspace(settings.data("tail")["n_features"][0], FAR, 12).astype(int).tolist()
    grid = [TAIL_LAW], DESIGNS, [TAIL_LAM], TAIL_SIGMAS
    return {"tail_theory": pl.concat(noise_curves(*grid, n_features=size) for size in sizes)}


def _draw_tail(tables: Tables) -> Figure:
    points, theory = tables["tail_points"], tables["tail_theory"]
    canvas = figure(9.0, 4.2)
    panels = canvas.subplots(1, 2, sharex=True, sharey=True)
    for axes, sigma in zip(panels, TAIL_SIGMAS, strict=True):
        ink.predicted(axes, theory, "n_features", "E", sigma=sigma)
        ink.measured(axes, points, "n_features", "E", sigma=sigma)
        ink.finish(axes, rf"$\sigma_\eta$ = {sigma:g}", ylim=(0.02, 20.0), xlabel="columns N")
        axes.xaxis.set_major_formatter(lambda value, _: f"{value:,.0f}")
    panels[0].set_ylabel("prediction error E")
    ink.legend(canvas, [*ink.lines(DESIGNS), *ink.theory_and_solver()])
    return canvas


def _tail_caption(tables: Tables) -> str:
    points, theory = (tables[name].filter(design="isotropic") for name in tables)
    sentences = []
    for sigma in TAIL_SIGMAS:
        curve = theory.filter(sigma=sigma).sort("n_features")
        stable = curve.filter(status="stable")
        text = "no fixed point is predicted at any N"
        if stable.height:
            E, N = ([stable[name][k] for k in (0, -1)] for name in ("E", "n_features"))
            text = f"predicted from {E[0]:.3g} at N = {N[0]:,} to {E[1]:.3g} at N = {N[1]:,}"
        if stable.height < curve.height:
            text += " (no fixed point beyond)"
        rows = shown(points.filter(sigma=sigma), "exists").sort("n_features")
        found = ", ".join(f"{row['E']:.3g} ± {row['E_se']:.1g}" for row in rows.to_dicts())
        sizes = ", ".join(f"{size:,}" for size in rows["n_features"])
        sentences.append(f"at σ_η = {sigma:g} {text}, measured {found} at N = {sizes}")
    return (
        f"Not in the paper. v1, λ = {TAIL_LAM:g}. Under isotropic noise E has no finite limit for "
        "large N, since E[1/v] is infinite: a few small columns that become active dominate the "
        f"error. Isotropic noise: {'; '.join(sentences)}. Lines: state evolution for N columns at "
        "the quantiles of the law. It is a mean over the noise that rare large values dominate, so "
        "the mean of a hundred data sets may lie far below it, or exist where the line has ended."
    )


KKT = PaperFigure(
    "kkt", "Does Algorithm 1 return the minimiser?", _draw_kkt, _kkt_caption, _kkt_points
)
TAIL = PaperFigure(
    "tail", "An error that grows with the number of columns",
    _draw_tail, _tail_caption, _tail_points, _tail_theory,
)  # fmt: skip
