"""Figs. 3 and 4, error and sparsity against the noise level and λ, and Fig. 3 for other α and ρ."""

from __future__ import annotations

from itertools import product

import numpy as np
import polars as pl

import privasso as pv
from privasso.figures import GREY, Figure
from privasso.paper import _ink as ink
from privasso.paper._curves import grid, noise_curves
from privasso.paper._figure import (
    ALPHA,
    DESIGNS,
    LAMS,
    LAWS,
    LOOKS,
    PATH_SIGMA,
    SIGMA_XI,
    PaperFigure,
    Settings,
    Simulated,
    Tables,
    model,
    named,
)
from privasso.paper._grid import GridExperiment

#: A point outside the paper's figures: ρ̂ < α and a minimiser exists, but Algorithm 1 blows up.
PROBE = {"alpha": 0.166, "rho": 0.27, "lam": 0.05, "sigma": 0.01}
#: Iterations of state evolution at that point.
STEPS = 300
#: α and ρ; one of them differs from the paper's figures.
OTHERS = ((0.3, 0.1), (0.8, 0.1), (0.5, 0.05), (0.5, 0.2))
SIMILAR_LAM = LAMS[1]
SIGMA = r"noise level $\sigma_\eta$"


def _levels(settings: Settings) -> np.ndarray:
    return np.geomspace(0.8 * settings.sigmas[0], settings.sigmas[-1], settings.curve)


def _noise_points(settings: Settings) -> Simulated:
    grid = tuple(LAWS), DESIGNS, LAMS, settings.sigmas
    return {"fig3_points": GridExperiment(*grid, **settings.data())}


def _noise_theory(settings: Settings) -> Tables:
    levels, n = _levels(settings), settings.n_features
    curves = noise_curves(LAWS, DESIGNS, LAMS, levels, n_features=n)
    return {"fig3_theory": curves}


def _draw_noise(tables: Tables) -> Figure:
    points, theory = tables["fig3_points"], tables["fig3_theory"]
    lams = points["lam"].unique().sort().to_list()
    layout = {"sharex": True, "height_ratios": [4, 1, 4, 1]}
    canvas, panels = ink.panels(11.0, 8.2, 4, len(lams), x=SIGMA, **layout)
    for (i, law), (j, lam) in product(enumerate(LAWS), enumerate(lams)):
        axes, below = panels[2 * i, j], panels[2 * i + 1, j]
        ink.compared(axes, points, theory, "sigma", "E", law=law, lam=lam)
        ink.finish(axes, f"{LAWS[law].title}, λ = {lam:g}", ylim=(0.015, 3.0))
        axes.tick_params(labelbottom=False, labelleft=j == 0)
        ink.strip(below, points.filter(law=law, lam=lam), "sigma", names=j == 0)
        if j == 0:
            axes.set_ylabel("prediction error E")
    ink.legend(canvas, ink.ENDS)
    return canvas


def crossing(rows: pl.DataFrame, name: str) -> tuple[int, float]:
    """Where Algorithm 1 begins to converge on fewer than half of the data sets, in row order.

    The first such row, and the value of a column that is interpolated there in its logarithm. The
    row is -1 if there is none.
    """
    x = np.log(rows[name].to_numpy())
    share = (rows["amp_converged"] / rows["samples"]).to_numpy()
    below = np.flatnonzero(share < 0.5)
    k = int(below[0]) if below.size else -1
    if k <= 0:
        return k, float("nan")
    t = (share[k - 1] - 0.5) / (share[k - 1] - share[k])
    return k, float(np.exp((1.0 - t) * x[k - 1] + t * x[k]))


def failure_level(rows: pl.DataFrame) -> float:
    """Smallest σ_η at which Algorithm 1 converges on fewer than half of the data sets, or inf."""
    failed = rows.filter(rows["amp_converged"] * 2 < rows["samples"])
    return float(failed["sigma"].to_numpy().min()) if failed.height else float("inf")


def half_level(rows: pl.DataFrame) -> float:
    """σ_η at which Algorithm 1 converges on half of the data sets, interpolated in log σ; or inf.

    At every smaller level it converges on at least half of them; zero if it does not at the lowest.
    """
    row, level = crossing(rows.sort("sigma"), "sigma")
    return level if row > 0 else float("inf") if row < 0 else 0.0


