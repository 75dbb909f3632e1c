"""Fig. 5: error against leakage, for the designs of the paper and one of ours."""

from __future__ import annotations

from itertools import product

import numpy as np
import polars as pl

from privasso.figures import GREY, Figure
from privasso.paper import _ink as ink
from privasso.paper._claim import Finding, claim, found, verdict_if, verdict_of
from privasso.paper._curves import (
    RANGE,
    TIE,
    compare,
    frontier,
    infinite_limit,
    noise_curves,
    slope,
)
from privasso.paper._figure import LAMS, LAWS, LOOKS, PaperFigure, Settings, Tables

#: Columns of leakage and their names.
MEASURES = {"onavekl_paper": "paper's cwOnAveKL", "onavekl": "exact OnAveKL"}
#: A panel shows leakages from below the least to this multiple of it.
SHOWN = 60.0


def _theory(settings: Settings) -> Tables:
    parts = []
    for law, design in product(LAWS, LOOKS):
        size = settings.n_features if infinite_limit(law, design) else None
        grid = [law], [design], LAMS, None
        parts.append(noise_curves(*grid, points=settings.curve, n_features=size))
    return {"fig5_tradeoff": pl.concat(parts)}


def _draw(tables: Tables) -> Figure:
    table = tables["fig5_tradeoff"]
    rows = list(product(LAWS, MEASURES))
    canvas, panels = ink.panels(10.5, 11.0, len(rows), len(LAMS), x="prediction error E")
    for (i, (law, measure)), (j, lam) in product(enumerate(rows), enumerate(LAMS)):
        axes, ends = panels[i, j], []
        for design, look in LOOKS.items():
            curve = table.filter(law=law, design=design, lam=lam)
            line = curve.filter(status="stable").sort("sigma")
            leakage, E = frontier(curve, measure)
            least = int(line[measure].arg_min() or 0)
            ahead, beyond = line.head(least + 1), line.slice(least)
            axes.plot(ahead["E"], ahead[measure], color=look.colour, lw=1.6)
            axes.plot(beyond["E"], beyond[measure], color=look.colour, lw=1.0, ls=":")
            axes.plot(E[0], leakage[0], look.marker, color=look.colour, mfc="white", ms=5)
            ends.append((E.min(), E[0], leakage[0]))
        first, last, lowest = np.array(ends).T
        left, right = 0.97 * first.min(), max(1.25 * last.max(), 1.3 * first.min())
        limits = {"xlim": (left, right), "ylim": (0.7 * lowest.min(), SHOWN * lowest.min())}
        ink.finish(axes, f"{LAWS[law].name}, λ = {lam:g}", log="y", **limits)
        axes.locator_params(axis="x", nbins=4)
        if j == 0:
            axes.set_ylabel(f"leakage:\n{MEASURES[measure]}")
    entries = [
        (look.name, {"color": look.colour, "lw": 1.6, "marker": look.marker, "mfc": "white"})
        for look in LOOKS.values()
    ]
    beyond = ("more noise than at the least leakage", {"color": GREY, "lw": 1.0, "ls": ":"})
    ink.legend(canvas, [*entries, beyond])
    return canvas


def _caption(tables: Tables) -> str:
    table = tables["fig5_tradeoff"]
    sentences = []
    for law, (measure, name) in product(LAWS, MEASURES.items()):
        found = [compare(table, law, lam, measure, "gram", "isotropic") for lam in LAMS]
        excess = max(0.0, max(c.worst for c in found) - 1.0)
        reach = ", ".join(f"{c.reach:.2f}" for c in found)
        sentences.append(
            f"{LAWS[law].name}, {name}: least leakage {reach} times as large, E at equal "
            f"leakage up to {excess:.1%} larger"
        )
    finite = table.filter(law="uniform", design="isotropic")["n_features"][0]
    infinite = (
        "Under isotropic noise on v1 E has no finite limit for many columns, so the curves are "
        f"those of {finite} columns. "
    )
    return (
        "Along each curve the noise level σ_η grows, from the upper left. The mark is at the least "
        "leakage; more noise than there (dotted) raises both error and leakage. Each panel has "
        "axes of its own. Power 1 is noise of variance ∝ v. Gram-based noise compared with "
        "isotropic noise, for λ = "
        f"{', '.join(f'{lam:g}' for lam in LAMS)}: {'; '.join(sentences)}. "
        f"{infinite if finite else ''}OnAveKL is an average under the model. It bounds the leakage "
        "of no single person and is not an ε."
    )


