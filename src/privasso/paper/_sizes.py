"""Figures against the number of columns N: the KKT violation of Algorithm 1, and the error."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import KW_ONLY, dataclass
from itertools import product
from typing import ClassVar

import numpy as np
import polars as pl

from privasso.figures import GREY, Figure
from privasso.paper import _experiment as sim
from privasso.paper import _ink as ink
from privasso.paper._claim import AGREE, ClaimVerdict, Finding, claim, found, verdict_if
from privasso.paper._curves import noise_curves, slope
from privasso.paper._figure import (
    DESIGNS,
    LAWS,
    LOOKS,
    PaperFigure,
    Settings,
    Simulated,
    Tables,
    shown,
)
from privasso.paper._grid import GridExperiment
from privasso.problem import Problem
from privasso.solvers import Status, amp_paper_many, paper_starts, solve

#: Random starts of Algorithm 1; the first that converges counts.
STARTS = 4
KKT_LAM, KKT_SIGMA = 0.2, 0.05
TAIL_LAW, TAIL_LAM = "uniform", 0.5
#: A level at which small columns are rarely active, and one at which most data sets have some.
TAIL_SIGMAS = (0.15, 0.22)
#: Largest N of the prediction.
FAR = 10_000
#: KKT violation, relative to λ, up to which a point counts as the minimiser.
MINIMISER = 1e-6
#: Exponent of N up to which a violation counts as vanishing in the limit.
VANISHING = -0.3


@dataclass(frozen=True)
class KktExperiment(sim.Experiment):
    """KKT violation, relative to λ, of the fixed point of Algorithm 1 as the paper writes it.

    The table has one row per law, design and N: ``kkt`` is the mean over the ``converged`` data
    sets of the largest violation (data sets that have a minimiser and on which a run of Algorithm 1
    converges), ``kkt_exact`` the largest violation of the certified solver on any data set,
    ``distance`` the mean of ‖x_paper − x̂‖/‖x̂‖.
    """

    kind: ClassVar[str] = "paper-kkt"
    varied: ClassVar[Mapping[str, str]] = {
        "laws": "law", "designs": "design", "n_features": "n_features"
    }  # fmt: skip

    laws: tuple[str, ...] = ("uniform", "lognormal")
    designs: tuple[str, ...] = ("isotropic", "gram")
    lam: float = 0.5
    sigma: float = 0.1
    _: KW_ONLY
    n_features: tuple[int, ...] = (250, 500, 1000, 2000)
    samples: int = 20

    @staticmethod
    def compute(parameters: sim.Parameters) -> sim.Result:
        """Compare the first converged run of Algorithm 1 with the minimiser."""
        data = sim.DataSet.draw(parameters)
        F, y, lam = data.sample.F, data.sample.y, parameters["lam"]
        n = F.shape[1]
        eta = parameters["sigma"] * data.direction(parameters["design"])
        exact = solve(F, y, lam, eta, throw=False)
        if exact.status is not Status.CONVERGED:
            return {"kkt": [None], "kkt_exact": [None], "distance": [None]}
        rngs = [sim.stream(parameters, "start", parameters["law"], n, k) for k in range(STARTS)]
        etas = np.tile(eta, (STARTS, 1)).T
        runs = amp_paper_many(F, y, np.full(STARTS, lam), etas, paper_starts(n, rngs))
        if not runs.converged.any():
            return {"kkt": [None], "kkt_exact": [exact.kkt], "distance": [None]}
        x = runs.x[:, int(np.argmax(runs.converged))]
        size = np.linalg.norm(exact.x)
        return {
            "kkt": [Problem.from_labels(F, y, lam, eta).kkt(x)],
            "kkt_exact": [exact.kkt],
            "distance": [float(np.linalg.norm(x - exact.x) / size) if size > 0.0 else None],
        }

    def rows(self, case: sim.Parameters, results: list[sim.Result]) -> Iterator[sim.Row]:
        kkt, exact, distance = (
            sim.known(sim.at(results)[x]) for x in ("kkt", "kkt_exact", "distance")
        )
        yield {
            "converged": kkt.size,
            **sim.means(kkt=kkt),
            "kkt_exact": float(exact.max()) if exact.size else None,
            **sim.means(distance=distance),
        }


def _kkt_points(settings: Settings) -> Simulated:
    data = settings.data("kkt")
    return {"kkt": KktExperiment(tuple(LAWS), DESIGNS, KKT_LAM, KKT_SIGMA, **data)}


def kkt_curve(table: pl.DataFrame, law: str, design: str) -> pl.DataFrame:
    """Rows of one law and design by N, where Algorithm 1 converged on at least two data sets."""
    rows = table.filter(law=law, design=design)
    return rows.filter(rows["kkt_se"].is_not_null()).sort("n_features")


def _draw_kkt(tables: Tables) -> Figure:
    table = tables["kkt"]
    sizes = table["n_features"].unique().sort().to_numpy()
    names = {"x": "columns N", "y": "largest KKT violation / λ"}
    canvas, panels = ink.panels(9.0, 4.0, 1, 2, **names, sharex=True, sharey=True)
    for axes, law in zip(panels[0], LAWS, strict=True):
        for design in DESIGNS:
            rows = kkt_curve(table, law, design)
            if not rows.height:
                continue
            look = {**ink.OPEN, "color": LOOKS[design].colour, "marker": LOOKS[design].marker}
            look["lw"] = 1.2
            axes.errorbar(rows["n_features"], rows["kkt"], rows["kkt_se"], **look)
            if design == "gram":
                guide = 0.5 * rows["kkt"][0] * (sizes / rows["n_features"][0]) ** -0.5
                axes.plot(sizes, guide, color=GREY, lw=1.0, ls=":")
                ink.note(axes, r"$N^{-1/2}$", (sizes[0], guide[0]), (0, -14), color=GREY)
        limits = sizes[0] / 1.2, sizes[-1] * 1.2
        ink.finish(axes, LAWS[law].title, xlim=limits)
    looks = [{**look, "lw": 1.4} for look in ink.marks(ls="-")]
    ink.legend(canvas, list(zip((LOOKS[x].name for x in DESIGNS), looks, strict=True)))
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


def _tail_points(settings: Settings) -> Simulated:
    data = settings.data("tail")
    grid = (TAIL_LAW,), DESIGNS, (TAIL_LAM,), TAIL_SIGMAS
    sizes = data.pop("n_features")
    return {"tail_points": [GridExperiment(*grid, n_features=size, **data) for size in sizes]}


def _tail_theory(settings: Settings) -> Tables:
    sizes = np.geomspace(settings.data("tail")["n_features"][0], FAR, 12).astype(int).tolist()
    grid = [TAIL_LAW], DESIGNS, [TAIL_LAM], TAIL_SIGMAS
    return {"tail_theory": pl.concat(noise_curves(*grid, n_features=size) for size in sizes)}


def _draw_tail(tables: Tables) -> Figure:
    points, theory = tables["tail_points"], tables["tail_theory"]
    names = {"x": "columns N", "y": "prediction error E"}
    canvas, panels = ink.panels(9.0, 4.2, 1, 2, **names, sharex=True, sharey=True)
    for axes, sigma in zip(panels[0], TAIL_SIGMAS, strict=True):
        ink.compared(axes, points, theory, "n_features", "E", runs=False, sigma=sigma)
        ink.finish(axes, rf"$\sigma_\eta$ = {sigma:g}", ylim=(0.02, 20.0))
        axes.xaxis.set_major_formatter(lambda value, _: f"{value:,.0f}")
    ink.legend(canvas, ink.SOLVED)
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


@claim("i", MINIMISER=MINIMISER, VANISHING=VANISHING)
def _returns_minimiser(table: pl.DataFrame) -> Finding:
    worst, cells, exponents = 0.0, [], []
    for law, design in table.select("law", "design").unique(maintain_order=True).rows():
        rows = kkt_curve(table, law, design)
        if rows.height < 2:
            continue
        worst = max(worst, float(rows["kkt"].to_numpy().max()))
        exponents.append(slope(rows["n_features"], rows["kkt"]))
        first, last = (f"{rows['kkt'][k]:.2%} (N = {rows['n_features'][k]})" for k in (0, -1))
        cells.append(
            {
                "law": LAWS[law].name, "noise": LOOKS[design].name, "smallest N": first,
                "largest N": last, "exponent of N": f"{exponents[-1]:.2f}",
            }
        )  # fmt: skip
    if not cells:
        return Finding(ClaimVerdict.UNTESTED, "Algorithm 1 converged on too few data sets", {})
    return found(
        verdict_if(worst <= MINIMISER, max(exponents) <= VANISHING),
        f"The KKT violation relative to λ is at most {worst:.2%} at any N. That of the exact "
        f"solver is at most {float(table['kkt_exact'].to_numpy().max()):.0e}.",
        {"largest_kkt": worst, "exponents": exponents},
        ("KKT violation relative to λ", cells),
    )


@claim("m", AGREE=AGREE)
def _finite_limit(points: pl.DataFrame, theory: pl.DataFrame) -> Finding:
    theory = theory.filter(design="isotropic", status="stable").sort("n_features")
    points = points.filter(design="isotropic").sort("n_features")
    infinite = set(points["status_limit"]) == {"infinite error"}
    growth, rises, measured, sizes = [], [], [], []
    for sigma in points["sigma"].unique().sort():
        line = theory.filter(sigma=sigma)
        rows = shown(points.filter(sigma=sigma), "exists")
        if line.height:
            growth.append(line["E"][-1] / line["E"][0])
        if rows.height >= 2:
            ends = [rows.row(k, named=True) for k in (0, -1)]
            error = float(np.hypot(*(end["E_se"] for end in ends)))
            rises.append((ends[1]["E"] - ends[0]["E"]) / error)
            measured.append((sigma, [f"{end['E']:.3g} ± {end['E_se']:.1g}" for end in ends]))
            sizes = [f"N = {end['n_features']}" for end in ends]
    largest = max(growth, default=1.0)
    cells = [
        {"σ_η": f"{sigma:g}", **dict(zip(sizes, both, strict=True)),
         "difference": f"{rise:+.1f} standard errors"}
        for (sigma, both), rise in zip(measured, rises, strict=True)
    ]  # fmt: skip
    grows = infinite and largest > 2.0
    return found(
        _decided(grows, max(rises, default=0.0) > AGREE),
        f"Isotropic noise on v1, λ = {points['lam'][0]:g}: the limit of E is "
        f"{'infinite' if infinite else 'finite'}. Over the range of N the prediction grows by "
        f"a factor of {largest:.3g}.",
        {"growth_predicted": largest, "rises_measured": rises, "limit_infinite": infinite},
        ("Measured E", cells),
    )


def _decided(predicted: bool, measured: bool) -> ClaimVerdict:
    """The verdict for a growth without bound that is predicted, and measured or not."""
    if not predicted:
        return ClaimVerdict.CONFIRMED
    return ClaimVerdict.CONTRADICTED if measured else ClaimVerdict.UNDECIDED


KKT = PaperFigure(
    "kkt", "Does Algorithm 1 return the minimiser?", _draw_kkt, _kkt_caption, _kkt_points
)
TAIL = PaperFigure(
    "tail", "An error that grows with the number of columns",
    _draw_tail, _tail_caption, _tail_points, _tail_theory,
)  # fmt: skip
