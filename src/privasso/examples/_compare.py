"""Compare methods with the same guarantee by how well they predict new rows, and draw it."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from typing import Any

import numpy as np
import polars as pl

from privasso._blas import one_thread
from privasso._validation import generator
from privasso.examples._data import (
    DEFAULT,
    METHODS,
    STANDARDISED,
    Perturbed,
    Prepared,
    Split,
    default_fits,
    is_private,
    perturb,
    prepare,
    r2,
)
from privasso.figures import BLACK, BLUE, GREEN, GREY, ORANGE, PINK, SKY, panels
from privasso.privacy import LabelDP
from privasso.solvers import Status, solve_problems

Row = dict[str, Any]

#: The grid of λ: this many values, from the largest |b_i| down to this fraction of it.
_POINTS, _SPAN = 18, 1e-3
#: A path ends where its distance from the target exceeds the least one by this factor.
_FARTHER = 4.0


def compare_methods(
    splits: Iterable[Split],
    epsilons: Iterable[float],
    *,
    delta: float,
    draws: int = 1,
    methods: Iterable[str] = METHODS,
    rng: int | np.random.Generator | None = None,
    progress: Callable[[int], object] = lambda done: None,
) -> pl.DataFrame:
    """Fit each method at each ε and test it on new rows; one row of the table per fit and rule.

    λ is chosen on the same grid by two rules. ``"auto"`` is the rule of ``lam="auto"``, which uses
    nothing but the noisy statistics. ``"oracle"`` takes the λ that predicts the test rows best. It
    cannot be used in practice, and shows what perfect tuning would give.

    Every method is fitted `draws` times on each split, those without privacy only once. `progress`
    is called with the number of fits since the last call.
    """
    rng = generator(rng)
    wanted, budgets = list(methods), list(epsilons)
    rows: list[Row] = []
    count = 0
    for split in splits:
        kinds = [LabelDP(epsilon, delta, split.y_bounds) for epsilon in budgets]
        for privacy in kinds if DEFAULT in wanted else ():
            for k, rules in enumerate(default_fits(split, privacy, draws, rng)):
                rows += _rows(DEFAULT, privacy.epsilon, count + k, rules)
                progress(1)
        for standardise in (False, True):
            others = [method for method in wanted if method != DEFAULT]
            chosen = [method for method in others if (method in STANDARDISED) == standardise]
            if not chosen:
                continue
            data = prepare(split, standardise=standardise)
            fits = [
                perturb(data, method, privacy, count + k, rng)
                for number, privacy in enumerate(kinds)
                for k in range(draws)
                for method in chosen
                if is_private(method) or (number, k) == (0, 0)
            ]
            with one_thread():
                rows += _tested(data, fits)
            progress(len(fits))
        count += draws
    return pl.DataFrame(rows)


def _rows(
    method: str, epsilon: float, draw: int, rules: dict[str, tuple[float, int]]
) -> Iterator[Row]:
    """The rows of one fit: R² and non-zero coefficients for each rule."""
    for rule, (found, nonzero) in rules.items():
        yield {
            "method": method, "epsilon": epsilon, "draw": draw, "rule": rule, "r2": found,
            "nonzero": nonzero,
        }  # fmt: skip


def summarise(table: pl.DataFrame) -> pl.DataFrame:
    """Return the median and quartiles of R² over the draws."""
    return table.group_by("method", "epsilon", "rule", maintain_order=True).agg(
        pl.col("r2").median(),
        pl.col("r2").quantile(0.25).alias("lower"),
        pl.col("r2").quantile(0.75).alias("upper"),
        pl.col("nonzero").median(),
    )


def _tested(data: Prepared, fits: list[Perturbed]) -> Iterator[Row]:
    """Solve every fit at decreasing λ, and test each solution on new rows."""
    largest = [float(np.abs(fit.b).max()) for fit in fits]
    targets = [fit.target(data) for fit in fits]
    found: list[list[tuple[float, float, int]]] = [[] for _ in fits]  # distance, R², non-zeros
    going = list(range(len(fits)))
    for part in np.geomspace(1.0, _SPAN, _POINTS):
        if not going:
            break
        lams = np.array([largest[k] * part for k in going])
        B = np.stack([fits[k].b for k in going], axis=1)
        many = solve_problems(data.root, B, lams, throw=False)
        solved = zip(going, many.x.T, many.status, strict=True)
        going = []
        for k, x, status in solved:
            if status is Status.CONVERGED:
                distance = float((x - targets[k]) @ data.gram @ (x - targets[k]))
                predicted = fits[k].mean_label + (data.X_test - data.rows.mean) @ x
                explained = r2(data.split.y_test, predicted)
                found[k].append((distance, explained, int(np.count_nonzero(x))))
                # Far below the chosen λ the path only follows the noise, and is slow to compute.
                if distance <= _FARTHER * min(found[k])[0]:
                    going.append(k)
    for fit, points in zip(fits, found, strict=True):
        best = {"auto": min(points)[1:], "oracle": max(points, key=lambda point: point[1])[1:]}
        yield from _rows(fit.method, fit.epsilon, fit.draw, best)


LOOKS = {
    "default": (BLACK, "*", "-"),
    "isotropic": (ORANGE, "s", "-"),
    "power 1/2": (SKY, "D", "-"),
    "power 1": (GREEN, "^", "-"),
    "Gram": (BLUE, "o", "-"),
    "label noise": (PINK, "v", "-"),
    "isotropic, standardised": (ORANGE, "s", ":"),
    "label noise, standardised": (PINK, "v", ":"),
}
FLAT = {"no privacy": "-", "no privacy, standardised": ":"}
TITLES = {
    "auto": "λ from the noisy statistics alone",
    "oracle": "λ tuned on the test rows (impossible in practice)",
}


def comparison_figure(table: pl.DataFrame, title: str) -> Any:
    """Draw medians over the draws with quartiles; `table` comes from `summarise`."""
    fig, both = panels(10.0, 4.6, 2, sharex=True, sharey=True)
    for axes, (rule, name) in zip(both, TITLES.items(), strict=True):
        part = table.filter(rule=rule)
        for number, (method, (colour, marker, line)) in enumerate(LOOKS.items()):
            of = part.filter(method=method).sort("epsilon")
            if of.height == 0:
                continue
            shift = 1.0 + 0.025 * (number - 4)  # so that error bars do not overlap
            spread = [of["r2"] - of["lower"], of["upper"] - of["r2"]]
            axes.errorbar(
                of["epsilon"] * shift, of["r2"], spread, color=colour, marker=marker,
                linestyle=line, markersize=5, linewidth=1.3, elinewidth=0.8, capsize=2,
                label=method, markerfacecolor="white",
            )  # fmt: skip
        for method, line in FLAT.items():
            level = part.filter(method=method)["r2"].mean()
            if level is not None:
                axes.axhline(level, color=GREY, linewidth=1.0, linestyle=line, label=method)
        axes.set_xscale("log")
        at = sorted(table["epsilon"].unique().to_list())
        axes.set_xticks(at, [f"{epsilon:g}" for epsilon in at])
        axes.set_xticks([], minor=True)
        axes.set_xlabel("ε")
        axes.set_title(name, loc="left", fontsize=10)
        axes.axhline(0.0, color=GREY, linewidth=0.6)
    top = float(table["upper"].max())  # type: ignore[arg-type]
    both[0].set_ylim(-0.25, max(top, 0.1) * 1.08)
    both[0].set_ylabel("R² on new rows")
    handles, labels = both[0].get_legend_handles_labels()
    fig.legend(handles, labels, loc="outside lower center", ncols=5, frameon=False, fontsize=8.5)
    fig.suptitle(title, fontsize=10.5, x=0.01, ha="left")
    return fig
