"""Two formulas for the leakage, compared with Monte Carlo of the exact density."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from privasso.figures import BLUE, GREY, ORANGE, figure
from privasso.paper.experiments import Experiment, LeakageExperiment
from privasso.paper.figures._figure import PaperFigure, Tables
from privasso.paper.figures._looks import LAW_NAMES, LOOKS, finish, legend
from privasso.paper.figures._settings import ALPHA, RHO, SIGMA_XI, Settings

if TYPE_CHECKING:
    import polars as pl

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


def _experiments(settings: Settings) -> dict[str, Experiment]:
    return {
        f"leakage_{size}": LeakageExperiment(
            points=POINTS, n_features=size, samples=settings.leakage_samples, seed=settings.seed,
            alpha=ALPHA, rho=RHO, sigma_xi=SIGMA_XI,
        )
        for size in settings.leakage_features
    }  # fmt: skip


def _tables(settings: Settings, results: Tables) -> dict[str, pl.DataFrame]:
    import polars as pl

    parts = [results[f"leakage_{size}"] for size in settings.leakage_features]
    return {"leakage": pl.concat(parts)}


def largest_data(table: pl.DataFrame) -> pl.DataFrame:
    """Rows of the largest N, which is closest to the limit in which the formulas hold."""
    size = table["n_features"].to_numpy().max()
    return table.filter(table["n_features"] == size).sort("onavekl")


def measured_over(table: pl.DataFrame, column: str) -> dict[int, float]:
    """Mean over the points of Monte Carlo divided by a formula, for each N."""
    means = {}
    for size in table["n_features"].unique().sort():
        rows = table.filter(table["n_features"] == size)
        means[size] = float((rows["onavekl_mc"] / rows[column]).to_numpy().mean())
    return means


def _draw(tables: Tables) -> Any:
    rows = largest_data(tables["leakage"])
    canvas = figure(8.6, 0.5 * rows.height + 1.3)
    axes = canvas.subplots()
    y = np.arange(rows.height)
    for place, row in zip(y, rows.iter_rows(named=True), strict=True):
        axes.plot(
            [row["onavekl_paper"], row["onavekl_mc"]], [place, place], color="#cccccc", lw=1.0,
            zorder=0,
        )  # fmt: skip
    axes.errorbar(
        rows["onavekl_mc"], y, xerr=2.0 * rows["onavekl_mc_se"], fmt="o", color="black", ms=5,
        capsize=3, lw=1.2,
    )  # fmt: skip
    axes.plot(rows["onavekl"], y, "d", color=BLUE, mfc="none", ms=9, mew=1.5)
    axes.plot(rows["onavekl_paper"], y, "x", color=ORANGE, ms=7, mew=2.0)
    axes.set_yticks(
        y,
        [
            f"{LAW_NAMES[row['law']]}, {LOOKS[row['design']].name}, "
            f"λ = {row['lam']:g}, $\\sigma_\\eta$ = {row['sigma']:g}"
            for row in rows.iter_rows(named=True)
        ],
    )
    point = {"ls": "none", "ms": 7}
    legend(
        canvas,
        [
            ("paper's cwOnAveKL", {**point, "color": ORANGE, "marker": "x", "mew": 2.0}),
            ("exact formula", {**point, "color": BLUE, "marker": "d", "mfc": "none", "mew": 1.5}),
            (
                "Monte Carlo of the density ± 2 s.e.",
                {**point, "color": "black", "marker": "o"},
            ),
        ],
    )
    finish(axes, y_log=False)
    axes.set_ylim(-0.6, rows.height - 0.4)
    axes.grid(axis="x", color=GREY, alpha=0.15)
    axes.set_xlabel("leakage of one replaced record, on average over the model")
    return canvas


def _caption(tables: Tables) -> str:
    rows = largest_data(tables["leakage"])
    paper = (rows["onavekl_mc"] / rows["onavekl_paper"]).to_numpy()
    z = ((rows["onavekl_mc"] - rows["onavekl"]) / rows["onavekl_mc_se"]).to_numpy()
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


LEAKAGE = PaperFigure(
    "leakage", "Does the paper's formula give the leakage?", _experiments, _tables, _draw, _caption
)
