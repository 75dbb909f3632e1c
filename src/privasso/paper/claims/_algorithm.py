"""What the paper says about error, convergence and state evolution (its Figs. 3 and 4)."""

from __future__ import annotations

from typing import Any

import numpy as np
import polars as pl

from privasso.paper.claims._claim import (
    AGREE,
    ClaimVerdict,
    Finding,
    claim,
    found,
    verdict_if,
    verdict_of,
)
from privasso.paper.figures import (
    LAW_NAMES,
    LOOKS,
    PROBE,
    failure_level,
    kkt_curve,
    probe_ratio,
    shown,
    slope,
    smallest_lambda,
)

DESIGNS = ("isotropic", "gram")
#: A difference of two means counts beyond this many standard errors.
REAL = 2.0
#: Share of the pairs that must differ for a verdict other than "partly".
ENOUGH = 0.1
#: Relative difference of E at the largest λ up to which the designs count as equal.
SAME = 0.02
#: Number of last iterations of state evolution that are examined.
LATE = 20
#: KKT violation, relative to λ, up to which a point counts as the minimiser.
MINIMISER = 1e-6
#: Exponent of N up to which a violation counts as vanishing in the limit.
VANISHING = -0.3


def _groups(points: pl.DataFrame, *by: str) -> Any:
    """Groups of rows with the same law and the same values of `by`, in a fixed order."""
    ordered = points.sort("law", *by, descending=[True] + [False] * len(by))
    return ordered.group_by("law", *by, maintain_order=True)


def _finite(value: float) -> float | None:
    return float(value) if np.isfinite(value) else None


def _ratio(above: float, below: float) -> str:
    return f"{above / below:.2f}" if np.isfinite(above) and np.isfinite(below) else "—"


def _percent(share: float) -> str:
    return "—" if np.isnan(share) else f"{share:.1%}"


def _levels(at: tuple[str, float], pair: list[float], digits: str = "") -> dict[str, str]:
    """A row with the noise levels of the two designs and their ratio, for a law and a λ."""
    words = [f"{x:{digits}g}" if np.isfinite(x) else "none" for x in pair]
    case = {"law": LAW_NAMES[at[0]], "λ": f"{at[1]:g}"}
    return case | {"isotropic": words[0], "Gram-based": words[1], "ratio": _ratio(*pair[::-1])}


@claim(
    "a",
    "Under isotropic noise AMP stops converging beyond some noise level; under Gram-based "
    "noise it stays stable at higher levels.",
    section="III-C, Fig. 3",
    test="The smallest σ_η at which Algorithm 1 converges on fewer than half of the data sets (its "
    "failure) must be larger under Gram-based noise. Confirmed if this holds in 95 % of the "
    "pairs (law, λ) with a failure under isotropic noise; contradicted below 50 %, or if there "
    "is no such failure.",
    needs="fig3_points",
)
def _stability_under_noise(points: pl.DataFrame) -> Finding:
    pairs = {
        case: [failure_level(rows.filter(design=design)) for design in DESIGNS]
        for case, rows in _groups(points, "lam")
    }
    larger = [gram > iso for iso, gram in pairs.values() if np.isfinite(iso)]
    failed = sum(np.isfinite(gram) for _, gram in pairs.values())
    return found(
        verdict_of(float(np.mean(larger))) if larger else ClaimVerdict.CONTRADICTED,
        f"In {sum(larger)} of {len(larger)} cases in which Algorithm 1 fails under isotropic noise "
        f"it converges up to a higher level of Gram-based noise. Under Gram-based noise it fails "
        f"within the grid in {failed} of {len(pairs)} cases.",
        {f"{LAW_NAMES[law]}, λ = {lam:g}": [*map(_finite, x)] for (law, lam), x in pairs.items()},
        ("Noise level σ_η of failure", [_levels(case, pair) for case, pair in pairs.items()]),
    )


