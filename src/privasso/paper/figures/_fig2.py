"""Fig. 2: the estimate before thresholding against the threshold, in a small column."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

import numpy as np
from scipy.special import erfc

import privasso as pv
from privasso.figures import GREY, figure
from privasso.paper.figures._figure import PaperFigure, Tables, no_experiments
from privasso.paper.figures._looks import DESIGNS, LAW_NAMES, LOOKS, model
from privasso.paper.figures._settings import ALPHA, Settings

if TYPE_CHECKING:
    import polars as pl

LAW = "lognormal"
LAM, SIGMA = 0.2, 0.12
SCALE = 0.4


def channel(design: str) -> dict[str, Any]:
    """Law of m − ηΣ for a zero coefficient in a column of scale `SCALE`, and its threshold.

    The law is N(0, E/(αv) + Σ²σ_η²(v)) with Σ = (1+V)/(αv). The coefficient is released as nonzero
    when |m − ηΣ| exceeds the threshold λΣ.
    """
    noise = LOOKS[design].noise.with_sigma(SIGMA)
    fp = pv.state_evolution(model(LAW), LAM, noise)
    v = SCALE**2
    law = model(LAW).scales
    power = {"isotropic": 1.0, "gram": v**2 / law.moment(2)}[design]
    width = (1.0 + fp.V) / (ALPHA * v)
    deviation = math.sqrt(fp.E / (ALPHA * v) + width**2 * power * SIGMA**2)
    threshold = LAM * width
    return {
        "law": LAW,
        "design": design,
        "lam": LAM,
        "sigma": SIGMA,
        "v": v,
        "E": fp.E,
        "V": fp.V,
        "Sigma": width,
        "threshold": threshold,
        "deviation": deviation,
        "noise_deviation": width * math.sqrt(power) * SIGMA,
        "beyond": float(erfc(threshold / deviation / math.sqrt(2.0))),
    }


def _tables(settings: Settings, results: Tables) -> dict[str, pl.DataFrame]:
    import polars as pl

    rows = [channel(design) for design in DESIGNS]
    version = pl.lit(pv.__version__).alias("version")
    return {"fig2_channels": pl.DataFrame(rows).with_columns(version)}


def _draw(tables: Tables) -> Any:
    channels = tables["fig2_channels"]
    canvas = figure(9.0, 3.6)
    panels = canvas.subplots(1, 2, sharex=True, sharey=True)
    reach = 1.45 * channels["threshold"].to_numpy().max()
    x = np.linspace(-reach, reach, 1201)
    for axes, design in zip(panels, DESIGNS, strict=True):
        look = LOOKS[design]
        row = channels.filter(design=design).row(0, named=True)
        density = np.exp(-0.5 * (x / row["deviation"]) ** 2)
        density /= row["deviation"] * math.sqrt(2.0 * math.pi)
        axes.plot(x, density, color=look.colour, lw=1.8)
        axes.fill_between(
            x, density, where=np.abs(x) >= row["threshold"], color=look.colour, alpha=0.35, lw=0
        )
        for side in (-1.0, 1.0):
            axes.axvline(side * row["threshold"], color=GREY, lw=1.2, ls="--")
        axes.set_title(
            f"{look.name}: {_chance(row['beyond'])} beyond the threshold",
            color=look.colour, loc="left", fontsize=10,
        )  # fmt: skip
        axes.set_xlabel("estimate before thresholding, m − ηΣ")
        axes.spines[["top", "right"]].set_visible(False)
        axes.tick_params(labelsize=9)
    panels[0].set_ylabel("density")
    panels[0].set_ylim(bottom=0.0)
    row = channels.filter(design="isotropic").row(0, named=True)
    panels[0].annotate(
        "threshold ±λΣ", (-row["threshold"], 0.5), xycoords=("data", "axes fraction"),
        xytext=(5, 0), textcoords="offset points", fontsize=9, color=GREY,
    )  # fmt: skip
    return canvas


def _chance(probability: float) -> str:
    """A probability in percent, or as "1 in n" when it is small."""
    if probability >= 1e-3:
        return f"{100.0 * probability:.2g} %"
    return f"1 in {float(f'{1.0 / probability:.2g}'):,.0f}"


def _caption(tables: Tables) -> str:
    rows = {row["design"]: row for row in tables["fig2_channels"].iter_rows(named=True)}
    iso, gram = rows["isotropic"], rows["gram"]
    return (
        f"A coefficient that is truly zero, in a column of scale {SCALE:g} (v = {iso['v']:.2g}, "
        f"{LAW_NAMES[LAW]}, λ = {LAM:g}, σ_η = {SIGMA:g}), at the fixed point of state "
        f"evolution. It is released as nonzero with probability {_chance(iso['beyond'])} under "
        f"isotropic and {_chance(gram['beyond'])} under Gram-based noise. The standard deviation "
        f"of the privacy noise is {iso['noise_deviation']:.3g} and {gram['noise_deviation']:.3g}, "
        f"the threshold {iso['threshold']:.3g} and {gram['threshold']:.3g}."
    )


FIG2 = PaperFigure(
    "fig2", "Fig. 2: threshold and noise in a small column",
    no_experiments, _tables, _draw, _caption,
)  # fmt: skip
