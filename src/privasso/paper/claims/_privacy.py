"""Tests of what the paper says about privacy and the noise design (its Figs. 1 and 5)."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from privasso.paper.claims._claim import AGREE, Claim, ClaimVerdict, Finding, Numbers, verdict_of
from privasso.paper.figures import (
    LAW_NAMES,
    LOOKS,
    MEASURES,
    RANGE,
    TIE,
    Tables,
    compare,
    largest_data,
    measured_over,
    slope,
)

if TYPE_CHECKING:
    import polars as pl

#: Ratio of the axes up to which an ellipse counts as a circle.
ROUND = 1.05


def leakage_curve(tables: Tables) -> Finding:
    """Whether leakage diverges as the noise vanishes, and rises again at high noise levels."""
    table = tables["fig5_tradeoff"].filter(status="stable")
    met, exponents, rises = [], [], []
    cells = []
    for measure, name in MEASURES.items():
        first = len(met)
        for _, curve in table.group_by("law", "design", "lam", maintain_order=True):
            curve = curve.sort("sigma")
            leakage, sigma = curve[measure].to_numpy(), curve["sigma"].to_numpy()
            low = sigma <= 10.0 * sigma[0]
            exponents.append(slope(sigma[low], leakage[low]))
            rises.append(leakage[-1] / leakage.min())
            met.append(exponents[-1] < -0.5 and rises[-1] > 1.1)
        powers, risen = exponents[first:], rises[first:]
        cells.append(
            (
                name,
                f"{sum(met[first:])} of {len(met) - first}",
                f"{min(powers):.2f} to {max(powers):.2f}",
                " to ".join(
                    f"{x:,.0f}" if x >= 100.0 else f"{x:.3g}" for x in (min(risen), max(risen))
                ),
            )
        )
    return Finding(
        verdict_of(float(np.mean(met))),
        f"Both conditions hold for {sum(met)} of {len(met)} curves.",
        {"curves": len(met), "met": int(sum(met)), "exponents": [min(exponents), max(exponents)]},
        (
            Numbers(
                "Curves over all laws, designs and λ",
                (
                    "leakage",
                    "both conditions",
                    "exponent of σ_η at low noise",
                    "leakage near the critical level / its minimum",
                ),
                tuple(cells),
            ),
        ),
    )


def _versus(table: pl.DataFrame, other: str) -> Finding:
    """Gram-based noise against another design, for all laws, λ and both measures of leakage."""
    words, cells, values = [], [], {}
    for measure, name in MEASURES.items():
        for law in table["law"].unique(maintain_order=True):
            lams = table.filter(law=law)["lam"].unique().sort()
            found = [compare(table, law, lam, measure, "gram", other) for lam in lams]
            low, high = min(c.best for c in found), max(c.worst for c in found)
            words += [c.word for c in found]
            cells += [
                (
                    name, LAW_NAMES[law], f"{lam:g}", c.word, f"{c.best:.2f} to {c.worst:.2f}",
                    f"{c.losses:.0%}", f"{c.reach:.2f}",
                )
                for lam, c in zip(lams, found, strict=True)
            ]  # fmt: skip
            values[f"{LAW_NAMES[law]}, {measure}"] = {
                "words": [c.word for c in found],
                "least_ratio_of_E": low,
                "largest_ratio_of_E": high,
                "ratios_of_least_leakage": [c.reach for c in found],
            }
    better, behind = words.count("better"), words.count("worse") + words.count("mixed")
    result = ClaimVerdict.PARTLY if behind else ClaimVerdict.CONFIRMED
    return Finding(
        result if better else ClaimVerdict.CONTRADICTED,
        f"Gram-based noise is better in {better} of {len(words)} cases and equal in "
        f"{words.count('equal')}.",
        values,
        (
            Numbers(
                f"Gram-based noise against {LOOKS[other].name} noise: ratios are Gram-based over "
                f"{LOOKS[other].name}, E is compared at equal leakage",
                (
                    "leakage",
                    "law",
                    "λ",
                    "Gram-based is",
                    "ratio of E",
                    "E larger on",
                    "ratio of least leakage",
                ),
                tuple(cells),
            ),
        ),
    )


def consistently_better(tables: Tables) -> Finding:
    """Gram-based against isotropic noise at equal leakage."""
    return _versus(tables["fig5_tradeoff"], "isotropic")


def best_power(tables: Tables) -> Finding:
    """Gram-based noise (variance ∝ v²) against variance ∝ v."""
    return _versus(tables["fig5_tradeoff"], "power:1")


def component_wise(tables: Tables) -> Finding:
    """The paper's cwOnAveKL against Monte Carlo of the exact density."""
    table = tables["leakage"]
    rows = largest_data(table)
    z = ((rows["onavekl_mc"] - rows["onavekl_paper"]) / rows["onavekl_mc_se"]).to_numpy()
    joint = ((rows["onavekl_mc"] - rows["onavekl"]) / rows["onavekl_mc_se"]).to_numpy()
    ratio = (rows["onavekl_mc"] / rows["onavekl_paper"]).to_numpy()
    agree, understated = np.abs(z) <= AGREE, z > AGREE
    paper_means, joint_means = (
        measured_over(table, column) for column in ("onavekl_paper", "onavekl")
    )
    joint_agrees = int(np.sum(np.abs(joint) <= AGREE))
    return Finding(
        verdict_of(float(agree.mean())),
        f"cwOnAveKL understates the leakage at {understated.sum()} of {rows.height} points, by a "
        f"factor of up to {ratio.max():.1f}.",
        {
            "points": rows.height,
            "agree": int(agree.sum()),
            "understated": int(understated.sum()),
            "largest_ratio": float(ratio.max()),
            "joint_agrees": joint_agrees,
        },
        (
            Numbers(
                f"Formulas against Monte Carlo; to agree is to be within {AGREE:g} standard errors",
                (
                    "formula",
                    "agrees at",
                    *(f"Monte Carlo / formula, N = {size}" for size in paper_means),
                ),
                tuple(
                    (name, f"{count} of {rows.height}", *(f"{mean:.2f}" for mean in means.values()))
                    for name, count, means in (
                        ("paper's cwOnAveKL", int(agree.sum()), paper_means),
                        ("exact OnAveKL, whole vector", joint_agrees, joint_means),
                    )
                ),
            ),
        ),
    )


