"""Isotropic noise on scales that reach down to zero: the error grows with N without bound."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from privasso.figures import figure
from privasso.paper.experiments import Experiment, GridExperiment
from privasso.paper.figures._curves import noise_curves
from privasso.paper.figures._figure import PaperFigure, Tables
from privasso.paper.figures._looks import DESIGNS, LOOKS, finish
from privasso.paper.figures._settings import ALPHA, RHO, SIGMA_XI, Settings
from privasso.paper.figures._strip import shown

if TYPE_CHECKING:
    import polars as pl

LAW, LAM = "uniform", 0.5
#: A level at which small columns are rarely active, and one at which most data sets have some.
SIGMAS = (0.15, 0.22)
#: Largest N of the prediction.
FAR = 10_000


def _experiments(settings: Settings) -> dict[str, Experiment]:
    return {
        f"tail_{size}": GridExperiment(
            laws=(LAW,), designs=DESIGNS, lams=(LAM,), sigmas=SIGMAS, n_features=size,
            samples=settings.tail_samples, seed=settings.seed, alpha=ALPHA, rho=RHO,
            sigma_xi=SIGMA_XI,
        )
        for size in settings.tail_features
    }  # fmt: skip


def _tables(settings: Settings, results: Tables) -> dict[str, pl.DataFrame]:
    import polars as pl

    sizes = np.geomspace(settings.tail_features[0], FAR, 12).astype(int)
    curves = [noise_curves([LAW], DESIGNS, [LAM], SIGMAS, n_features=int(size)) for size in sizes]
    points = [results[f"tail_{size}"] for size in settings.tail_features]
    return {"tail_points": pl.concat(points), "tail_theory": pl.concat(curves)}


def _draw(tables: Tables) -> Any:
    points, theory = tables["tail_points"], tables["tail_theory"]
    canvas = figure(9.0, 4.2)
    panels = canvas.subplots(1, 2, sharex=True, sharey=True)
    for axes, sigma in zip(panels, SIGMAS, strict=True):
        for design in DESIGNS:
            look = LOOKS[design]
            line = theory.filter(design=design, sigma=sigma, status="stable")
            axes.plot(line["n_features"], line["E"], color=look.colour, lw=1.4)
            rows = shown(points.filter(design=design, sigma=sigma), "exists")
            axes.errorbar(
                rows["n_features"], rows["E"], rows["E_se"], fmt=look.marker, color=look.colour,
                ms=5, mfc="white", lw=1.0, capsize=2,
            )  # fmt: skip
            if line.height and axes is panels[0]:
                axes.annotate(
                    look.name, (line["n_features"][-1], min(line["E"][-1], 8.0)), ha="right",
                    color=look.colour, fontsize=10, va="bottom", xytext=(-8, 6),
                    textcoords="offset points",
                )  # fmt: skip
        finish(axes)
        axes.set_ylim(0.02, 20.0)
        axes.set_title(rf"$\sigma_\eta$ = {sigma:g}", loc="left", fontsize=10)
        axes.xaxis.set_major_formatter(lambda value, _: f"{value:,.0f}")
        axes.set_xlabel("columns N")
    panels[0].set_ylabel("prediction error E")
    return canvas


def _caption(tables: Tables) -> str:
    points, theory = tables["tail_points"], tables["tail_theory"]
    sentences = []
    for sigma in SIGMAS:
        curve = theory.filter(design="isotropic", sigma=sigma).sort("n_features")
        stable = curve.filter(status="stable")
        text = (
            f"predicted from {stable['E'][0]:.3g} at N = {stable['n_features'][0]:,} to "
            f"{stable['E'][-1]:.3g} at N = {stable['n_features'][-1]:,}"
            if stable.height
            else "no fixed point is predicted at any N"
        )
        if stable.height < curve.height:
            text += " (no fixed point beyond)"
        rows = shown(points.filter(design="isotropic", sigma=sigma), "exists").sort("n_features")
        measured = ", ".join(f"{row['E']:.3g} ± {row['E_se']:.1g}" for row in rows.to_dicts())
        sizes = ", ".join(f"{size:,}" for size in rows["n_features"])
        sentences.append(f"at σ_η = {sigma:g} {text}, measured {measured} at N = {sizes}")
    return (
        f"Not in the paper. v1, λ = {LAM:g}. Under isotropic noise E has no finite limit for large "
        "N, since E[1/v] is infinite: a few small columns that become active dominate the error. "
        f"Isotropic noise: {'; '.join(sentences)}. Lines: state evolution for N columns at the "
        "quantiles of the law. It is a mean over the noise that rare large values dominate, so the "
        "mean of a hundred data sets may lie far below it, or exist where the line has ended."
    )


TAIL = PaperFigure(
    "tail", "An error that grows with the number of columns", _experiments, _tables, _draw, _caption
)
