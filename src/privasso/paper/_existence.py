"""Where the estimator exists: the critical λ of data sets, and the edge of state evolution."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from dataclasses import KW_ONLY, dataclass
from itertools import product
from typing import ClassVar

import numpy as np

from privasso.figures import Axes, Figure
from privasso.noise import noise_from_name
from privasso.paper import _experiment as sim
from privasso.paper import _ink as ink
from privasso.paper._curves import grid
from privasso.paper._figure import DESIGNS, LAWS, LOOKS, PaperFigure, Settings, Simulated, Tables
from privasso.problem import critical_lambda
from privasso.theory import critical_lambda_ratio

LOW, HIGH = 0.03, 1.0
#: Relative distance of measured and predicted critical λ beyond which the caption names it.
APART = 0.1


@dataclass(frozen=True)
class CriticalExperiment(sim.Experiment):
    """λ_crit/σ_η below which a data set has no minimiser, for every law and design.

    The data and noise are those that `GridExperiment` draws from the same seed. ``ratio_theory`` is
    `critical_lambda_ratio` for N columns, ``ratio_limit`` for infinitely many, null if infinite.
    """

    kind: ClassVar[str] = "critical"
    varied: ClassVar[Mapping[str, str]] = {"laws": "law", "designs": "design"}

    laws: tuple[str, ...] = ("uniform", "lognormal")
    designs: tuple[str, ...] = ("isotropic", "gram")
    _: KW_ONLY
    n_features: int = 500
    samples: int = 20

    @staticmethod
    def compute(parameters: sim.Parameters) -> sim.Result:
        """Solve the linear programme of one data set."""
        data = sim.DataSet.draw(parameters)
        return {"ratio": [critical_lambda(data.sample.F, data.direction(parameters["design"]))]}

    def rows(self, case: sim.Parameters, results: list[sim.Result]) -> Iterator[sim.Row]:
        ratios = sim.known(sim.at(results)["ratio"])
        q10, median, q90 = np.quantile(ratios, [0.1, 0.5, 0.9]).tolist()
        model, noise = sim.model_of(case), noise_from_name("design", case["design"], 1.0)
        limit = critical_lambda_ratio(model, noise)
        yield {
            "alpha": self.alpha,
            **sim.means(ratio=ratios),
            "ratio_median": median,
            "ratio_q10": q10,
            "ratio_q90": q90,
            "ratio_theory": critical_lambda_ratio(model, noise, n_features=self.n_features),
            "ratio_limit": limit if math.isfinite(limit) else None,
        }


def _points(settings: Settings) -> Simulated:
    return {"map_critical": CriticalExperiment(tuple(LAWS), DESIGNS, **settings.data("map"))}


def _theory(settings: Settings) -> Tables:
    side = np.geomspace(LOW, HIGH, max(12, 3 * settings.curve // 8))
    size = settings.data("map")["n_features"]
    return {"map_stability": grid(LAWS, DESIGNS, side, side, n_features=size)}


def _draw(tables: Tables) -> Figure:
    from matplotlib.colors import LogNorm

    critical, stability = tables["map_critical"], tables["map_stability"]
    names = {"x": r"noise level $\sigma_\eta$", "y": "regularisation λ"}
    canvas, panels = ink.panels(8.8, 8.0, 2, 2, **names, sharex=True, sharey=True)
    scale = LogNorm(0.02, 2.0)
    for axes, (law, design) in zip(panels.flat, product(LAWS, DESIGNS), strict=True):
        points = stability.filter(law=law, design=design)
        lam, sigma = (np.unique(points[name].to_numpy()) for name in ("lam", "sigma"))
        E = points.sort("lam", "sigma")["E"].to_numpy().reshape(lam.size, sigma.size)
        look = {"norm": scale, "cmap": "viridis", "shading": "nearest", "rasterized": True}
        axes.pcolormesh(sigma, lam, np.where(np.isfinite(E), E, np.nan), **look)
        found = critical.filter(law=law, design=design).row(0, named=True)
        _lines(axes, found, LOOKS[design].colour, named=axes is panels[0, 0])
        place = {"transform": axes.transAxes, "fontsize": 9, "ha": "right"}
        axes.text(0.97, 0.05, "no minimiser", color="#444444", **place)
        limits = {"xlim": (LOW, HIGH), "ylim": (LOW, HIGH), "aspect": "equal"}
        title = f"{LAWS[law].title}, {LOOKS[design].name}"
        ink.finish(axes, title, facecolor="#e8e8e8", **limits)
    mesh = panels[-1, -1].collections[0]
    bar = canvas.colorbar(mesh, ax=panels, shrink=0.6, label="predicted error E", extend="both")
    bar.ax.yaxis.set_major_formatter("{x:g}")
    bar.ax.yaxis.set_minor_formatter("")
    return canvas


def _lines(axes: Axes, found: dict[str, float], colour: str, *, named: bool) -> None:
    """Draw the critical lines: measured median and its 80 % band, and predicted (dashed)."""
    sigma = np.array([LOW / 10.0, HIGH])
    low, high = (found[name] * sigma for name in ("ratio_q10", "ratio_q90"))
    axes.fill_between(sigma, low, high, color=colour, alpha=0.3, lw=0)
    axes.plot(sigma, found["ratio_median"] * sigma, color=colour, lw=1.8)
    axes.plot(sigma, found["ratio_theory"] * sigma, color="black", lw=1.2, ls="--")
    if named:
        place = {"rotation": 45, "rotation_mode": "anchor", "ha": "center", "va": "center"}
        theory, data = (0.16, found["ratio_theory"] * 0.16), (0.16, found["ratio_q10"] * 0.16)
        ink.note(axes, "state evolution", theory, (-9, 9), color="white", **place)
        ink.note(axes, "linear programming", data, (9, -9), color=colour, **place)


def _caption(tables: Tables) -> str:
    critical = tables["map_critical"]
    sentences, apart = [], []
    for row in critical.iter_rows(named=True):
        name = f"{LAWS[row['law']].name}, {LOOKS[row['design']].name}"
        sentences.append(
            f"{name}: {row['ratio']:.3f} ± {row['ratio_se']:.3f} measured, "
            f"{row['ratio_theory']:.3f} predicted"
        )
        if abs(row["ratio_median"] / row["ratio_theory"] - 1.0) > APART:
            apart.append(f"{name} ({row['ratio_median'] / row['ratio_theory']:.2f} times it)")
    text = (
        "Not in the paper. Colour: predicted error where state evolution has a fixed point; grey: "
        "it has none; dashed: the border. Solid: the critical λ by linear programming, "
        "λ_crit = min_u ‖Fᵀu − η‖_∞, below which a data set has no minimiser: the median, and a "
        "band that contains 80 % of the data sets. Both lines have a constant ratio λ/σ_η: "
        f"{'; '.join(sentences)} (N = {critical['n_features'][0]}, {critical['samples'][0]} data "
        "sets)."
    )
    if apart:
        text += f" The median is more than {APART:.0%} away from the prediction for "
        text += f"{', '.join(apart)}."
    return text


MAP = PaperFigure("map", "Where the estimator exists", _draw, _caption, _points, _theory)