@claim(
    "b",
    "The error E grows more gradually with the noise level under Gram-based noise.",
    section="III-C, Fig. 3",
    test="E of the exact minimiser is compared at equal σ_η, where all data sets have one under "
    f"both designs. A difference counts beyond {REAL:g} standard errors. Confirmed if "
    "Gram-based noise has the smaller E in 95 % of the differences, contradicted below 50 %; "
    f"partly if fewer than {ENOUGH:.0%} of the pairs differ.",
    needs="fig3_points fig3_theory",
)
def _gradual_error(points: pl.DataFrame, theory: pl.DataFrame) -> Finding:
    gaps = []
    for _, rows in _groups(points, "lam", "sigma"):
        iso, gram = (rows.filter(design=design).row(0, named=True) for design in DESIGNS)
        if iso["exists"] == iso["samples"] and gram["exists"] == gram["samples"]:
            gaps.append((iso["E"] - gram["E"]) / np.hypot(iso["E_se"], gram["E_se"]))
    z, total = np.array(gaps), len(gaps)
    wins, losses, ties = (int(x.sum()) for x in (z > REAL, z < -REAL, np.abs(z) <= REAL))
    above = _largest_excess(theory)
    if not total:
        result = ClaimVerdict.CONTRADICTED
    elif wins + losses < ENOUGH * total:
        result = ClaimVerdict.PARTLY
    else:
        result = verdict_of(wins / (wins + losses))
    counts = {
        "Gram-based noise": wins,
        "isotropic noise": losses,
        f"no difference beyond {REAL:g} standard errors": ties,
    }
    return found(
        result,
        f"At {total} triples (law, λ, σ_η) all data sets have a minimiser under both designs. "
        f"State evolution predicts that E under Gram-based noise is up to {above:.1%} larger at "
        "low noise levels and smaller at high ones.",
        {"wins": wins, "ties": ties, "losses": losses, "largest_predicted_excess": above},
        (
            f"Which design has the smaller E at these {total} triples",
            [{"smaller E": name, "triples": f"{count}"} for name, count in counts.items()],
        ),
        (
            "Predicted noise level σ_η at which E has doubled",
            [
                _levels(case, [_doubled(rows.filter(design=x)) for x in DESIGNS], ".2")
                for case, rows in _groups(theory, "lam")
            ],
        ),
    )  # fmt: skip


def _doubled(curve: pl.DataFrame) -> float:
    """Predicted noise level at which E is twice that at the lowest level."""
    curve = curve.sort("sigma")
    E = curve["E"].fill_null(np.inf).to_numpy()
    beyond = np.flatnonzero(2.0 * E[0] <= E)
    return float(curve["sigma"][int(beyond[0])]) if beyond.size else np.inf


def _largest_excess(theory: pl.DataFrame) -> float:
    """Largest relative excess of the predicted E of Gram-based over that of isotropic noise."""
    iso, gram = (theory.filter(status="stable", design=design) for design in DESIGNS)
    pairs = gram.join(iso, on=("law", "lam", "sigma"), suffix="_isotropic")
    excess = (pairs["E"] / pairs["E_isotropic"] - 1.0).to_numpy()
    return float(max(0.0, excess.max(initial=0.0)))


@claim(
    "c",
    "Gram-based noise permits a smaller λ than isotropic noise, most of all under v1.",
    section="III-C, Fig. 4(a)",
    test="The λ at which Algorithm 1 converges on half of the data sets (log-linear "
    "interpolation). Confirmed if it is smaller under Gram-based noise for both laws, and by the "
    "larger factor under v1; contradicted if it is smaller for neither law; partly otherwise.",
    needs="fig4_points",
)
def _smaller_lambda(points: pl.DataFrame) -> Finding:
    gains, cells = {}, []
    for (law,), rows in _groups(points):
        name = LAW_NAMES[law]
        iso, gram = (smallest_lambda(rows.filter(design=design)) for design in DESIGNS)
        gains[name] = iso / gram
        pair = {"isotropic": f"{iso:.3g}", "Gram-based": f"{gram:.3g}"}
        cells.append({"law": name, **pair, "isotropic / Gram-based": _ratio(iso, gram)})
    helps = [gain > 1.0 for gain in gains.values()]
    return found(
        verdict_if(all(helps) and gains["v1"] > gains["v2"], any(helps)),
        f"The smallest λ is smaller under Gram-based noise for {sum(helps)} of {len(helps)} laws.",
        {name: _finite(gain) for name, gain in gains.items()},
        ("Smallest λ", cells),
    )


