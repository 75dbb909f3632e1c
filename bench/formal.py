"""Formal fits in the model: the best settings at a budget, and how many rows they need.

``python -m bench.formal --write`` renews its tables in `docs/data` and its figure.
"""

from __future__ import annotations

import itertools
import math
from dataclasses import replace
from typing import Any

import numpy as np
import polars as pl
from scipy.optimize import minimize_scalar, root_scalar

import privasso as pv
from bench.design import V1, V2
from bench.page import DATA, renew
from bench.timing import best_times
from privasso.privacy import RecordBudget

TITLE = "Formal designs"
NOTE = (
    "Time of one `optimal_design` for objective perturbation at a budget used before, and of the "
    "first at a new budget, whose accounting takes most of the time."
)

DELTA = 1e-6
LAWS = {"v1": V1, "v2": V2}
PARTS = (0.5, 0.9)
#: OnAveKL of the average-case fit that the map is compared with, and its rows per column.
LEAK, PAPER = 1.0, 0.5
EPSILONS = np.geomspace(0.1, 10.0, 17)


def budget(covers: str, epsilon: float) -> pv.LabelDP | RecordBudget:
    if covers == "labels":
        return pv.LabelDP(epsilon, DELTA, (-1.0, 1.0))
    return RecordBudget(epsilon, DELTA)


def run() -> pl.DataFrame:
    rows = []
    fresh = itertools.count()
    for covers in ("labels", "records"):

        def first(covers: str = covers) -> Any:
            return designed(pv.Model(10.0, scales=V2), covers, 1.0 + 1e-6 * next(fresh))

        def again(covers: str = covers) -> Any:
            model = pv.Model(10.0 + 1e-3 * next(fresh), scales=V2)
            return designed(model, covers, 1.0)

        times = best_times({"first": first, "again": again}, repeat=9)
        rows.append(
            {
                "budget": covers,
                "first (ms)": 1e3 * times["first"],
                "again (ms)": 1e3 * times["again"],
                "limit": 100.0,
            }
        )
    return pl.DataFrame(rows)


def designed(model: pv.Model, covers: str, epsilon: float) -> Any:
    return pv.optimal_design(model, pv.Budget(budget(covers, epsilon), "objective"))


def settings() -> pl.DataFrame:
    """The best settings at α = 10, with the noise on Fᵀy at the same budget beside them."""
    rows = []
    for (name, law), epsilon, covers in itertools.product(
        LAWS.items(), (0.5, 1.0, 3.0, 10.0), ("labels", "records")
    ):
        model = pv.Model(alpha=10.0, scales=law)
        best = designed(model, covers, epsilon)
        release: float | None = None
        if covers == "labels":
            other = pv.optimal_design(model, pv.Budget(budget(covers, epsilon)))
            release = (best.null_error - other.E) / (best.null_error - model.sigma_xi**2)
        rows.append(
            {
                "scales": name,
                "ε": epsilon,
                "protects": covers,
                "κ/σ_ξ": best.kappa / model.sigma_xi,
                "t": best.t,
                "λ": best.lam,
                "γ": best.gamma,
                "nonzero": best.rho_hat,
                "E": best.E,
                "explained": best.explained,
                "by noise on Fᵀy": release,
            }
        )
    return pl.DataFrame(rows)


def rows_needed(model: pv.Model, part: float, covers: str | None, epsilon: float = 0.0) -> float:
    """Rows per column at which the best fit explains this part of the signal."""

    def excess(log_alpha: float) -> float:
        one = replace(model, alpha=math.exp(log_alpha))
        if covers is not None:
            return designed(one, covers, epsilon).explained - part
        signal = one.rho * one.scales.moment(1.0)
        null = signal + one.sigma_xi**2
        typical = math.sqrt(one.alpha * one.scales.moment(1.0) * null)
        found = minimize_scalar(
            lambda log_lam: pv.state_evolution(one, math.exp(log_lam), pv.Isotropic(0.0)).E,
            bounds=(math.log(1e-4 * typical), math.log(10.0 * typical)), method="bounded",
        )  # fmt: skip
        return (null - float(found.fun)) / signal - part  # pyright: ignore

    bracket = math.log(0.05), math.log(1e6)
    return math.exp(root_scalar(excess, bracket=bracket, method="brentq", xtol=1e-3).root)


def rows() -> pl.DataFrame:
    """Rows per column for half and for nine tenths of the signal, and the figure of all ε."""
    curves = {
        (name, covers, part): np.array(
            [
                rows_needed(pv.Model(10.0, scales=law), part, covers, float(epsilon))
                for epsilon in EPSILONS
            ]
        )
        for (name, law), covers, part in itertools.product(
            LAWS.items(), ("labels", "records"), PARTS
        )
    }
    draw(curves)
    table = []
    for name, covers, part in curves:
        row: dict[str, Any] = {"scales": name, "protects": covers, "explained": part}
        for epsilon in (0.1, 1.0, 10.0):
            k = int(np.argmin(np.abs(EPSILONS - epsilon)))
            row[f"ε = {epsilon:g}"] = curves[name, covers, part][k]
        row["no privacy"] = rows_needed(pv.Model(scales=LAWS[name]), part, None)
        table.append(row)
    return pl.DataFrame(table)


def draw(curves: dict[tuple[str, str, float], np.ndarray]) -> None:
    from privasso.figures import BLUE, GREY, ORANGE, figure, plain_ticks, save

    sheet = figure(10.0, 4.8)
    for axes, (name, law) in zip(sheet.subplots(1, 2, sharey=True), LAWS.items(), strict=True):
        model = pv.Model(alpha=PAPER, scales=law)
        for covers, colour in (("labels", BLUE), ("records", ORANGE)):
            for part, line in zip(PARTS, ("--", "-"), strict=True):
                axes.plot(
                    EPSILONS, curves[name, covers, part], line, color=colour,
                    label=f"{covers}, {part:.0%} explained",
                )  # fmt: skip
        for part, line in zip(PARTS, ("--", "-"), strict=True):
            axes.axhline(rows_needed(model, part, None), color=GREY, linewidth=0.8, linestyle=line,
                         label=f"no privacy, {part:.0%} explained")  # fmt: skip
        average = pv.optimal_design(model, pv.MaxLeakage(LEAK))
        signal = average.null_error - model.sigma_xi**2
        axes.plot([EPSILONS[0], EPSILONS[-1]], [PAPER, PAPER], ":", color="black", linewidth=1.0)
        axes.text(
            1.05 * EPSILONS[0], 1.06 * PAPER,
            f"α = ½, average-case only: OnAveKL = {LEAK:g}, "
            f"{(average.null_error - average.E) / signal:.0%} explained",
            fontsize=8, va="bottom",
        )  # fmt: skip
        axes.set_xscale("log")
        axes.set_yscale("log")
        plain_ticks(axes.xaxis)
        plain_ticks(axes.yaxis)
        axes.set_xlim(EPSILONS[0], EPSILONS[-1])
        axes.set_title(f"{name}: {law!r}", fontsize=10, loc="left")
        axes.set_xlabel(f"ε (δ = {DELTA:g})")
        axes.spines[["top", "right"]].set_visible(False)
        if name == "v1":
            axes.set_ylabel("rows per column α that are needed")
        else:
            axes.legend(frameon=False, fontsize=8, loc="upper right")
    save(sheet, DATA.parent / "images" / "rows-needed.png")


TABLES = {"settings": settings, "rows": rows}


if __name__ == "__main__":
    renew("python -m bench.formal", __doc__, TABLES, "formal")
