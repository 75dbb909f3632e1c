"""How far the fixed point of the literal Algorithm 1 is from the minimiser, against N."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from privasso.figures import GREY, figure
from privasso.paper.experiments import Experiment, KktExperiment
from privasso.paper.figures._figure import PaperFigure, Tables
from privasso.paper.figures._looks import (
    DESIGNS,
    LAW_NAMES,
    LAW_TITLES,
    LAWS,
    LOOKS,
    finish,
    legend,
)
from privasso.paper.figures._settings import ALPHA, RHO, SIGMA_XI, Settings

if TYPE_CHECKING:
    import polars as pl

LAM, SIGMA = 0.2, 0.05


def _name(law: str, design: str) -> str:
    return f"kkt_{law}_{design}"


def _experiments(settings: Settings) -> dict[str, Experiment]:
    return {
        _name(law, design): KktExperiment(
            law=law, design=design, lam=LAM, sigma=SIGMA, n_features=settings.kkt_features,
            samples=settings.kkt_samples, seed=settings.seed, alpha=ALPHA, rho=RHO,
            sigma_xi=SIGMA_XI,
        )
        for law in LAWS
        for design in DESIGNS
    }  # fmt: skip


def _tables(settings: Settings, results: Tables) -> dict[str, pl.DataFrame]:
    import polars as pl

    return {"kkt": pl.concat(results[_name(law, design)] for law in LAWS for design in DESIGNS)}


def slope(x: Any, y: Any) -> float:
    """Exponent of the power law that fits the points best, by least squares in logarithms."""
    return float(np.polyfit(np.log(np.asarray(x)), np.log(np.asarray(y)), 1)[0])


def kkt_curve(table: pl.DataFrame, law: str, design: str) -> pl.DataFrame:
    """Rows of one law and design by N, where Algorithm 1 converged on at least two data sets."""
    rows = table.filter(law=law, design=design)
    return rows.filter(rows["kkt_se"].is_not_null()).sort("n_features")


def _draw(tables: Tables) -> Any:
    table = tables["kkt"]
    sizes = table["n_features"].unique().sort().to_numpy()
    canvas = figure(9.0, 4.0)
    panels = canvas.subplots(1, 2, sharex=True, sharey=True)
    for axes, law in zip(panels, LAWS, strict=True):
        for design in DESIGNS:
            look = LOOKS[design]
            rows = kkt_curve(table, law, design)
            if not rows.height:
                continue
            axes.errorbar(
                rows["n_features"], rows["kkt"], rows["kkt_se"], fmt=f"{look.marker}-", ms=5,
                color=look.colour, mfc="white", lw=1.2, capsize=2,
            )  # fmt: skip
            if design == "gram":
                guide = 0.5 * rows["kkt"][0] * (sizes / rows["n_features"][0]) ** -0.5
                axes.plot(sizes, guide, color=GREY, lw=1.0, ls=":")
                axes.annotate(
                    r"$N^{-1/2}$", (sizes[0], guide[0]), xytext=(0, -14), fontsize=9, color=GREY,
                    textcoords="offset points",
                )  # fmt: skip
        finish(axes)
        axes.set_xlim(sizes[0] / 1.2, sizes[-1] * 1.2)
        axes.set_title(LAW_TITLES[law], loc="left", fontsize=10)
        axes.set_xlabel("columns N")
    panels[0].set_ylabel("largest KKT violation / λ")
    looks = [LOOKS[design] for design in DESIGNS]
    marks = [
        (look.name, {"color": look.colour, "marker": look.marker, "mfc": "white", "ms": 5})
        for look in looks
    ]
    legend(canvas, marks)
    return canvas


def _caption(tables: Tables) -> str:
    table = tables["kkt"]
    sentences, away = [], []
    for law in LAWS:
        for design in DESIGNS:
            rows = kkt_curve(table, law, design)
            if rows.height < 2:
                continue
            away.append(rows["distance"][-1])
            sentences.append(
                f"{LAW_NAMES[law]}, {LOOKS[design].name}: {rows['kkt'][0]:.1%} at N = "
                f"{rows['n_features'][0]}, {rows['kkt'][-1]:.1%} at N = {rows['n_features'][-1]} "
                f"(exponent {slope(rows['n_features'], rows['kkt']):.2f})"
            )
    distance = f"{min(away):.1%} to {max(away):.1%}" if away else "unknown"
    return (
        "Not in the paper. The fixed point of the literal Algorithm 1 violates the optimality "
        f"conditions of the LASSO that it is meant to solve (λ = {LAM:g}, σ_η = {SIGMA:g}): "
        f"{'; '.join(sentences)}. At the largest N its relative distance to the minimiser is "
        f"{distance}; it reaches the minimiser only in the limit of large N. The exact solver "
        f"violates the conditions by at most {table['kkt_exact'].to_numpy().max():.0e}."
    )


KKT = PaperFigure(
    "kkt", "Does Algorithm 1 return the minimiser?", _experiments, _tables, _draw, _caption
)