@claim(
    "d",
    "At large λ the noise design no longer matters.",
    section="III-C, Fig. 4(a)",
    test=f"E of the two designs at the largest λ must differ by at most {SAME:.0%}, and by no more "
    "than at the smallest λ at which at least half of the data sets have a minimiser under "
    "both designs. Confirmed if this holds for both laws, partly if for one.",
    needs="fig4_points",
)
def _large_lambda(points: pl.DataFrame) -> Finding:
    values, cells, met = {}, [], []
    for (law,), rows in _groups(points):
        # A mean over fewer than half of the data sets would describe a favourable selection.
        iso, gram = (shown(rows.filter(design=design), "exists") for design in DESIGNS)
        pairs = iso.join(gram, on="lam", suffix="_gram").sort("lam")
        ratio = (pairs["E"] / pairs["E_gram"]).to_list()
        first, last = (ratio[0], ratio[-1]) if ratio else (np.nan, np.nan)
        values[LAW_NAMES[law]] = [_finite(first), _finite(last)]
        met.append(abs(last - 1.0) <= SAME and abs(last - 1.0) <= abs(first - 1.0))
        for k in sorted({0, len(ratio) - 1} if ratio else set()):
            case = {"law": LAW_NAMES[law], "λ": f"{pairs['lam'][k]:g}"}
            cells.append({**case, "ratio of E": f"{ratio[k]:.4g}"})
    return found(
        verdict_if(all(met), any(met)),
        f"At the largest λ the two errors differ by at most {SAME:.0%} for {sum(met)} of "
        f"{len(met)} laws.",
        values,
        ("E under isotropic noise divided by E under Gram-based noise", cells),
    )


@claim(
    "e",
    "AMP typically converges when ρ̂ < α, and fails once ρ̂ exceeds α.",
    section="IV-A, Appendix A",
    test="All runs of Figs. 3 and 4 and of one point outside the figures. Confirmed if at least "
    "95 % of the runs converge where state evolution predicts ρ̂ < α, at least 95 % fail where "
    "it predicts no fixed point, and at least half of the runs at the other point converge "
    "too; contradicted if neither direction holds for half of the runs.",
    needs="fig3_points fig4_points fig4_probe fig4_recursion",
)
def _convergence(
    noise: pl.DataFrame, path: pl.DataFrame, probes: pl.DataFrame, recursion: pl.DataFrame
) -> Finding:
    runs, converged, lost = {True: 0, False: 0}, {True: 0, False: 0}, 0
    for table in (noise, path, probes):
        for row in table.iter_rows(named=True):
            stable = row["status_theory"] == "stable"
            runs[stable] += row["samples"]
            converged[stable] += row["amp_converged"]
            lost += row["amp_flicker"] + row["amp_diverged"] if stable else 0
    probe = probes.row(0, named=True)
    if_share = converged[True] / runs[True] if runs[True] else float("nan")
    failed = runs[False] - converged[False]
    only_if_share = failed / runs[False] if runs[False] else float("nan")
    if 2 * probe["amp_converged"] < probe["exists"]:  # a counterexample
        result = verdict_if(False, not max(if_share, only_if_share) < 0.5)
    else:
        result = verdict_of(min(if_share, only_if_share))
    late = recursion.tail(LATE)
    low, high = float(late["V"].to_numpy().min()), float(late["V"].to_numpy().max())
    fixed = float(late["V_fixed"][0])
    settles = max(abs(low - fixed), abs(high - fixed)) <= 0.01 * fixed
    moves = (
        f"converge, to V = {fixed:.2f}."
        if settles
        else f"do not converge to the fixed point V = {fixed:.2f} but move between "
        f"{low:.2f} and {high:.2f}: the condition ρ̂ < α does not exclude such cycles."
    )
    outside = "the point outside the figures"
    return found(
        result,
        f"Where ρ̂ < α is predicted, {lost} runs fail although a minimiser "
        f"exists. At {outside}, the iterates of state evolution {moves}",
        {
            "recursion_settles": settles,
            "converged_if_stable": if_share,
            "failed_if_unstable": only_if_share,
            "failed_with_minimiser": lost,
            "probe_exists": probe["exists"],
            "probe_converged": probe["amp_converged"],
        },
        (
            f"Runs of Algorithm 1. The point outside the figures has α = {PROBE['alpha']:g}, "
            f"ρ = {PROBE['rho']:g}, equal scales, ρ̂/α = {probe_ratio(probe)}, and a minimiser on "
            f"{probe['exists']} of {probe['samples']} data sets",
            [
                {
                    "where": where, "runs": f"{count}", "converge": _percent(share),
                    "fail": _percent(1.0 - share),
                }
                for where, count, share in (
                    ("ρ̂ < α is predicted", runs[True], if_share),
                    ("no fixed point is predicted", runs[False], 1.0 - only_if_share),
                    (outside, probe["samples"], probe["amp_converged"] / probe["samples"]),
                )
            ],
        ),
    )  # fmt: skip


