"""What the paper says about the leakage of the released vector (its Fig. 5)."""

from __future__ import annotations

import numpy as np
import polars as pl

from privasso.paper.claims._claim import AGREE, Finding, claim, found, verdict_if, verdict_of
from privasso.paper.figures import (
    LAWS,
    LOOKS,
    MEASURES,
    RANGE,
    TIE,
    compare,
    deviations,
    largest_data,
    measured_over,
    slope,
)

_RULE = (
    "A case is a law, a λ and one of the two measures of leakage. In each, E is compared at equal "
    f"leakage, from the least that both designs reach to {RANGE:g} times that. Gram-based noise is "
    "better if its least leakage is lower or its E is somewhere lower, and the opposite holds "
    f"nowhere. Differences up to {TIE:.0%} do not count. Confirmed if it is better or equal in all "
    "cases, contradicted if it is better in none."
)


@claim(
    "g",
    "Leakage diverges as σ_η → 0; it falls as the noise level grows, and rises again when the "
    "level is too high.",
    section="IV-B, Fig. 5",
    test="One curve per law, design, λ and measure of leakage. Over the lowest decade "
    "of σ_η the exponent of the leakage must be below −0.5. Near the critical level the "
    "leakage must be above 1.1 times its minimum. Confirmed if both hold for 95 % of the curves, "
    "contradicted below 50 %.",
    needs="fig5_tradeoff",
)
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


@claim(
    "h",
    "Gram-based noise has the consistently better trade-off of error and leakage, in both "
    "settings and for a wide range of λ.",
    section="IV-B, Fig. 5",
    test="Gram-based noise is compared with isotropic noise. " + _RULE,
    needs="fig5_tradeoff",
)
def _consistently_better(table: pl.DataFrame) -> Finding:
    return _versus(table, "isotropic")


@claim(
    "k",
    "Noise in proportion to the Gram matrix (variance ∝ v²) is the design to choose. (The "
    "paper compares it only with isotropic noise. It does not say that v² is the best power.)",
    section="II-C, III-A (implied)",
    ours=True,
    test="As for claim h, compared with noise of variance ∝ v.",
    needs="fig5_tradeoff",
)
def _best_power(table: pl.DataFrame) -> Finding:
    return _versus(table, "power:1")


@claim(
    "j",
    "In the high-dimensional limit the OnAveKL is the sum over components, cwOnAveKL.",
    section="IV-B",
    test="Compared with Monte Carlo of the exact density of the released vector at the larger N: "
    f"cwOnAveKL must lie within {AGREE:g} standard errors. Confirmed if so at 95 % of the "
    "points, contradicted below 50 %.",
    needs="leakage",
)
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
