"""Optimal designs: what they cost, what they gain, and how wrong their scales may be.

``python -m bench.design --write`` renews its tables in `docs/data` and its figure.
"""

from __future__ import annotations

import itertools
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl

import privasso as pv
from bench.page import renew
from bench.timing import best_times
from privasso.theory import mismatched_state_evolution

TITLE = "Optimal designs"
NOTE = (
    "Time of one `optimal_design`, in state-evolution points (one `state_evolution` of the same "
    "model with its power law; they take turns and the best of nine counts, each design with a "
    "model of its own so that nothing is remembered). With `comparison` it includes the three "
    "common shapes, each tuned. Target: below 300 points."
)

DOCS = Path(__file__).parent.parent / "docs"
V1, V2 = pv.Uniform(), pv.LogNormal(0.0, 0.5)
#: Isotropic noise has an infinite error on v1 in the limit of many columns.
LAWS: dict[str, tuple[Any, int | None]] = {"v1 (N = 1000)": (V1, 1000), "v2": (V2, None)}
KAPPAS = (20.0, 5.0, 2.0, 1.0, 0.5, 0.2)
TAUS = np.array([0.0, 0.1, 0.2, 0.3, 0.4, 0.5, 0.6, 0.8, 1.0, 1.25, 1.5])
CROSSING_KAPPAS = (5.0, 2.0, 0.5)
INNER = 20  # a point is too short for one reading of the clock


def run() -> pl.DataFrame:
    budget = pv.LabelDP(8.0, 1e-5, (-1.0, 1.0))
    cases: list[tuple[str, Any, dict[str, Any]]] = [
        ("v1", pv.Model(scales=V1), {"target": pv.MaxLeakage(2.0)}),
        ("v1", pv.Model(scales=V1), {"target": pv.MaxError(0.02)}),
        ("v2", pv.Model(scales=V2), {"target": pv.MaxLeakage(2.0)}),
        ("v2", pv.Model(scales=V2), {"target": pv.MaxError(0.04)}),
        ("v2, N = 1000", pv.Model(scales=V2), {"target": pv.MaxLeakage(2.0), "n_features": 1000}),
        ("v2", pv.Model(alpha=2.0, scales=V2), {"target": pv.Budget(budget)}),
    ]
    rows = []
    for law, model, target in cases:
        times = best_times(_contenders(model, target), repeat=9)
        point = times["point"] / INNER
        rows.append(
            {
                "scales": law,
                "question": getattr(target["target"], "kind", "label_dp"),
                "points": round(times["design"] / point),
                "with comparison": round(times["compared"] / point),
                "one point (ms)": 1e3 * point,
                "limit": 300,
            }
        )
    return pl.DataFrame(rows)


def _contenders(model: Any, target: dict[str, Any]) -> dict[str, Any]:
    """Callables to time; every design has a question of its own, so nothing is remembered."""
    step = itertools.count()
    best = pv.optimal_design(model, **target)

    def design() -> Any:
        own = dict(target)
        rho = model.rho * (1.0 + 1e-4 * next(step))
        return pv.optimal_design(pv.Model(model.alpha, rho, model.sigma_xi, model.scales), **own)

    def points() -> None:
        n_features = target.get("n_features")
        for _ in range(INNER):
            lam = best.lam * (1.0 + 1e-4 * next(step))
            pv.state_evolution(model, lam, best.noise, n_features=n_features).onavekl()

    return {"point": points, "design": design, "compared": lambda: design().comparison}


def gains() -> pl.DataFrame:
    """E of the optimal power law at each leakage, and of the others relative to it."""
    rows = []
    for name, (law, count) in LAWS.items():
        model = pv.Model(scales=law)
        for kappa in KAPPAS:
            best = pv.optimal_design(model, pv.MaxLeakage(kappa), n_features=count)
            others = best.comparison
            rows.append(
                {
                    "scales": name,
                    "OnAveKL": kappa,
                    "λ": best.lam,
                    "σ_η": best.noise.sigma,
                    "γ": best.gamma,
                    "E": best.E,
                    "E isotropic": others["isotropic"].E,
                    "ratio isotropic": others["isotropic"].ratio,
                    "E Gram": others["gram"].E,
                    "ratio Gram": others["gram"].ratio,
                    "ratio γ = 1": others["gamma=1"].ratio,
                }
            )
    return pl.DataFrame(rows)


def labels() -> pl.DataFrame:
    """The same under label-DP budgets."""
    rows = []
    for law_name, law in (("v1", V1), ("v2", V2)):
        for epsilon in (16.0, 8.0, 4.0, 2.0):
            model = pv.Model(alpha=10.0, scales=law)
            budget = pv.LabelDP(epsilon, 1e-5, (-1.0, 1.0))
            best = pv.optimal_design(model, pv.Budget(budget), n_features=300)
            others = best.comparison
            rows.append(
                {
                    "scales": law_name,
                    "ε": epsilon,
                    "γ": best.gamma,
                    "E": best.E,
                    "null error": best.null_error,
                    "ratio isotropic": others["isotropic"].ratio,
                    "ratio γ = 1": others["gamma=1"].ratio,
                    "ratio Gram": others["gram"].ratio,
                }
            )
    return pl.DataFrame(rows)