def _agreement(points: pl.DataFrame, prediction: str) -> pl.DataFrame:
    """Points with a stable prediction at which at least half of the runs converged.

    ``agrees``: the mean E of Algorithm 1 is within `AGREE` standard errors of the prediction.
    """
    deviation = (pl.col("amp_E") - pl.col(prediction)) / pl.col("amp_E_se")
    return (
        shown(points, "amp_converged")
        .filter(pl.col(prediction).is_finite() & (pl.col("amp_E_se") > 0.0), status_theory="stable")
        .with_columns((deviation.abs() <= AGREE).alias("agrees"))
    )


@claim(
    "f",
    "State evolution describes AMP: their errors agree closely.",
    section="IV-A, Fig. 3",
    test="Points of Figs. 3 and 4 at which at least half of the runs converge: state evolution for "
    "N columns must predict a fixed point, and the mean E of Algorithm 1 must lie within "
    f"{AGREE:g} standard errors of its E. Confirmed if so at 95 % of the points, contradicted "
    "below 50 %.",
    needs="fig3_points fig4_points",
)
def _state_evolution_holds(noise: pl.DataFrame, path: pl.DataFrame) -> Finding:
    points = pl.concat([noise, path])
    stable = _agreement(points, "E_theory")
    good, realised = (
        int(_agreement(points, name)["agrees"].sum()) for name in ("E_theory", "E_realised")
    )
    beyond = shown(points, "amp_converged").filter(pl.col("status_theory") != "stable")
    share = good / stable.height if stable.height else 0.0
    total = stable.height + beyond.height
    overall = good / total if total else 0.0
    cells = [
        {
            "law": LAW_NAMES[str(law)], "noise": LOOKS[str(design)].name,
            "agree": f"{rows['agrees'].sum()}", "stable prediction": f"{rows.height}",
            "no fixed point predicted": f"{beyond.filter(law=law, design=design).height}",
        }
        for (law, design), rows in stable.group_by("law", "design", maintain_order=True)
    ]  # fmt: skip
    return found(
        verdict_of(overall),
        f"{good} of {stable.height} points with a stable prediction agree within {AGREE:g} "
        f"standard errors ({share:.0%}). At {beyond.height} further points at least half of the "
        f"runs converge where no fixed point is predicted; of all these points {overall:.0%} "
        "agree. When state evolution is given the realised scales of each data set, "
        f"{realised} of the stable points agree.",
        {
            "points": stable.height,
            "agree": good,
            "agree_realised": realised,
            "share": share,
            "converged_beyond_prediction": beyond.height,
            "share_of_all": overall,
        },
        ("Points at which at least half of the runs converge", cells),
    )


