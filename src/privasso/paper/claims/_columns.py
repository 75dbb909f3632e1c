"""What the paper says about single columns: effective noise, and small columns (Figs. 1 and 2)."""

from __future__ import annotations

import numpy as np
import polars as pl

from privasso.paper.claims._claim import Finding, claim, found, groups, verdict_if
from privasso.paper.experiments import QUARTERS
from privasso.paper.figures import DESIGNS, LAWS, RATIO

#: A difference counts beyond this many standard errors.
REAL = 2.0
#: Ratio of the axes up to which an ellipse counts as a circle.
ROUND = 1.05


@claim(
    "l",
    "The effective noise on the estimate is approximately isotropic under Gram-based noise.",
    section="II-C, Fig. 1",
    test="Ratio of the axes of the ellipse of (FᵀF)⁻¹η for two uncorrelated columns, to which the "
    f"paper's eq. (3) applies. Confirmed if it is at most {ROUND:g} : 1, partly if it is smaller "
    "than under isotropic noise, contradicted otherwise.",
    needs="fig1_covariances",
)
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


@claim(
    "s",
    "Small columns are the most vulnerable to leakage; Gram-based noise hides them behind large "
    "thresholds.",
    section="III-B, Fig. 2",
    test="The quarter of the smallest columns is compared with that of the largest. Four "
    "conditions per case (law, λ). Under isotropic noise: a replaced record changes a small "
    f"coefficient more (measured, beyond {REAL:g} standard errors); it adds more to the cwOnAveKL "
    "(predicted). Under Gram-based noise, compared with isotropic: small coefficients are less "
    "often nonzero, and they leak less (both predicted). Confirmed if all four hold in 95 % of the "
    "cases, partly if one does, contradicted otherwise.",
    needs="small_points small_theory",
)
def _small_columns(points: pl.DataFrame, theory: pl.DataFrame) -> Finding:
    cells, holds = [], []
    for (law, lam), rows in groups(points, "lam"):
        small, large = _ends(rows.filter(design="isotropic"))
        columns = theory.filter(law=law, lam=lam)
        iso, gram = (_quarters(columns.filter(design=design)) for design in DESIGNS)
        error = float(np.hypot(small["change_se"], large["change_se"]))
        holds.append(
            (
                small["change"] - large["change"] > REAL * error,
                iso["leakage"][0] > iso["leakage"][1],
                gram["nonzero"][0] < iso["nonzero"][0],
                gram["leakage"][0] < iso["leakage"][0],
            )
        )
        cells.append(
            {
                "law": LAWS[law].name, "λ": f"{lam:g}",
                "change": _against(small["change"], large["change"]),
                "leakage, isotropic": _against(*iso["leakage"]),
                "leakage, Gram-based": _against(*gram["leakage"]),
                "nonzero, Gram : isotropic": _against(gram["nonzero"][0], iso["nonzero"][0]),
                "leakage, Gram : isotropic": _against(gram["leakage"][0], iso["leakage"][0]),
            }
        )  # fmt: skip
    counts = [sum(x) for x in zip(*holds, strict=True)]
    cases = len(holds)
    enough = [count >= 0.95 * cases for count in counts]
    changed, leaking, hidden, safer = (f"{count} of {cases}" for count in counts)
    return found(
        verdict_if(all(enough), any(enough)),
        f"Under isotropic noise a record changes small coefficients more in {changed} cases, and "
        f"they leak more in {leaking}. Gram-based noise sets them to zero more often in {hidden}, "
        f"and they then leak less in {safer}.",
        {"changed": counts[0], "leaking": counts[1], "hidden": counts[2], "safer": counts[3]},
        (
            f"σ_η = λ/{RATIO:g}; the first three columns of ratios are the smallest quarter over "
            "the largest, the last two the smallest quarter under both designs",
            cells,
        ),
    )


def _ends(rows: pl.DataFrame) -> tuple[dict[str, float], dict[str, float]]:
    """What was measured of the quarter of the smallest and of the largest columns."""
    known = rows.sort("quarter").fill_null(float("nan"))
    return known.row(0, named=True), known.row(-1, named=True)


def _quarters(columns: pl.DataFrame) -> dict[str, tuple[float, float]]:
    """Predicted means over the smallest and over the largest quarter of the columns."""
    ordered, ends = columns.sort("scale"), {}
    for name in ("nonzero", "leakage"):
        parts = np.array_split(ordered[name].to_numpy(), QUARTERS)
        ends[name] = float(parts[0].mean()), float(parts[-1].mean())
    return ends


def _against(one: float, other: float) -> str:
    return f"{one / other:.2g}" if other > 0.0 else "—"