@claim("g")
def _leakage_curve(table: pl.DataFrame) -> Finding:
    curves, cells = [], []
    for measure, name in MEASURES.items():
        own = []
        for _, curve in table.filter(status="stable").group_by(
            "law", "design", "lam", maintain_order=True
        ):
            curve = curve.sort("sigma")
            leakage, sigma = curve[measure].to_numpy(), curve["sigma"].to_numpy()
            low = sigma <= 10.0 * sigma[0]
            own.append((slope(sigma[low], leakage[low]), leakage[-1] / leakage.min()))
        powers, risen = zip(*own, strict=True)
        ends = (f"{x:,.0f}" if x >= 100.0 else f"{x:.3g}" for x in (min(risen), max(risen)))
        cells.append(
            {
                "leakage": name,
                "both conditions": f"{sum(map(_both, own))} of {len(own)}",
                "exponent of σ_η at low noise": f"{min(powers):.2f} to {max(powers):.2f}",
                "leakage near the critical level / its minimum": " to ".join(ends),
            }
        )
        curves += own
    met, powers = sum(map(_both, curves)), [power for power, _ in curves]
    return found(
        verdict_of(met / len(curves)),
        f"Both conditions hold for {met} of {len(curves)} curves.",
        {"curves": len(curves), "met": met, "exponents": [min(powers), max(powers)]},
        ("Curves over all laws, designs and λ", cells),
    )


def _both(curve: tuple[float, float]) -> bool:
    power, rise = curve
    return bool(power < -0.5 and rise > 1.1)


def _versus(table: pl.DataFrame, other: str) -> Finding:
    """Gram-based noise against another design, for all laws, λ and both measures of leakage."""
    words, cells, values = [], [], {}
    for measure, name in MEASURES.items():
        for law in table["law"].unique(maintain_order=True):
            lams = table.filter(law=law)["lam"].unique().sort()
            pairs = [compare(table, law, lam, measure, "gram", other) for lam in lams]
            words += [c.word for c in pairs]
            cells.append(
                {
                    "leakage": name, "law": LAWS[law].name,
                    **{f"λ = {lam:g}": c.word for lam, c in zip(lams, pairs, strict=True)},
                    "ratio of E": f"{min(c.best for c in pairs):.2f} to "
                    f"{max(c.worst for c in pairs):.2f}",
                    "ratio of least leakage": " ".join(f"{c.reach:.2f}" for c in pairs),
                }
            )  # fmt: skip
            values[f"{LAWS[law].name}, {measure}"] = {
                "words": [c.word for c in pairs],
                "least_ratio_of_E": min(c.best for c in pairs),
                "largest_ratio_of_E": max(c.worst for c in pairs),
                "ratios_of_least_leakage": [c.reach for c in pairs],
            }
    better, behind = words.count("better"), words.count("worse") + words.count("mixed")
    return found(
        verdict_if(bool(better and not behind), bool(better)),
        f"Gram-based noise is better in {better} of {len(words)} cases and equal in "
        f"{words.count('equal')}.",
        values,
        (
            f"What Gram-based noise is, and ratios of Gram-based over {LOOKS[other].name} noise; "
            "E is compared at equal leakage",
            cells,
        ),
    )


@claim("h", RANGE=RANGE, TIE=TIE)
def _consistently_better(table: pl.DataFrame) -> Finding:
    return _versus(table, "isotropic")


@claim("k")
def _best_power(table: pl.DataFrame) -> Finding:
    return _versus(table, "power:1")


FIG5 = PaperFigure("fig5", "Fig. 5: error against leakage", _draw, _caption, predicted=_theory)