@claim(
    "m",
    "State evolution has a large-N limit for any law of scales with finite second moments.",
    section="IV-A, decoupling",
    test="v1 with isotropic noise. Contradicted if the limit is infinite, the finite-N prediction "
    f"more than doubles over the range of N, and the measured E grows by more than {AGREE:g} "
    "standard errors at one of the noise levels; partly if only the last condition fails; "
    "confirmed otherwise.",
    needs="tail_points tail_theory",
)
def _finite_limit(points: pl.DataFrame, theory: pl.DataFrame) -> Finding:
    theory = theory.filter(design="isotropic", status="stable").sort("n_features")
    points = points.filter(design="isotropic").sort("n_features")
    infinite = set(points["status_limit"]) == {"infinite error"}
    growth, rises, measured, sizes = [], [], [], []
    for sigma in points["sigma"].unique().sort():
        line = theory.filter(sigma=sigma)
        rows = shown(points.filter(sigma=sigma), "exists")
        if line.height:
            growth.append(line["E"][-1] / line["E"][0])
        if rows.height >= 2:
            ends = [rows.row(k, named=True) for k in (0, -1)]
            error = float(np.hypot(*(end["E_se"] for end in ends)))
            rises.append((ends[1]["E"] - ends[0]["E"]) / error)
            measured.append((sigma, [f"{end['E']:.3g} ± {end['E_se']:.1g}" for end in ends]))
            sizes = [f"N = {end['n_features']}" for end in ends]
    largest = max(growth, default=1.0)
    cells = [
        {"σ_η": f"{sigma:g}", **dict(zip(sizes, both, strict=True)),
         "difference": f"{rise:+.1f} standard errors"}
        for (sigma, both), rise in zip(measured, rises, strict=True)
    ]  # fmt: skip
    grows = infinite and largest > 2.0
    return found(
        verdict_if(not grows, max(rises, default=0.0) <= AGREE),
        f"Isotropic noise on v1, λ = {points['lam'][0]:g}: the limit of E is "
        f"{'infinite' if infinite else 'finite'}, and over the range of N the prediction grows by "
        f"a factor of {largest:.3g}.",
        {"growth_predicted": largest, "rises_measured": rises, "limit_infinite": infinite},
        ("Measured E", cells),
    )


@claim(
    "i",
    "Algorithm 1 returns the minimiser of the perturbed LASSO.",
    section="III-B, Algorithm 1",
    test="Largest KKT violation relative to λ where Algorithm 1 converges. Confirmed if it is at "
    f"most {MINIMISER:.0e} at every N; partly if it is larger but decreases as a power of N "
    f"with exponent at most {VANISHING:g}, so that it vanishes in the limit; contradicted "
    "otherwise.",
    needs="kkt",
)
def _returns_minimiser(table: pl.DataFrame) -> Finding:
    worst, cells, exponents = 0.0, [], []
    for law, design in table.select("law", "design").unique(maintain_order=True).rows():
        rows = kkt_curve(table, law, design)
        if rows.height < 2:
            continue
        worst = max(worst, float(rows["kkt"].to_numpy().max()))
        exponents.append(slope(rows["n_features"], rows["kkt"]))
        first, last = (f"{rows['kkt'][k]:.2%} (N = {rows['n_features'][k]})" for k in (0, -1))
        cells.append(
            {
                "law": LAW_NAMES[law], "noise": LOOKS[design].name, "smallest N": first,
                "largest N": last, "exponent of N": f"{exponents[-1]:.2f}",
            }
        )  # fmt: skip
    if not cells:
        return Finding(ClaimVerdict.UNTESTED, "Algorithm 1 converged on too few data sets", {})
    return found(
        verdict_if(worst <= MINIMISER, max(exponents) <= VANISHING),
        f"The KKT violation relative to λ is at most {worst:.2%} at any N. That of the exact "
        f"solver is at most {float(table['kkt_exact'].to_numpy().max()):.0e}.",
        {"largest_kkt": worst, "exponents": exponents},
        ("KKT violation relative to λ", cells),
    )
