"""Formulas for the leakage of a release against Monte Carlo of its exact density."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import KW_ONLY, dataclass
from typing import ClassVar

import numpy as np
import polars as pl

from privasso.figures import BLUE, GREY, ORANGE, Figure
from privasso.noise import noise_from_name
from privasso.paper import _experiment as sim
from privasso.paper import _ink as ink
from privasso.paper._claim import AGREE, Finding, claim, found, verdict_of
from privasso.paper._figure import LAWS, LOOKS, PaperFigure, Settings, Simulated, Tables
from privasso.theory import log_density, state_evolution

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


@dataclass(frozen=True)
class LeakageExperiment(sim.Experiment):
    """OnAveKL of the released estimate when one record is replaced, without approximation.

    At each point (law, design, λ, σ_η > 0) and for each data set D, noise is drawn, the estimate x
    is released, and log p(x|D)/p(x|D') is computed exactly for `records` neighbours D', each with
    another record replaced by a new one from the same law. The mean over the neighbours is one
    draw; ``onavekl_mc`` is the mean over the ``exists`` data sets that have a minimiser. The table
    also gives the formula for N columns (``onavekl``) and the component-wise one of the paper. All
    of these are averages under the model; none is an ε.
    """

    kind: ClassVar[str] = "leakage"
    varied: ClassVar[Mapping[str, str]] = {"points": "law design lam sigma"}

    points: tuple[tuple[str, str, float, float], ...] = ()
    _: KW_ONLY
    n_features: int = 400
    records: int = 12

    @staticmethod
    def compute(parameters: sim.Parameters) -> sim.Result:
        """Mean exact loss of one data set over its neighbours; None if it has no minimiser."""
        law, n, lam = parameters["law"], parameters["n_features"], parameters["lam"]
        v, ((F, y), *others) = sim.neighbours(parameters, "leakage data")
        noise = noise_from_name("design", parameters["design"], parameters["sigma"])
        eta = noise.draw(v, rng=sim.stream(parameters, "leakage noise", law, n))
        x, variances = sim.released(F, y, lam, eta), noise.variances(v)
        if x is None:
            return {"loss": [None]}
        densities = [log_density(*one, lam, variances, x) for one in others]
        return {"loss": [log_density(F, y, lam, variances, x) - float(np.mean(densities))]}

    def rows(self, case: sim.Parameters, results: list[sim.Result]) -> Iterator[sim.Row]:
        losses = sim.known(sim.at(results)["loss"])
        noise = noise_from_name("design", case["design"], case["sigma"])
        fp = state_evolution(sim.model_of(case), case["lam"], noise, n_features=self.n_features)
        formula, paper = (fp.onavekl(kind) for kind in ("joint", "paper"))
        yield {
            "exists": losses.size,
            **sim.means(onavekl_mc=losses),
            "onavekl": None if np.isnan(formula) else formula,
            "onavekl_paper": None if np.isnan(paper) else paper,
            "stability_theory": fp.stability,
        }


def _points(settings: Settings) -> Simulated:
    data = settings.data("leakage")
    sizes = data.pop("n_features")
    return {"leakage": [LeakageExperiment(POINTS, n_features=size, **data) for size in sizes]}


def largest_data(table: pl.DataFrame) -> pl.DataFrame:
    """Rows of the largest N, which is closest to the limit in which the formulas hold."""
    size = table["n_features"].to_numpy().max()
    return table.filter(table["n_features"] == size).sort("onavekl")


def deviations(rows: pl.DataFrame, column: str) -> np.ndarray:
    """Monte Carlo minus a formula, in standard errors."""
    return ((rows["onavekl_mc"] - rows[column]) / rows["onavekl_mc_se"]).to_numpy()


def measured_over(table: pl.DataFrame, column: str) -> dict[int, float]:
    """Mean over the points of Monte Carlo divided by a formula, for each N."""
    means = {}
    for size in table["n_features"].unique().sort():
        rows = table.filter(table["n_features"] == size)
        means[size] = float((rows["onavekl_mc"] / rows[column]).to_numpy().mean())
    return means


def _draw(tables: Tables) -> Figure:
    rows = largest_data(tables["leakage"])
    name = "leakage of one replaced record, on average over the model"
    canvas, ((axes,),) = ink.panels(8.6, 0.5 * rows.height + 1.3, 1, 1, x=name)
    y = np.arange(rows.height)
    names = []
    for place, row in enumerate(rows.to_dicts()):
        ends = [row["onavekl_paper"], row["onavekl_mc"]]
        axes.plot(ends, [place, place], color="#cccccc", lw=1.0, zorder=0)
        names.append(
            f"{LAWS[row['law']].name}, {LOOKS[row['design']].name}, "
            f"λ = {row['lam']:g}, $\\sigma_\\eta$ = {row['sigma']:g}"
        )
    spread = 2.0 * rows["onavekl_mc_se"]
    look = {"fmt": "o", "color": "black", "ms": 5, "capsize": 3, "lw": 1.2}
    axes.errorbar(rows["onavekl_mc"], y, xerr=spread, **look)
    exact = {"color": BLUE, "mfc": "none", "mew": 1.5, "marker": "d", "ls": "none"}
    paper = {"color": ORANGE, "mew": 2.0, "marker": "x", "ls": "none"}
    axes.plot(rows["onavekl"], y, ms=9, **exact)
    axes.plot(rows["onavekl_paper"], y, ms=7, **paper)
    axes.set_yticks(y, names)
    density = {"color": "black", "marker": "o", "ls": "none", "ms": 7}
    ink.legend(
        canvas,
        [
            ("paper's cwOnAveKL", {"ms": 7, **paper}),
            ("exact formula", {"ms": 7, **exact}),
            ("Monte Carlo of the density ± 2 s.e.", density),
        ],
    )
    ink.finish(axes, log="x", ylim=(-0.6, rows.height - 0.4))
    axes.grid(axis="x", color=GREY, alpha=0.15)
    return canvas


def _caption(tables: Tables) -> str:
    rows = largest_data(tables["leakage"])
    paper = (rows["onavekl_mc"] / rows["onavekl_paper"]).to_numpy()
    z = deviations(rows, "onavekl")
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


@claim("j", AGREE=AGREE)
def _component_wise(table: pl.DataFrame) -> Finding:
    rows = largest_data(table)
    ratio = (rows["onavekl_mc"] / rows["onavekl_paper"]).to_numpy()
    understated = int(np.sum(deviations(rows, "onavekl_paper") > AGREE))
    names = {"onavekl_paper": "paper's cwOnAveKL", "onavekl": "exact OnAveKL, whole vector"}
    agree = {name: int(np.sum(np.abs(deviations(rows, name)) <= AGREE)) for name in names}
    cells = [
        {"formula": said, "agrees at": f"{agree[name]} of {rows.height}"}
        | {
            f"Monte Carlo / formula, N = {size}": f"{mean:.2f}"
            for size, mean in measured_over(table, name).items()
        }
        for name, said in names.items()
    ]
    return found(
        verdict_of(agree["onavekl_paper"] / rows.height),
        f"cwOnAveKL understates the leakage at {understated} of {rows.height} points, by a "
        f"factor of up to {ratio.max():.1f}.",
        {
            "points": rows.height,
            "agree": agree["onavekl_paper"],
            "understated": understated,
            "largest_ratio": float(ratio.max()),
            "joint_agrees": agree["onavekl"],
        },
        (
            f"Formulas against Monte Carlo; to agree is to be within {AGREE:g} standard errors",
            cells,
        ),
    )


LEAKAGE = PaperFigure(
    "leakage", "Does the paper's formula give the leakage?", _draw, _caption, _points
)
