"""Fig. 1: the injected noise η and the effective noise (FᵀF)⁻¹η, in two dimensions."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

import numpy as np

import privasso as pv
from privasso.figures import GREY, figure
from privasso.paper.figures._figure import PaperFigure, Tables, no_experiments
from privasso.paper.figures._looks import DESIGNS, LOOKS, legend
from privasso.paper.figures._settings import Settings

if TYPE_CHECKING:
    import polars as pl

SCALES = (1.0, 0.6)
CORRELATIONS = (0.0, 0.5)
SIGMA = 1.0
DRAWS = 300


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


def _tables(settings: Settings, results: Tables) -> dict[str, pl.DataFrame]:
    import polars as pl

    rows, draws = [], []
    for design in DESIGNS:
        noise = LOOKS[design].noise.with_sigma(SIGMA)
        for correlation in CORRELATIONS:
            F = covariates(correlation)
            for kind, covariance in covariances(F, noise).items():
                rows.append(
                    {
                        "design": design,
                        "correlation": correlation,
                        "noise": kind,
                        "variance_1": covariance[0, 0],
                        "variance_2": covariance[1, 1],
                        "covariance": covariance[0, 1],
                        "axis_ratio": axis_ratio(covariance),
                    }
                )
        F = covariates(0.0)
        v = np.diagonal(F.T @ F)
        eta = noise.draw(v, rng=np.random.default_rng([settings.seed, 1]), size=DRAWS)
        effective = np.linalg.solve(F.T @ F, eta)
        draws.append(
            pl.DataFrame(
                {
                    "design": design,
                    "seed": settings.seed,
                    "eta_1": eta[0],
                    "eta_2": eta[1],
                    "effective_1": effective[0],
                    "effective_2": effective[1],
                }
            )
        )
    version = pl.lit(pv.__version__).alias("version")
    return {
        "fig1_covariances": pl.DataFrame(rows).with_columns(version),
        "fig1_draws": pl.concat(draws).with_columns(version),
    }


def _draw(tables: Tables) -> Any:
    canvas = figure(7.2, 7.0)
    panels = canvas.subplots(2, 2, sharex=True, sharey=True)
    for row, design in zip(panels, DESIGNS, strict=True):
        look = LOOKS[design]
        draws = tables["fig1_draws"].filter(design=design)
        for axes, noise, stem in zip(
            row, ("injected", "effective"), ("eta", "effective"), strict=True
        ):
            axes.scatter(
                draws[f"{stem}_1"], draws[f"{stem}_2"], s=5, color=look.colour, alpha=0.25, lw=0
            )
            notes = []
            for correlation in CORRELATIONS:
                found = (
                    tables["fig1_covariances"]
                    .filter(design=design, correlation=correlation, noise=noise)
                    .row(0, named=True)
                )
                x, y = _ellipse(found)
                if noise == "effective" or correlation == 0.0:
                    axes.plot(x, y, "--" if correlation else "-", color=look.colour, lw=1.6)
                notes.append(found["axis_ratio"])
            text = f"axes {notes[0]:.3g} : 1"
            if noise == "effective":
                text += f"\ndashed {notes[1]:.3g} : 1"
            axes.text(0.03, 0.03, text, transform=axes.transAxes, va="bottom", fontsize=9)
            axes.set_aspect("equal")
            axes.axhline(0, color=GREY, lw=0.4, zorder=0)
            axes.axvline(0, color=GREY, lw=0.4, zorder=0)
            axes.spines[["top", "right"]].set_visible(False)
            axes.tick_params(labelsize=9)
        row[0].set_ylabel(f"{look.name} noise\nsmall column", color=look.colour)
    panels[0, 0].set_title("Injected, η", fontsize=11)
    panels[0, 1].set_title("Effective, (FᵀF)⁻¹η", fontsize=11)
    for axes in panels[1]:
        axes.set_xlabel("large column")
        axes.set_xlim(-8.5, 8.5)
        axes.set_ylim(-8.5, 8.5)
    line = {"color": GREY, "lw": 1.6}
    legend(
        canvas,
        [
            ("uncorrelated columns", line),
            (f"columns of correlation {CORRELATIONS[1]:g}", {**line, "ls": "--"}),
        ],
    )
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


def _caption(tables: Tables) -> str:
    table = tables["fig1_covariances"].filter(noise="effective")

    def ratio(design: str, correlation: float) -> float:
        return table.filter(design=design, correlation=correlation)["axis_ratio"][0]

    strong = CORRELATIONS[1]
    return (
        f"Noise of unit mean power on two columns of scales {SCALES[0]:g} and {SCALES[1]:g}: "
        f"{DRAWS} draws, and the ellipse of two standard deviations computed from F. When the "
        "columns are uncorrelated, the axes of the effective noise have the ratio "
        f"{ratio('isotropic', 0.0):.3g} : 1 under isotropic and {ratio('gram', 0.0):.3g} : 1 under "
        f"Gram-based noise. At correlation {strong:g} (dashed) the ratios are "
        f"{ratio('isotropic', strong):.3g} : 1 and {ratio('gram', strong):.3g} : 1. Variances that "
        "are chosen column by column correct for unequal scales, but not for correlation."
    )


FIG1 = PaperFigure(
    "fig1", "Fig. 1: injected and effective noise", no_experiments, _tables, _draw, _caption
)
