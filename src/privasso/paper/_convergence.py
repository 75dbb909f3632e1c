"""What the paper says about its algorithm: when it converges, and that it is predicted."""

from __future__ import annotations

import numpy as np
import polars as pl

from privasso.paper._claim import (
    AGREE,
    ClaimVerdict,
    Finding,
    claim,
    finite,
    found,
    groups,
    levels,
    ratio,
    verdict_if,
    verdict_of,
)
from privasso.paper._error import PROBE, failure_level, probe_ratio, smallest_lambda
from privasso.paper._figure import DESIGNS, LAWS, LOOKS, shown

#: Number of last iterations of state evolution that are examined.
LATE = 20


def _percent(share: float) -> str:
    return "—" if np.isnan(share) else f"{share:.1%}"


@claim("a")
def _stability_under_noise(points: pl.DataFrame) -> Finding:
    pairs = {
        case: [failure_level(rows.filter(design=design)) for design in DESIGNS]
        for case, rows in groups(points, "lam")
    }
    larger = [gram > iso for iso, gram in pairs.values() if np.isfinite(iso)]
    failed = sum(np.isfinite(gram) for _, gram in pairs.values())
    return found(
        verdict_of(float(np.mean(larger))) if larger else ClaimVerdict.CONTRADICTED,
        f"In {sum(larger)} of {len(larger)} cases in which Algorithm 1 fails under isotropic noise "
        f"it converges up to a higher level of Gram-based noise. Under Gram-based noise it fails "
        f"within the grid in {failed} of {len(pairs)} cases.",
        {f"{LAWS[law].name}, λ = {lam:g}": [*map(finite, x)] for (law, lam), x in pairs.items()},
        ("Noise level σ_η of failure", [levels(case, pair) for case, pair in pairs.items()]),
    )


@claim("c")
def _smaller_lambda(points: pl.DataFrame) -> Finding:
    gains, cells = {}, []
    for (law,), rows in groups(points):
        name = LAWS[law].name
        iso, gram = (smallest_lambda(rows.filter(design=design)) for design in DESIGNS)
        gains[name] = iso / gram
        pair = {"isotropic": f"{iso:.3g}", "Gram-based": f"{gram:.3g}"}
        cells.append({"law": name, **pair, "isotropic / Gram-based": ratio(iso, gram)})
    helps = [gain > 1.0 for gain in gains.values()]
    return found(
        verdict_if(all(helps) and gains["v1"] > gains["v2"], any(helps)),
        f"The smallest λ is smaller under Gram-based noise for {sum(helps)} of {len(helps)} laws.",
        {name: finite(gain) for name, gain in gains.items()},
        ("Smallest λ", cells),
    )


@claim("e")
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
        else f"do not settle at V = {fixed:.2f} but move between {low:.2f} and {high:.2f}. "
        "The condition ρ̂ < α does not exclude such cycles."
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


@claim("f", AGREE=AGREE)
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
            "law": LAWS[str(law)].name, "noise": LOOKS[str(design)].name,
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
