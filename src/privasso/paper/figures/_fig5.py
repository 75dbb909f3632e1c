"""Fig. 5: prediction error against leakage."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from privasso.figures import figure
from privasso.paper.figures._curves import infinite_limit, noise_curves
from privasso.paper.figures._figure import PaperFigure, Tables, no_experiments
from privasso.paper.figures._frontier import compare, frontier
from privasso.paper.figures._looks import LAW_NAMES, LAW_TITLES, LAWS, LOOKS, finish, legend
from privasso.paper.figures._settings import LAMS, Settings

if TYPE_CHECKING:
    import polars as pl

#: Columns of leakage and their names.
MEASURES = {"onavekl_paper": "paper's cwOnAveKL", "onavekl": "exact OnAveKL"}


def _tables(settings: Settings, results: Tables) -> dict[str, pl.DataFrame]:
    import polars as pl

    curves = [
        noise_curves(
            [law], [design], LAMS, None, points=settings.curve,
            n_features=settings.n_features if infinite_limit(law, design) else None,
        )
        for law in LAWS
        for design in LOOKS
    ]  # fmt: skip
    return {"fig5_tradeoff": pl.concat(curves)}


def _draw(tables: Tables) -> Any:
    table = tables["fig5_tradeoff"]
    canvas = figure(10.5, 8.6)
    panels = canvas.subplots(2, 2, sharex="col", sharey="col")
    widths = dict(zip(LAMS, (1.0, 1.6, 2.4), strict=True))
    for i, (measure, name) in enumerate(MEASURES.items()):
        for j, law in enumerate(LAWS):
            axes = panels[i, j]
            for design, look in LOOKS.items():
                for lam, width in widths.items():
                    curve = table.filter(law=law, design=design, lam=lam, status="stable")
                    axes.plot(curve["E"], curve[measure], color=look.colour, lw=width)
                    edge = frontier(table.filter(law=law, design=design, lam=lam), measure)
                    axes.plot(edge.E[0], edge.least, "o", color=look.colour, ms=4.5)
            for lam in LAMS:  # labelled where the curves leave the figure at the top
                edge = frontier(table.filter(law=law, design="gram", lam=lam), measure)
                axes.annotate(
                    f"λ = {lam:g}" if lam == LAMS[-1] else f"{lam:g}",
                    (edge.error(np.array([TOP[law]]))[0], TOP[law]), ha="center", va="bottom",
                    xytext=(0, 2), textcoords="offset points", fontsize=9,
                )  # fmt: skip
            finish(axes)
            axes.set_xlim(*ERRORS[law])
            axes.set_ylim(BOTTOM[law], TOP[law])
            if i == 0:
                axes.set_title(LAW_TITLES[law], loc="left", fontsize=10, pad=18)
            else:
                axes.set_xlabel("prediction error E")
        panels[i, 0].set_ylabel(f"leakage: {name}")
    legend(canvas, [(look.name, {"color": look.colour, "lw": 3}) for look in LOOKS.values()])
    return canvas


#: Limits of the axes: further left the noise is negligible, further right E is of no use.
ERRORS = {"uniform": (0.0165, 0.1), "lognormal": (0.022, 0.4)}
BOTTOM = {"uniform": 0.025, "lognormal": 0.25}
TOP = {"uniform": 30.0, "lognormal": 100.0}


def _caption(tables: Tables) -> str:
    table = tables["fig5_tradeoff"]
    sentences = []
    for law in LAWS:
        for measure, name in MEASURES.items():
            found = [compare(table, law, lam, measure, "gram", "isotropic") for lam in LAMS]
            excess = max(0.0, max(c.worst for c in found) - 1.0)
            reach = ", ".join(f"{c.reach:.2f}" for c in found)
            sentences.append(
                f"{LAW_NAMES[law]}, {name}: least leakage {reach} times as large, E at equal "
                f"leakage up to {excess:.1%} larger"
            )
    finite = table.filter(law="uniform", design="isotropic")["n_features"][0]
    lams = ", ".join(f"{lam:g}" for lam in LAMS)
    return (
        "Along each curve the noise level σ_η grows, from the upper left. The dot marks the least "
        "leakage; more noise than there raises both error and leakage. Power 1 is noise of "
        "variance ∝ v. Gram-based noise compared with isotropic noise, for λ = "
        f"{lams}: {'; '.join(sentences)}. "
        + (
            "Under isotropic noise on v1 E has no finite limit for many columns, so the curves are "
            f"those of {finite} columns. "
            if finite
            else ""
        )
        + "OnAveKL is an average under the model. It bounds the leakage of no single person and is "
        "not an ε."
    )


FIG5 = PaperFigure(
    "fig5", "Fig. 5: error against leakage", no_experiments, _tables, _draw, _caption
)
