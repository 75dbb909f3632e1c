"""Small columns: how far one record moves them, how often they are zero, and what they leak."""

from __future__ import annotations

import math
from itertools import product
from typing import Any

import numpy as np
import polars as pl
from scipy.special import erfc, ndtr

import privasso as pv
from privasso.figures import figure
from privasso.paper.experiments import Experiment, QuarterExperiment
from privasso.paper.figures._figure import (
    DESIGNS,
    LAW_TITLES,
    LAWS,
    LOOKS,
    OPEN,
    PaperFigure,
    Tables,
    finish,
    legend,
    lines,
    model,
    shared,
    theory_and_solver,
)
from privasso.paper.figures._settings import ALPHA, LAMS, RHO, Settings

#: λ/σ_η, at which both designs have a fixed point under both laws.
RATIO = 4.0
#: The λ that is drawn.
SHOWN = 0.2
#: Scales that are drawn; smaller columns are practically always zero.
LIMITS = {"uniform": (0.09, 1.1), "lognormal": (0.2, 5.0)}
#: Columns and axis titles of what is drawn.
PANELS = {
    "change": "change by one record",
    "nonzero": "probability of being nonzero",
    "leakage": "leakage of a coefficient",
}


def _points(settings: Settings) -> dict[str, list[Experiment]]:
    sizes = {"n_features": settings.small_features, "samples": settings.small_samples}
    records = min(8, settings.small_features // 8)
    grid = tuple(LAWS), DESIGNS, LAMS
    experiment = QuarterExperiment(*grid, ratio=RATIO, records=records, **sizes, **shared(settings))
    return {"small_points": [experiment]}


def _theory(settings: Settings) -> dict[str, pl.DataFrame]:
    parts = []
    for law, design, lam in product(LAWS, DESIGNS, LAMS):
        noise = LOOKS[design].noise.with_sigma(lam / RATIO)
        n = settings.small_features
        fp = pv.state_evolution(model(law), lam, noise, n_features=n)
        v = np.sort(LAWS[law].quantiles(n)) ** 2
        deviations = np.sqrt(noise.variances(v))
        found = [column(fp.E, fp.V, lam, *pair) for pair in zip(v, deviations, strict=True)]
        nonzero, leakage = np.array(found).T
        part = pl.DataFrame({"scale": np.sqrt(v), "nonzero": nonzero, "leakage": leakage})
        named = {"law": law, "design": design, "lam": lam, "sigma": lam / RATIO, "n_features": n}
        named |= {"status": fp.status.value, "version": pv.__version__}
        parts.append(part.with_columns(pl.lit(value).alias(name) for name, value in named.items()))
    first = ["law", "design", "lam", "sigma", "n_features", "version", "status"]
    return {"small_theory": pl.concat(parts).select(*first, pl.exclude(first))}


def column(E: float, V: float, lam: float, v: float, deviation: float) -> tuple[float, float]:
    """P(x̂ ≠ 0) and α⁻² E R_v/v, the summand of the paper's cwOnAveKL, of a column with v = s².

    `deviation` is σ_η(v). m̂ is normal with variance E/(αv), or 1 + E/(αv) for a true coefficient.
    """
    width = (1.0 + V) / (ALPHA * v)
    tau, kappa = width * deviation, lam / deviation
    nonzero = leakage = 0.0
    for share, signal in ((1.0 - RHO, 0.0), (RHO, 1.0)):
        field = math.sqrt(signal + E / (ALPHA * v))
        total = math.hypot(field, tau)
        t = lam * width / total
        chance = float(erfc(t / math.sqrt(2.0)))
        # E[r''] in closed form, and E[r'²/(1−r)] on a grid of m̂/τ.
        curvature = 2.0 * t * math.exp(-0.5 * t * t) / math.sqrt(2.0 * math.pi) / total**2
        information = curvature + (chance + _zero(kappa, field / tau)) / tau**2
        nonzero += share * chance
        leakage += share * E * information / (ALPHA**2 * v)
    return nonzero, leakage


def _zero(kappa: float, spread: float) -> float:
    """Mean of (φ(a) − φ(b))²/(Φ(a) − Φ(−b)), a = κ − z, b = κ + z, over z ~ N(0, spread²)."""
    first, last = max(0.0, kappa - 9.0), min(9.0 * spread, kappa + 9.0)
    if last <= first:  # z would be nine deviations away
        return 0.0
    z = np.linspace(first, last, 1 + math.ceil(40.0 * (last - first) / min(spread, 1.0)))
    a, b = kappa - z, kappa + z
    slope = (np.exp(-0.5 * a * a) - np.exp(-0.5 * b * b)) / math.sqrt(2.0 * math.pi)
    mass = np.maximum(ndtr(a) - ndtr(-b), 1e-300)
    prior = np.exp(-0.5 * (z / spread) ** 2) / (spread * math.sqrt(2.0 * math.pi))
    return float(2.0 * np.trapezoid(slope**2 / mass * prior, z))


def _draw(tables: Tables) -> Any:
    points, theory = (tables[name].filter(lam=SHOWN) for name in ("small_points", "small_theory"))
    canvas = figure(10.5, 6.8)
    panels = canvas.subplots(2, len(PANELS), sharex="row")
    for (row, law), (place, name) in product(zip(panels, LAWS, strict=True), enumerate(PANELS)):
        axes = row[place]
        for design in DESIGNS:
            look = LOOKS[design]
            if name in theory.columns:
                line = theory.filter(law=law, design=design)
                axes.plot(line["scale"], line[name], color=look.colour, lw=1.4)
            if name in points.columns:
                rows = points.filter(law=law, design=design)
                marks = {"fmt": look.marker, "color": look.colour, **OPEN}
                axes.errorbar(rows["scale"], rows[name], rows[f"{name}_se"], zorder=3, **marks)
        finish(axes, ylabel=PANELS[name], xlim=LIMITS[law])
        if law == "lognormal":
            axes.set_xlabel("scale s of the column")
        if name == "nonzero":
            axes.set_ylim(1e-4, 1.0)
        elif name == "leakage":
            top = 2.0 * float(theory.filter(law=law)["leakage"].to_numpy().max())
            axes.set_ylim(top / 1e4, top)
        if place == 0:
            axes.set_title(LAW_TITLES[law], loc="left", fontsize=10)
    legend(canvas, [*lines(DESIGNS), *theory_and_solver()])
    return canvas


def _caption(tables: Tables) -> str:
    points = tables["small_points"]
    sigma = SHOWN / RATIO
    return (
        f"Not in the paper, which says so in words. λ = {SHOWN:g}, σ_η = {sigma:g}. Marks: "
        f"quarters of the columns by scale (N = {points['n_features'][0]}, "
        f"{points['samples'][0]} data sets). Lines: prediction for one column. Left: by how much "
        "a coefficient changes when one record is replaced (mean square, times N). Middle: how "
        "often it is released as nonzero. Right: what the coefficient adds to the paper's "
        "cwOnAveKL, which is the mean over the columns."
    )


SMALL = PaperFigure("small", "What small columns reveal", _draw, _caption, _points, _theory)