def _noise_caption(tables: Tables) -> str:
    points = tables["fig3_points"]
    failures = []
    for law, lam in product(LAWS, points["lam"].unique().sort()):
        rows = points.filter(law=law, lam=lam)
        levels = (failure_level(rows.filter(design=design)) for design in DESIGNS)
        words = " and ".join(f"{x:g}" if np.isfinite(x) else "never" for x in levels)
        failures.append(f"{LAWS[law].name}, λ = {lam:g}: {words}")
    lost = {name: int(points[f"amp_{name}"].sum()) for name in ("unbounded", "flicker", "diverged")}
    return (
        f"N = {points['n_features'][0]}, {points['samples'][0]} data sets per point. A mean with "
        "its standard error is drawn where at least half of the data sets have a value. The paper "
        "does not print its λ; we chose these three. "
        "Noise level from which Algorithm 1 converges on fewer than half of the data sets, "
        f"isotropic and Gram-based: {'; '.join(failures)}. Of {int(points['samples'].sum())} runs, "
        f"{lost['unbounded']} failed because the problem has no minimiser. Although a minimiser "
        f"exists, {lost['flicker']} runs did not settle, since coefficients kept switching between "
        f"zero and nonzero, and {lost['diverged']} runs blew up (bars)."
    )


def _path_points(settings: Settings) -> Simulated:
    data = settings.data()
    path = GridExperiment(tuple(LAWS), DESIGNS, settings.path, (PATH_SIGMA,), **data)
    data |= {"alpha": PROBE["alpha"], "rho": PROBE["rho"]}
    at = (PROBE["lam"],), (PROBE["sigma"],)
    probe = GridExperiment(("constant",), ("isotropic",), *at, **data)
    return {"fig4_points": path, "fig4_probe": probe}


def _path_theory(settings: Settings) -> Tables:
    lams = np.geomspace(0.8 * settings.path[0], settings.path[-1], settings.curve)
    curves = grid(LAWS, DESIGNS, lams, [PATH_SIGMA], n_features=settings.n_features)
    return {"fig4_theory": curves, "fig4_recursion": recursion()}


def recursion() -> pl.DataFrame:
    """Iterates of state evolution at the probe, and its fixed point."""
    probe = pv.Model(PROBE["alpha"], PROBE["rho"], SIGMA_XI, pv.Constant())
    fp = pv.state_evolution(probe, PROBE["lam"], pv.Isotropic(PROBE["sigma"]))
    E, V, rho_hat = fp.trajectory[:STEPS].T
    return pl.DataFrame(
        {
            "iteration": np.arange(E.size), "E": E, "V": V, "rho_hat": rho_hat, "E_fixed": fp.E,
            "V_fixed": fp.V, "rho_hat_fixed": fp.rho_hat, "version": pv.__version__,
        }
    )  # fmt: skip


def _draw_path(tables: Tables) -> Figure:
    points, theory = tables["fig4_points"], tables["fig4_theory"]
    layout = {"sharex": True, "height_ratios": [4, 4, 1]}
    canvas, panels = ink.panels(9.4, 8.0, 3, 2, x="regularisation λ", **layout)
    for j, law in enumerate(LAWS):
        error, sparsity, below = panels[:, j]
        ink.compared(error, points, theory, "lam", "E", law=law)
        ink.compared(sparsity, points, theory, "lam", "rho_hat", law=law)
        sparsity.axhline(ALPHA, color=GREY, lw=1.0, ls="--")
        if j == 0:
            place = {"xycoords": ("axes fraction", "data"), "ha": "right", "color": GREY}
            ink.note(sparsity, "ρ̂ = α", (1.0, ALPHA), (0, 4), **place)
        ink.finish(error, LAWS[law].title, ylim=(0.015, 3.0))
        ink.finish(sparsity, log="x", ylim=(0.0, 0.6))
        ink.strip(below, points.filter(law=law), "lam", names=j == 0)
        for axes in (error, sparsity):
            axes.tick_params(labelbottom=False, labelleft=j == 0)
    panels[0, 0].set_ylabel("prediction error E")
    panels[1, 0].set_ylabel("share of nonzero coefficients ρ̂")
    ink.legend(canvas, ink.ENDS, columns=4)
    return canvas


