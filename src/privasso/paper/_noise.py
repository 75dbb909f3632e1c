"""Figs. 1 and 2: the effective noise of two columns, and the threshold of a small column."""

from __future__ import annotations

import math
from itertools import product

import numpy as np
import polars as pl
from scipy.special import erfc

import privasso as pv
from privasso._types import Json
from privasso.figures import GREY, Figure
from privasso.paper import _ink as ink
from privasso.paper._claim import Finding, claim, found, verdict_if
from privasso.paper._figure import (
    ALPHA,
    DESIGNS,
    LAWS,
    LOOKS,
    PaperFigure,
    Settings,
    Tables,
    model,
)

#: Fig. 1: two columns, their correlations, and draws of noise of unit power.
SCALES, CORRELATIONS, DRAWS = (1.0, 0.6), (0.0, 0.5), 300
#: Fig. 2: a column of that scale, λ and σ_η.
LAW, SCALE, LAM, SIGMA = "lognormal", 0.4, 0.2, 0.12
#: Ratio of the axes up to which an ellipse counts as a circle.
ROUND = 1.05


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
            for kind, matrix in covariances(covariates(correlation), noise).items():
                rows.append(
                    {
                        "design": design, "correlation": correlation, "noise": kind,
                        "variance_1": matrix[0, 0], "variance_2": matrix[1, 1],
                        "covariance": matrix[0, 1], "axis_ratio": axis_ratio(matrix),
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
    canvas, panels = ink.panels(7.2, 7.0, 2, 2, x="large column", sharex=True, sharey=True)
    draws, shapes = tables["fig1_draws"], tables["fig1_covariances"].sort("correlation")
    kinds = {"injected": ("eta", "Injected, η"), "effective": ("effective", "Effective, (FᵀF)⁻¹η")}
    for row, design in zip(panels, DESIGNS, strict=True):
        look, own = LOOKS[design], draws.filter(design=design)
        for axes, (noise, (stem, title)) in zip(row, kinds.items(), strict=True):
            x, y = own[f"{stem}_1"], own[f"{stem}_2"]
            axes.scatter(x, y, s=5, color=look.colour, alpha=0.25, lw=0)
            both, notes = shapes.filter(design=design, noise=noise).to_dicts(), []
            for shape, line, start in zip(both, ("-", "--"), ("axes", "dashed"), strict=True):
                if noise == "effective" or line == "-":
                    axes.plot(*_ellipse(shape), line, color=look.colour, lw=1.6)
                    notes.append(f"{start} {shape['axis_ratio']:.3g} : 1")
            place = {"transform": axes.transAxes, "va": "bottom", "fontsize": 9}
            axes.text(0.03, 0.03, "\n".join(notes), **place)
            axes.axhline(0, color=GREY, lw=0.4, zorder=0)
            axes.axvline(0, color=GREY, lw=0.4, zorder=0)
            ink.finish(axes, log="", aspect="equal", xlim=(-8.5, 8.5), ylim=(-8.5, 8.5))
            if design == DESIGNS[0]:
                axes.set_title(title, fontsize=11)
        row[0].set_ylabel(f"{look.name} noise\nsmall column", color=look.colour)
    line = {"color": GREY, "lw": 1.6}
    strong = f"columns of correlation {CORRELATIONS[1]:g}"
    ink.legend(canvas, [("uncorrelated columns", line), (strong, {**line, "ls": "--"})])
    return canvas


def _ellipse(row: dict[str, float]) -> tuple[np.ndarray, np.ndarray]:
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


def channel(design: str) -> dict[str, Json]:
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
    name = "estimate before thresholding, m − ηΣ"
    canvas, panels = ink.panels(9.0, 3.6, 1, 2, x=name, y="density", sharex=True, sharey=True)
    reach = 1.45 * channels["threshold"].to_numpy().max()
    x = np.linspace(-reach, reach, 1201)
    for axes, row in zip(panels[0], channels.to_dicts(), strict=True):
        look, threshold = LOOKS[row["design"]], row["threshold"]
        density = np.exp(-0.5 * (x / row["deviation"]) ** 2)
        density /= row["deviation"] * math.sqrt(2.0 * math.pi)
        axes.plot(x, density, color=look.colour, lw=1.8)
        beyond = np.abs(x) >= threshold
        axes.fill_between(x, density, where=beyond, color=look.colour, alpha=0.35, lw=0)
        for side in (-1.0, 1.0):
            axes.axvline(side * threshold, color=GREY, lw=1.2, ls="--")
        ink.finish(axes, log="")
        title = f"{look.name}: {_chance(row['beyond'])} beyond the threshold"
        axes.set_title(title, color=look.colour, loc="left", fontsize=10)
    panels[0, 0].set_ylim(bottom=0.0)
    at = -channels.filter(design="isotropic")["threshold"][0], 0.5
    place = {"xycoords": ("data", "axes fraction"), "color": GREY}
    ink.note(panels[0, 0], "threshold ±λΣ", at, (5, 0), **place)
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


@claim("l", ROUND=ROUND)
def _effective_isotropy(table: pl.DataFrame) -> Finding:
    rows = table.filter(noise="effective", correlation=0.0)
    iso, gram = (rows.filter(design=x)["axis_ratio"][0] for x in DESIGNS)
    return found(
        verdict_if(gram <= ROUND, gram < iso),
        f"The ratio is {gram:.3g} : 1 under Gram-based and {iso:.3g} : 1 under isotropic noise.",
        {"axis_ratio_gram": gram, "axis_ratio_isotropic": iso},
        (
            "Ratio of the axes of the effective noise",
            [{"isotropic": f"{iso:.3g} : 1", "Gram-based": f"{gram:.3g} : 1"}],
        ),
    )


FIG1 = PaperFigure(
    "fig1", "Fig. 1: injected and effective noise",
    _draw_noise, _noise_caption, predicted=_noise_tables,
)  # fmt: skip
FIG2 = PaperFigure(
    "fig2", "Fig. 2: threshold and noise in a small column",
    _draw_channels, _channel_caption, predicted=_channel_tables,
)  # fmt: skip