def effective_isotropy(tables: Tables) -> Finding:
    """Ratio of the axes of the effective noise, with and without correlation."""
    rows = tables["fig1_covariances"].filter(noise="effective")
    better, cells, axes = [], [], []
    for correlation in rows["correlation"].unique().sort():
        iso, gram = (
            rows.filter(design=design, correlation=correlation)["axis_ratio"][0]
            for design in ("isotropic", "gram")
        )
        axes.append(gram)
        better.append(gram < iso)
        cells.append((f"{correlation:g}", f"{iso:.3g} : 1", f"{gram:.3g} : 1"))
    if max(axes) <= ROUND:
        result = ClaimVerdict.CONFIRMED
    else:
        result = ClaimVerdict.PARTLY if any(better) else ClaimVerdict.CONTRADICTED
    return Finding(
        result,
        f"The ratio is smaller than under isotropic noise in {sum(better)} of {len(better)} cases, "
        f"and at most {max(axes):.3g} : 1.",
        {"axis_ratios_gram": axes},
        (
            Numbers(
                "Ratio of the axes of the effective noise",
                ("correlation of the columns", "isotropic", "Gram-based"),
                tuple(cells),
            ),
        ),
    )


_RULE = (
    "A case is a law, a λ and one of the two measures of leakage. In each, E is compared at equal "
    f"leakage, from the least that both designs reach to {RANGE:g} times that. Gram-based noise is "
    "better if its least leakage is lower or its E is somewhere lower, and the opposite holds "
    f"nowhere; differences up to {TIE:.0%} do not count. Confirmed if it is better or equal in all "
    "cases, contradicted if it is better in none."
)

PRIVACY_CLAIMS = (
    Claim(
        "g",
        "Leakage diverges as σ_η → 0; it falls as the noise level grows, and rises again when the "
        "level is too high.",
        "IV-B, Fig. 5",
        "One curve per law, design, λ and measure of leakage. Two conditions: over the lowest "
        "decade of σ_η the exponent of the leakage is below −0.5, and near the critical level the "
        "leakage is above 1.1 times its minimum. Confirmed if both hold for 95 % of the curves, "
        "contradicted below 50 %.",
        ("fig5_tradeoff",),
        leakage_curve,
    ),
    Claim(
        "h",
        "Gram-based noise has the consistently better trade-off of error and leakage, in both "
        "settings and for a wide range of λ.",
        "IV-B, Fig. 5",
        "Gram-based noise is compared with isotropic noise. " + _RULE,
        ("fig5_tradeoff",),
        consistently_better,
    ),
    Claim(
        "j",
        "In the high-dimensional limit the OnAveKL is the sum over components, cwOnAveKL.",
        "IV-B",
        "Compared with Monte Carlo of the exact density of the released vector at the larger N: "
        f"cwOnAveKL must lie within {AGREE:g} standard errors. Confirmed if so at 95 % of the "
        "points, contradicted below 50 %.",
        ("leakage",),
        component_wise,
    ),
    Claim(
        "k",
        "Noise in proportion to the Gram matrix (variance ∝ v²) is the design to choose. (The "
        "paper compares it only with isotropic noise and does not say that v² is the best power.)",
        "II-C, III-A (implied)",
        "Gram-based noise is compared with noise of variance ∝ v. " + _RULE,
        ("fig5_tradeoff",),
        best_power,
    ),
    Claim(
        "l",
        "The effective noise on the estimate is approximately isotropic under Gram-based noise.",
        "II-C, Fig. 1",
        "Ratio of the axes of the ellipse of (FᵀF)⁻¹η for two columns, uncorrelated and "
        "correlated, with the variances of the paper's eq. (3). Confirmed if all ratios are at "
        f"most {ROUND:g} : 1, partly if some are smaller than under isotropic noise, contradicted "
        "otherwise.",
        ("fig1_covariances",),
        effective_isotropy,
    ),
)