def smallest_lambda(rows: pl.DataFrame) -> float:
    """λ at which Algorithm 1 converges on half of the data sets, interpolated in log λ; or NaN.

    At every larger λ it converges on at least half of them.
    """
    return crossing(rows.sort("lam", descending=True), "lam")[1]


def probe_ratio(probe: dict[str, float | None]) -> str:
    """Measured ρ̂/α at the probe, in words."""
    return "—" if probe["rho_hat"] is None else f"{probe['rho_hat'] / PROBE['alpha']:.2f}"


def _path_caption(tables: Tables) -> str:
    points, probe = tables["fig4_points"], tables["fig4_probe"].row(0, named=True)
    edges = []
    for law in LAWS:
        iso, gram = (smallest_lambda(points.filter(law=law, design=design)) for design in DESIGNS)
        edges.append(f"{LAWS[law].name}: {iso:.3g} and {gram:.3g}")
    return (
        f"σ_η = {PATH_SIGMA:g}, N = {points['n_features'][0]}, {points['samples'][0]} data sets "
        "per point. Smallest λ at which Algorithm 1 converges on half of the data sets, isotropic "
        f"and Gram-based: {'; '.join(edges)}. At the line ρ̂ = α the minimiser ceases to exist. "
        "Where ρ̂ < α Algorithm 1 need not converge. An example that is not drawn: at α = "
        f"{PROBE['alpha']:g}, ρ = {PROBE['rho']:g}, equal scales, λ = {PROBE['lam']:g}, σ_η = "
        f"{PROBE['sigma']:g} a minimiser exists on {probe['exists']} of {probe['samples']} data "
        f"sets, with ρ̂/α = {probe_ratio(probe)}, and Algorithm 1 converges "
        f"on {probe['amp_converged']}."
    )


def _similar_points(settings: Settings) -> Simulated:
    data = settings.data("similar")
    grid = tuple(LAWS), DESIGNS, (SIMILAR_LAM,), settings.sigmas
    others = [{**data, "alpha": alpha, "rho": rho} for alpha, rho in OTHERS]
    return {"similar_points": [GridExperiment(*grid, **other) for other in others]}


def _similar_theory(settings: Settings) -> Tables:
    levels, n, parts = _levels(settings), settings.data("similar")["n_features"], []
    for (alpha, rho), law, design in product(OTHERS, LAWS, DESIGNS):
        noise = LOOKS[design].noise
        curve = pv.tradeoff(model(law, alpha, rho), SIMILAR_LAM, noise, levels, n_features=n)
        what = {"law": law, "design": design, "alpha": alpha, "rho": rho, "n_features": n}
        parts.append(named(curve, "law design alpha rho n_features version", **what))
    return {"similar_theory": pl.concat(parts)}


def _draw_similar(tables: Tables) -> Figure:
    points, theory = tables["similar_points"], tables["similar_theory"]
    layout = {"x": SIGMA, "y": "prediction error E", "sharex": True, "sharey": True}
    canvas, panels = ink.panels(11.0, 5.8, 2, len(OTHERS), **layout)
    for (i, law), (j, (alpha, rho)) in product(enumerate(LAWS), enumerate(OTHERS)):
        axes = panels[i, j]
        ink.compared(axes, points, theory, "sigma", "E", law=law, alpha=alpha, rho=rho)
        ink.finish(axes, f"{LAWS[law].name}, α = {alpha:g}, ρ = {rho:g}", ylim=(0.01, 3.0))
    ink.legend(canvas, ink.RUNS)
    return canvas


def _similar_caption(tables: Tables) -> str:
    points = tables["similar_points"]
    return (
        "The paper says that its Fig. 3 looks alike for other α and ρ, and does not show it. "
        f"λ = {SIMILAR_LAM:g}, N = {points['n_features'][0]}, {points['samples'][0]} data sets per "
        "point."
    )


FIG3 = PaperFigure(
    "fig3", "Fig. 3: error against the noise level",
    _draw_noise, _noise_caption, _noise_points, _noise_theory,
)  # fmt: skip
FIG4 = PaperFigure(
    "fig4", "Fig. 4: error and sparsity against λ",
    _draw_path, _path_caption, _path_points, _path_theory,
)  # fmt: skip
SIMILAR = PaperFigure(
    "similar", "Fig. 3 for other α and ρ",
    _draw_similar, _similar_caption, _similar_points, _similar_theory,
)  # fmt: skip