def wrong_scales(kappa: float) -> pl.DataFrame:
    """E at one leakage against τ: every shape with λ and σ tuned for that τ; and as built."""
    rows = []
    for name, (law, count) in LAWS.items():
        model = pv.Model(scales=law)
        built = pv.optimal_design(model, pv.MaxLeakage(kappa), n_features=count)
        gram = pv.optimal_design(model, pv.MaxLeakage(kappa), n_features=count, gamma=2.0)
        equal = built.comparison["isotropic"].E
        for tau in TAUS.tolist():
            again = {"target": pv.MaxLeakage(kappa), "n_features": count, "scale_error": tau}
            same = pv.optimal_design(model, gamma=built.gamma, **again)
            best = pv.optimal_design(model, **again)
            as_built, gram_built = (
                mismatched_state_evolution(model, one.lam, one.noise, tau, n_features=count)
                for one in (built, gram)
            )
            rows.append(
                {
                    "scales": name,
                    "tau": tau,
                    "same": same.E / equal,
                    "gram": pv.optimal_design(model, gamma=2.0, **again).E / equal,
                    "best": best.E / equal,
                    "gamma": best.gamma,
                    "built_leak": as_built.onavekl(),
                    "gram_leak": gram_built.onavekl(),
                    "built_E": as_built.E / built.E,
                }
            )
    return pl.DataFrame(rows)


def crossings(tables: dict[float, pl.DataFrame]) -> pl.DataFrame:
    """τ from which on isotropic noise has the lower E at the same leakage."""
    rows = []
    for kappa, table in tables.items():
        for name in LAWS:
            part = table.filter(pl.col("scales") == name)
            row: dict[str, object] = {"scales": name, "OnAveKL": kappa}
            for column, title in (("same", "crossing τ, best γ"), ("gram", "crossing τ, Gram")):
                row[title] = _crossing(part["tau"].to_numpy(), part[column].to_numpy())
            shown = part.filter(pl.col("tau").is_in([0.0, 0.5, 1.0]))
            row["best γ at τ = 0, ½, 1"] = ", ".join(f"{g:.2f}" for g in shown["gamma"])
            row["OnAveKL as built at τ = ½, 1"] = ", ".join(
                f"{k:.3g}" for k in shown["built_leak"][1:]
            )
            row["Gram as built"] = ", ".join(f"{k:.3g}" for k in shown["gram_leak"][1:])
            rows.append(row)
    return pl.DataFrame(rows)


def _crossing(taus: np.ndarray, ratios: np.ndarray) -> str:
    above = np.flatnonzero(ratios >= 1.0)
    if above.size == 0:
        return f"> {taus[-1]:g}"
    k = int(above[0])
    if k == 0:
        return "0: never better"
    low, high = np.log(ratios[k - 1]), np.log(ratios[k])
    return f"{taus[k - 1] + (taus[k] - taus[k - 1]) * low / (low - high):.2f}"


def draw(table: pl.DataFrame, kappa: float) -> None:
    from privasso.figures import BLUE, GREEN, GREY, ORANGE, figure, plain_ticks, save

    sheet = figure(10.0, 7.0)
    panels = sheet.subplots(2, 2, sharex=True, sharey="row")
    for (top, bottom), (name, (law, count)) in zip(panels.T, LAWS.items(), strict=True):
        part = table.filter(pl.col("scales") == name)
        taus = part["tau"].to_numpy()
        for column, colour, line, label in (
            ("gram", BLUE, "-.", "Gram-based"),
            ("same", GREEN, "--", "best γ for right scales"),
            ("best", GREEN, "-", "best γ for this τ"),
        ):
            top.plot(taus, part[column], line, color=colour, label=label)
        top.axhline(1.0, color=ORANGE, linewidth=1.2, label="isotropic noise")
        top.set_ylim(0.8, 1.5)
        top.set_title(f"{law!r}" + (f", N = {count}" if count else ""), fontsize=10, loc="left")
        bottom.plot(taus, part["gram_leak"], "-.", color=BLUE, label="Gram-based")
        bottom.plot(taus, part["built_leak"], "-", color=GREEN, label="optimal for right scales")
        bottom.axhline(kappa, color=GREY, linewidth=0.8, linestyle=":")
        bottom.text(taus[-1], kappa, "what was asked for", color=GREY, ha="right", va="top",
                    fontsize=9)  # fmt: skip
        bottom.set_yscale("log")
        bottom.set_ylim(0.8 * kappa, 100.0 * kappa)
        plain_ticks(bottom.yaxis)
        bottom.set_xlabel("error τ of log v in the scales that the noise follows")
        for axes in (top, bottom):
            axes.spines[["top", "right"]].set_visible(False)
    panels[0, 0].set_ylabel(f"E relative to isotropic noise\nat OnAveKL = {kappa:g}, λ and σ tuned")
    panels[1, 0].set_ylabel("OnAveKL of the design\nas built for right scales")
    panels[0, 0].legend(frameon=False, fontsize=9, loc="upper left", handlelength=1.8)
    panels[1, 1].legend(frameon=False, fontsize=9, loc="upper left")
    save(sheet, DOCS / "images" / "wrong-scales.png")


def scales() -> pl.DataFrame:
    """Crossings for several leakages, and the figure for one."""
    curves = {kappa: wrong_scales(kappa) for kappa in CROSSING_KAPPAS}
    draw(curves[2.0], 2.0)
    return crossings(curves)


TABLES = {"gains": gains, "labels": labels, "crossings": scales, "times": run}


if __name__ == "__main__":
    renew("python -m bench.design", __doc__, TABLES, "design")
