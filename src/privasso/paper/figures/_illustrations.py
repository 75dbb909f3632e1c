"""Figs. 1 and 2, the effective noise and the threshold of a column, and small columns."""

from __future__ import annotations

import math
from itertools import product
from typing import Any

import numpy as np
import polars as pl
from scipy.special import erfc, ndtr

import privasso as pv
from privasso.figures import GREY, Figure, figure
from privasso.paper.experiments import Experiment, QuarterExperiment
from privasso.paper.figures import _ink as ink
from privasso.paper.figures._figure import (
    ALPHA,
    DESIGNS,
    LAMS,
    LAWS,
    LOOKS,
    RHO,
    PaperFigure,
    Settings,
    Tables,
    model,
    named,
)

#: Fig. 1: two columns, their correlations, and draws of noise of unit power.
SCALES, CORRELATIONS, DRAWS = (1.0, 0.6), (0.0, 0.5), 300
#: Fig. 2: a column of that scale, λ and σ_η.
LAW, SCALE, LAM, SIGMA = "lognormal", 0.4, 0.2, 0.12
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


def covariates(correlation: float) -> np.ndarray:
    """Return F (2 × 2), whose two columns have the lengths `SCALES` and that correlation."""
    gram = np.outer(SCALES, SCALES) * np.array([[1.0, correlation], [correlation, 1.0]])
    return np.linalg.cholesky(gram).T


def covariances(F: np.ndarray, noise: pv.NoiseDesign) -> dict[str, np.ndarray]:
    """Return the covariance matrices of η and of (FᵀF)⁻¹η."""
    gram = F.T @ F
    injected = np.diag(noise.variances(np.diagonal(gram)))
    inverse = np.linalg.inv(gram)
    return {"injected": injected, "effective": inverse @ injected @ inverse}


def axis_ratio(covariance: np.ndarray) -> float:
    """Longest axis over shortest axis of an ellipse of equal density."""
    low, high = np.linalg.eigvalsh(covariance)
    return math.sqrt(high / low)


def _noise_tables(settings: Settings) -> dict[str, pl.DataFrame]:
    rows, draws = [], []
    for design in DESIGNS:
        noise = LOOKS[design].noise
        for correlation in CORRELATIONS:
            for kind, found in covariances(covariates(correlation), noise).items():
                rows.append(
                    {
                        "design": design, "correlation": correlation, "noise": kind,
                        "variance_1": found[0, 0], "variance_2": found[1, 1],
                        "covariance": found[0, 1], "axis_ratio": axis_ratio(found),
                    }
                )  # fmt: skip
        gram = covariates(0.0).T @ covariates(0.0)
        rng = np.random.default_rng([settings.seed, 1])
        eta = noise.draw(np.diagonal(gram), rng=rng, size=DRAWS)
        effective = np.linalg.solve(gram, eta)
        draws.append(
            pl.DataFrame(
                {
                    "design": design, "seed": settings.seed, "eta_1": eta[0], "eta_2": eta[1],
                    "effective_1": effective[0], "effective_2": effective[1],
                }
            )
        )  # fmt: skip
    version = pl.lit(pv.__version__).alias("version")
    return {
        "fig1_covariances": pl.DataFrame(rows).with_columns(version),
        "fig1_draws": pl.concat(draws).with_columns(version),
    }


def _draw_noise(tables: Tables) -> Figure:
    canvas = figure(7.2, 7.0)
    panels = canvas.subplots(2, 2, sharex=True, sharey=True)
    kinds = (("injected", "eta"), ("effective", "effective"))
    for row, design in zip(panels, DESIGNS, strict=True):
        look = LOOKS[design]
        draws = tables["fig1_draws"].filter(design=design)
        for axes, (noise, stem) in zip(row, kinds, strict=True):
            x, y = draws[f"{stem}_1"], draws[f"{stem}_2"]
            axes.scatter(x, y, s=5, color=look.colour, alpha=0.25, lw=0)
            both = tables["fig1_covariances"].filter(design=design, noise=noise).sort("correlation")
            notes = []
            for found, line in zip(both.to_dicts(), ("-", "--"), strict=True):
                if noise == "effective" or line == "-":
                    axes.plot(*_ellipse(found), line, color=look.colour, lw=1.6)
                    start = "dashed" if notes else "axes"
                    notes.append(f"{start} {found['axis_ratio']:.3g} : 1")
            text = "\n".join(notes)
            axes.text(0.03, 0.03, text, transform=axes.transAxes, va="bottom", fontsize=9)
            axes.axhline(0, color=GREY, lw=0.4, zorder=0)
            axes.axvline(0, color=GREY, lw=0.4, zorder=0)
            ink.finish(axes, log="", aspect="equal", xlim=(-8.5, 8.5), ylim=(-8.5, 8.5))
        row[0].set_ylabel(f"{look.name} noise\nsmall column", color=look.colour)
    panels[0, 0].set_title("Injected, η", fontsize=11)
    panels[0, 1].set_title("Effective, (FᵀF)⁻¹η", fontsize=11)
    for axes in panels[1]:
        axes.set_xlabel("large column")
    line = {"color": GREY, "lw": 1.6}
    strong = f"columns of correlation {CORRELATIONS[1]:g}"
    ink.legend(canvas, [("uncorrelated columns", line), (strong, {**line, "ls": "--"})])
    return canvas


