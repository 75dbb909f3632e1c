"""Fig. 3: prediction error against the noise level."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from privasso.figures import figure
from privasso.paper.experiments import Experiment, GridExperiment
from privasso.paper.figures._curves import noise_curves
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
from privasso.paper.figures._settings import ALPHA, LAMS, RHO, SIGMA_XI, Settings
from privasso.paper.figures._strip import measured, strip, strip_legend

if TYPE_CHECKING:
    import polars as pl


def _experiments(settings: Settings) -> dict[str, Experiment]:
    return {
        "fig3_points": GridExperiment(
            laws=tuple(LAWS), designs=DESIGNS, lams=LAMS, sigmas=settings.sigmas,
            n_features=settings.n_features, samples=settings.samples, seed=settings.seed,
            alpha=ALPHA, rho=RHO, sigma_xi=SIGMA_XI,
        )
    }  # fmt: skip


def _tables(settings: Settings, results: Tables) -> dict[str, pl.DataFrame]:
    levels = np.geomspace(0.8 * settings.sigmas[0], settings.sigmas[-1], settings.curve)
    curves = noise_curves(LAWS, DESIGNS, LAMS, levels, n_features=settings.n_features)
    return {"fig3_points": results["fig3_points"], "fig3_theory": curves}


def _draw(tables: Tables) -> Any:
    points, theory = tables["fig3_points"], tables["fig3_theory"]
    lams = points["lam"].unique().sort().to_list()
    canvas = figure(11.0, 8.2)
    panels = canvas.subplots(
        4, len(lams), sharex=True, squeeze=False, gridspec_kw={"height_ratios": [4, 1, 4, 1]}
    )
    for i, law in enumerate(LAWS):
        for j, lam in enumerate(lams):
            axes, below = panels[2 * i, j], panels[2 * i + 1, j]
            for design in DESIGNS:
                line = theory.filter(law=law, design=design, lam=lam, status="stable")
                axes.plot(line["sigma"], line["E"], color=LOOKS[design].colour, lw=1.4)
                measured(axes, points.filter(law=law, design=design, lam=lam), "sigma", "E", design)
            finish(axes)
            axes.set_ylim(0.015, 3.0)
            axes.set_title(f"{LAW_TITLES[law]}, λ = {lam:g}", loc="left", fontsize=10)
            axes.tick_params(labelbottom=False)
            strip(below, points.filter(law=law, lam=lam), "sigma", names=j == 0)
            if j:
                axes.tick_params(labelleft=False)
            else:
                axes.set_ylabel("prediction error E")
    for axes in panels[3]:
        axes.set_xlabel(r"noise level $\sigma_\eta$")
    legend(canvas, strip_legend())
    return canvas


def failure_level(rows: pl.DataFrame) -> float:
    """Smallest σ_η at which Algorithm 1 converges on fewer than half of the data sets, or inf."""
    failed = rows.filter(rows["amp_converged"] * 2 < rows["samples"])
    return float(failed["sigma"].to_numpy().min()) if failed.height else float("inf")


def _caption(tables: Tables) -> str:
    points = tables["fig3_points"]
    size, samples = points["n_features"][0], points["samples"][0]
    failures = []
    for law in LAWS:
        for lam in points["lam"].unique().sort():
            iso, gram = (
                failure_level(points.filter(law=law, lam=lam, design=design)) for design in DESIGNS
            )
            failures.append(f"{LAW_NAMES[law]}, λ = {lam:g}: {_level(iso)} and {_level(gram)}")
    lost = {name: int(points[f"amp_{name}"].sum()) for name in ("unbounded", "flicker", "diverged")}
    runs = int(points["samples"].sum())
    return (
        f"N = {size}, {samples} data sets per point. A mean with its standard error is drawn where "
        "at least half of the data sets have a value. The paper does not print its λ; we chose "
        "these three. "
        "Noise level from which Algorithm 1 converges on fewer than half of the data sets, "
        f"isotropic and Gram-based: {'; '.join(failures)}. Of {runs} runs, {lost['unbounded']} "
        "failed because the problem has no minimiser. Although a minimiser exists, "
        f"{lost['flicker']} runs did not settle, since coefficients kept switching between zero "
        f"and nonzero, and {lost['diverged']} runs blew up (bars)."
    )


def _level(sigma: float) -> str:
    return f"{sigma:g}" if np.isfinite(sigma) else "never"


FIG3 = PaperFigure(
    "fig3", "Fig. 3: error against the noise level", _experiments, _tables, _draw, _caption
)
