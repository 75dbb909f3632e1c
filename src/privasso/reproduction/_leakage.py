"""Two formulas for the leakage against Monte Carlo of the exact density."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from privasso.figures import BLUE, GREY, ORANGE, figure
from privasso.reproduction._looks import LAW_NAMES, LOOKS, finish, key
from privasso.reproduction._settings import ALPHA, RHO, SIGMA_XI, Settings
from privasso.reproduction._study import Study, Tables

if TYPE_CHECKING:
    import polars as pl

#: Law, design, λ, σ_η: from well inside the stable region towards its edge.
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


def _experiments(settings: Settings) -> dict[str, Any]:
    from privasso.experiments import Leakage

    return {
        f"leakage_{size}": Leakage(
            points=POINTS, n_features=size, samples=settings.leakage_samples, seed=settings.seed,
            alpha=ALPHA, rho=RHO, sigma_xi=SIGMA_XI,
        )
        for size in settings.leakage_features
    }  # fmt: skip


def _tables(settings: Settings, results: Tables) -> dict[str, pl.DataFrame]:
    import polars as pl

    parts = [results[f"leakage_{size}"] for size in settings.leakage_features]
    return {"leakage": pl.concat(parts)}


def largest(table: pl.DataFrame) -> pl.DataFrame:
    """Rows of the largest data, nearest to the limit that the formulas speak of."""
    size = table["n_features"].to_numpy().max()
    return table.filter(table["n_features"] == size).sort("onavekl")


def over(table: pl.DataFrame, column: str) -> dict[int, float]:
    """Monte Carlo over a formula, by size of the data, as the mean over the points."""
    means = {}
    for size in table["n_features"].unique().sort():
        rows = table.filter(table["n_features"] == size)
        means[size] = float((rows["onavekl_mc"] / rows[column]).to_numpy().mean())
    return means


def _draw(tables: Tables) -> Any:
    rows = largest(tables["leakage"])
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
    key(
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
    rows = largest(tables["leakage"])
    paper = (rows["onavekl_mc"] / rows["onavekl_paper"]).to_numpy()
    z = ((rows["onavekl_mc"] - rows["onavekl"]) / rows["onavekl_mc_se"]).to_numpy()
    means = over(tables["leakage"], "onavekl").items()
    trend = ", ".join(f"{mean:.2f} (N = {size})" for size, mean in means)
    return (
        "Beyond the paper. The OnAveKL measured from the exact density of the released vector "
        f"(N = {rows['n_features'][0]}, {rows['samples'][0]} data sets) is {paper.min():.2f} to "
        f"{paper.max():.2f} times the component-wise divergence of the paper. The formula for the "
        f"whole vector agrees within three standard errors at {int(np.sum(np.abs(z) <= 3.0))} of "
        f"{rows.height} points (largest deviation {np.abs(z).max():.1f}); Monte Carlo is on "
        f"average {trend} times it."
    )


LEAKAGE = Study(
    "leakage", "Is the paper's leakage the leakage?", _experiments, _tables, _draw, _caption
)