def _ellipse(row: dict[str, Any]) -> tuple[np.ndarray, np.ndarray]:
    """Points of the ellipse of two standard deviations around zero."""
    covariance = np.array(
        [[row["variance_1"], row["covariance"]], [row["covariance"], row["variance_2"]]]
    )
    angle = np.linspace(0.0, 2.0 * np.pi, 200)
    circle = np.vstack([np.cos(angle), np.sin(angle)])
    x, y = 2.0 * np.linalg.cholesky(covariance) @ circle
    return x, y


def _noise_caption(tables: Tables) -> str:
    table = tables["fig1_covariances"].filter(noise="effective")
    ratio = {
        case: f"{table.filter(design=case[0], correlation=case[1])['axis_ratio'][0]:.3g} : 1"
        for case in product(DESIGNS, CORRELATIONS)
    }
    strong = CORRELATIONS[1]
    return (
        f"Noise of unit mean power on two columns of scales {SCALES[0]:g} and {SCALES[1]:g}: "
        f"{DRAWS} draws, and the ellipse of two standard deviations computed from F. When the "
        "columns are uncorrelated, the axes of the effective noise have the ratio "
        f"{ratio['isotropic', 0.0]} under isotropic and {ratio['gram', 0.0]} under "
        f"Gram-based noise. At correlation {strong:g} (dashed) the ratios are "
        f"{ratio['isotropic', strong]} and {ratio['gram', strong]}. Variances that "
        "are chosen column by column correct for unequal scales, but not for correlation."
    )


def channel(design: str) -> dict[str, Any]:
    """Law of m − ηΣ for a zero coefficient in a column of scale `SCALE`, and its threshold.

    The law is N(0, E/(αv) + Σ²σ_η²(v)) with Σ = (1+V)/(αv). The coefficient is released as nonzero
    when |m − ηΣ| exceeds the threshold λΣ.
    """
    fp = pv.state_evolution(model(LAW), LAM, LOOKS[design].noise.with_sigma(SIGMA))
    v = SCALE**2
    power = {"isotropic": 1.0, "gram": v**2 / model(LAW).scales.moment(2)}[design]
    width = (1.0 + fp.V) / (ALPHA * v)
    deviation = math.sqrt(fp.E / (ALPHA * v) + width**2 * power * SIGMA**2)
    threshold = LAM * width
    return {
        "law": LAW, "design": design, "lam": LAM, "sigma": SIGMA, "v": v, "E": fp.E, "V": fp.V,
        "Sigma": width, "threshold": threshold, "deviation": deviation,
        "noise_deviation": width * math.sqrt(power) * SIGMA,
        "beyond": float(erfc(threshold / deviation / math.sqrt(2.0))),
    }  # fmt: skip


def _channel_tables(settings: Settings) -> dict[str, pl.DataFrame]:
    rows = [{**channel(design), "version": pv.__version__} for design in DESIGNS]
    return {"fig2_channels": pl.DataFrame(rows)}


def _draw_channels(tables: Tables) -> Figure:
    channels = tables["fig2_channels"]
    canvas = figure(9.0, 3.6)
    panels = canvas.subplots(1, 2, sharex=True, sharey=True)
    reach = 1.45 * channels["threshold"].to_numpy().max()
    x = np.linspace(-reach, reach, 1201)
    for axes, row in zip(panels, channels.to_dicts(), strict=True):
        look, threshold = LOOKS[row["design"]], row["threshold"]
        density = np.exp(-0.5 * (x / row["deviation"]) ** 2)
        density /= row["deviation"] * math.sqrt(2.0 * math.pi)
        axes.plot(x, density, color=look.colour, lw=1.8)
        beyond = np.abs(x) >= threshold
        axes.fill_between(x, density, where=beyond, color=look.colour, alpha=0.35, lw=0)
        for side in (-1.0, 1.0):
            axes.axvline(side * threshold, color=GREY, lw=1.2, ls="--")
        ink.finish(axes, log="", xlabel="estimate before thresholding, m − ηΣ")
        title = f"{look.name}: {_chance(row['beyond'])} beyond the threshold"
        axes.set_title(title, color=look.colour, loc="left", fontsize=10)
    panels[0].set_ylabel("density")
    panels[0].set_ylim(bottom=0.0)
    at = -channels.filter(design="isotropic")["threshold"][0], 0.5
    place = {"xycoords": ("data", "axes fraction"), "color": GREY}
    ink.note(panels[0], "threshold ±λΣ", at, (5, 0), **place)
    return canvas


