"""Fig. 4: error and sparsity against the regularisation."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

import privasso as pv
from privasso.figures import GREY, figure
from privasso.paper.experiments import Experiment, GridExperiment
from privasso.paper.figures._curves import grid
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
from privasso.paper.figures._settings import ALPHA, PATH_SIGMA, RHO, SIGMA_XI, Settings
from privasso.paper.figures._strip import measured, strip, strip_legend

if TYPE_CHECKING:
    import polars as pl

#: A point outside the paper's figures: ρ̂ < α and a minimiser exists, but Algorithm 1 blows up.
PROBE = {"alpha": 0.166, "rho": 0.27, "lam": 0.05, "sigma": 0.01}
#: Iterations of state evolution at that point.
STEPS = 300


def _experiments(settings: Settings) -> dict[str, Experiment]:
    return {
        "fig4_points": GridExperiment(
            laws=tuple(LAWS), designs=DESIGNS, lams=settings.path, sigmas=(PATH_SIGMA,),
            n_features=settings.n_features, samples=settings.samples, seed=settings.seed,
            alpha=ALPHA, rho=RHO, sigma_xi=SIGMA_XI,
        ),
        "fig4_probe": GridExperiment(
            laws=("constant",), designs=("isotropic",), lams=(PROBE["lam"],),
            sigmas=(PROBE["sigma"],), n_features=settings.n_features, samples=settings.samples,
            seed=settings.seed, alpha=PROBE["alpha"], rho=PROBE["rho"], sigma_xi=SIGMA_XI,
        ),
    }  # fmt: skip


def _tables(settings: Settings, results: Tables) -> dict[str, pl.DataFrame]:
    lams = np.geomspace(0.8 * settings.path[0], settings.path[-1], settings.curve)
    curves = grid(LAWS, DESIGNS, lams, [PATH_SIGMA], n_features=settings.n_features)
    simulated = {name: results[name] for name in ("fig4_points", "fig4_probe")}
    return simulated | {"fig4_theory": curves, "fig4_recursion": recursion()}


def recursion() -> pl.DataFrame:
    """Iterates of state evolution at the probe, and its fixed point."""
    import polars as pl

    probe = pv.Model(PROBE["alpha"], PROBE["rho"], SIGMA_XI, pv.Constant())
    fp = pv.state_evolution(probe, PROBE["lam"], pv.Isotropic(PROBE["sigma"]))
    E, V, rho_hat = fp.trajectory[:STEPS].T
    return pl.DataFrame(
        {
            "iteration": np.arange(E.size), "E": E, "V": V, "rho_hat": rho_hat, "E_fixed": fp.E,
            "V_fixed": fp.V, "rho_hat_fixed": fp.rho_hat, "version": pv.__version__,
        }
    )  # fmt: skip


def _draw(tables: Tables) -> Any:
    points, theory = tables["fig4_points"], tables["fig4_theory"]
    canvas = figure(9.4, 8.0)
    panels = canvas.subplots(
        3, 2, sharex=True, gridspec_kw={"height_ratios": [4, 4, 1]}, squeeze=False
    )
    for j, law in enumerate(LAWS):
        error, sparsity, below = panels[:, j]
        for design in DESIGNS:
            line = theory.filter(law=law, design=design, status="stable").sort("lam")
            rows = points.filter(law=law, design=design)
            for axes, column in ((error, "E"), (sparsity, "rho_hat")):
                axes.plot(line["lam"], line[column], color=LOOKS[design].colour, lw=1.4)
                measured(axes, rows, "lam", column, design)
        sparsity.axhline(ALPHA, color=GREY, lw=1.0, ls="--")
        if j == 0:
            sparsity.annotate(
                "ρ̂ = α", (1.0, ALPHA), xycoords=("axes fraction", "data"), ha="right",
                xytext=(0, 4), textcoords="offset points", fontsize=9, color=GREY,
            )  # fmt: skip
        finish(error)
        finish(sparsity, y_log=False)
        error.set_ylim(0.015, 3.0)
        sparsity.set_ylim(0.0, 0.6)
        error.set_title(LAW_TITLES[law], loc="left", fontsize=10)
        strip(below, points.filter(law=law), "lam", names=j == 0)
        below.set_xlabel("regularisation λ")
        for axes in (error, sparsity):
            axes.tick_params(labelbottom=False, labelleft=j == 0)
    panels[0, 0].set_ylabel("prediction error E")
    panels[1, 0].set_ylabel("share of nonzero coefficients ρ̂")
    legend(canvas, strip_legend(), columns=4)
    return canvas


def smallest_lambda(rows: pl.DataFrame) -> float:
    """λ at which Algorithm 1 converges on half of the data sets, interpolated in log λ; or NaN.

    At every larger λ it converges on at least half of them.
    """
    rows = rows.sort("lam")
    lam = rows["lam"].to_numpy()
    share = (rows["amp_converged"] / rows["samples"]).to_numpy()
    below = np.flatnonzero(share < 0.5)
    if below.size == 0 or below[-1] == share.size - 1:
        return float("nan")
    k = below[-1]
    t = (0.5 - share[k]) / (share[k + 1] - share[k])
    return float(np.exp((1.0 - t) * np.log(lam[k]) + t * np.log(lam[k + 1])))


def _caption(tables: Tables) -> str:
    points, probe = tables["fig4_points"], tables["fig4_probe"].row(0, named=True)
    edges = []
    for law in LAWS:
        iso, gram = (smallest_lambda(points.filter(law=law, design=design)) for design in DESIGNS)
        edges.append(f"{LAW_NAMES[law]}: {iso:.3g} and {gram:.3g}")
    return (
        f"σ_η = {PATH_SIGMA:g}, N = {points['n_features'][0]}, {points['samples'][0]} data sets "
        "per point. Smallest λ at which Algorithm 1 converges on half of the data sets, isotropic "
        f"and Gram-based: {'; '.join(edges)}. At the line ρ̂ = α the minimiser ceases to exist. "
        "Where ρ̂ < α Algorithm 1 need not converge. An example that is not drawn: at α = "
        f"{PROBE['alpha']:g}, ρ = {PROBE['rho']:g}, equal scales, λ = {PROBE['lam']:g}, σ_η = "
        f"{PROBE['sigma']:g} a minimiser exists on {probe['exists']} of {probe['samples']} data "
        f"sets, with ρ̂/α = {_number(probe['rho_hat'], PROBE['alpha'])}, and Algorithm 1 converges "
        f"on {probe['amp_converged']}."
    )


def _number(rho_hat: float | None, alpha: float) -> str:
    return "—" if rho_hat is None else f"{rho_hat / alpha:.2f}"


FIG4 = PaperFigure(
    "fig4", "Fig. 4: error and sparsity against λ", _experiments, _tables, _draw, _caption
)