def _chance(probability: float) -> str:
    """A probability in percent, or as "1 in n" when it is small."""
    if probability >= 1e-3:
        return f"{100.0 * probability:.2g} %"
    return f"1 in {float(f'{1.0 / probability:.2g}'):,.0f}"


def _channel_caption(tables: Tables) -> str:
    iso, gram = tables["fig2_channels"].to_dicts()
    return (
        f"A coefficient that is truly zero, in a column of scale {SCALE:g} (v = {iso['v']:.2g}, "
        f"{LAWS[LAW].name}, λ = {LAM:g}, σ_η = {SIGMA:g}), at the fixed point of state "
        f"evolution. It is released as nonzero with probability {_chance(iso['beyond'])} under "
        f"isotropic and {_chance(gram['beyond'])} under Gram-based noise. The standard deviation "
        f"of the privacy noise is {iso['noise_deviation']:.3g} and {gram['noise_deviation']:.3g}, "
        f"the threshold {iso['threshold']:.3g} and {gram['threshold']:.3g}."
    )


def _small_points(settings: Settings) -> dict[str, list[Experiment]]:
    data = settings.data("small")
    records = min(8, data["n_features"] // 8)
    grid = tuple(LAWS), DESIGNS, LAMS
    experiment = QuarterExperiment(*grid, ratio=RATIO, records=records, **data)
    return {"small_points": [experiment]}


def _small_theory(settings: Settings) -> dict[str, pl.DataFrame]:
    parts = []
    for law, design, lam in product(LAWS, DESIGNS, LAMS):
        noise = LOOKS[design].noise.with_sigma(lam / RATIO)
        n = settings.data("small")["n_features"]
        fp = pv.state_evolution(model(law), lam, noise, n_features=n)
        v = np.sort(LAWS[law].scales.quantiles(n)) ** 2
        deviations = np.sqrt(noise.variances(v))
        found = [column(fp.E, fp.V, lam, *pair) for pair in zip(v, deviations, strict=True)]
        nonzero, leakage = np.array(found).T
        part = pl.DataFrame({"scale": np.sqrt(v), "nonzero": nonzero, "leakage": leakage})
        what = {"law": law, "design": design, "lam": lam, "sigma": lam / RATIO, "n_features": n}
        first = "law design lam sigma n_features version status"
        parts.append(named(part, first, **what, status=fp.status.value))
    return {"small_theory": pl.concat(parts)}


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


def _draw_small(tables: Tables) -> Figure:
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
                marks = {"fmt": look.marker, "color": look.colour, **ink.OPEN}
                axes.errorbar(rows["scale"], rows[name], rows[f"{name}_se"], zorder=3, **marks)
        ink.finish(axes, ylabel=PANELS[name], xlim=LIMITS[law])
        if law == "lognormal":
            axes.set_xlabel("scale s of the column")
        if name == "nonzero":
            axes.set_ylim(1e-4, 1.0)
        elif name == "leakage":
            top = 2.0 * float(theory.filter(law=law)["leakage"].to_numpy().max())
            axes.set_ylim(top / 1e4, top)
        if place == 0:
            axes.set_title(LAWS[law].title, loc="left", fontsize=10)
    ink.legend(canvas, [*ink.lines(DESIGNS), *ink.theory_and_solver()])
    return canvas


def _small_caption(tables: Tables) -> str:
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


FIG1 = PaperFigure(
    "fig1", "Fig. 1: injected and effective noise",
    _draw_noise, _noise_caption, predicted=_noise_tables,
)  # fmt: skip
FIG2 = PaperFigure(
    "fig2", "Fig. 2: threshold and noise in a small column",
    _draw_channels, _channel_caption, predicted=_channel_tables,
)  # fmt: skip
SMALL = PaperFigure(
    "small", "What small columns reveal",
    _draw_small, _small_caption, _small_points, _small_theory,
)  # fmt: skip
