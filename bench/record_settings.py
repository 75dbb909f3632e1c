"""Rules for the settings of record-level fits on real tables, as differences from the simplest.

``python -m bench.record_settings --write`` renews its table in `docs/data`. It needs the
tables of ``pip install --group real``. Every other table is for choosing, the rest for checking.
The noise is drawn in floating point, and nothing is added to the coefficients: this measures
accuracy, not privacy.
"""

from __future__ import annotations

import zlib
from collections.abc import Callable
from dataclasses import dataclass
from functools import cache

import numpy as np
import polars as pl

import privasso as pv
from bench.page import renew
from bench.real.cells import DELTA, TRAINING
from bench.real.tables import available, load
from bench.record_prior import record_settings
from privasso.accounting import objective_sensitivity
from privasso.planning import RecordTable

SPLITS = 10
EPSILONS = (1.0, 3.0, 10.0)

#: κ, t and λ per row for ε, rows, and columns with the intercept.
Settings = Callable[[float, int, int], tuple[float, float, float]]


@dataclass(frozen=True)
class Rule:
    """A rule for all settings.

    Attributes
    ----------
    name : str
        What is different from the rule before.
    settings : callable
        κ, t and λ.
    radius : float
        R over √(N+1).
    place : float
        Origin of columns that are not negative, between their bounds.
    """

    name: str
    settings: Settings
    radius: float = 0.45
    place: float = 0.35


def _before(epsilon: float) -> float:
    return 0.25 * np.expm1(min(epsilon, 1.0)) * max(epsilon, 1.0)


def _default(privacy: pv.RecordDP, rows: int, columns: int) -> tuple[float, float, float]:
    objective = RecordTable(privacy, rows, columns - 1).objective()
    return objective.noise.kappa, objective.noise.t, objective.lam / rows


@cache
def _privacy(epsilon: float, columns: int) -> pv.RecordDP:
    bounds = np.tile([0.0, 1.0], (columns - 1, 1))
    return pv.RecordDP(epsilon, DELTA, bounds=bounds, y_bounds=(0.0, 1.0))


def _usual(epsilon: float, rows: int, columns: int) -> tuple[float, float, float]:
    return _default(_privacy(epsilon, columns), rows, columns)


@cache
def _designed(epsilon: float, rows: int, columns: int) -> tuple[float, float, float]:
    found = record_settings(_privacy(epsilon, columns), rows, columns - 1)
    return found.kappa, found.t, found.lam / rows


FIRST = Rule("simplest", lambda e, m, n: (0.1, _before(e), 1e-4), 0.85, 0.5)
RULES = (
    Rule("λ = 10⁻⁵ per row", lambda e, m, n: (0.1, _before(e), 1e-5), 0.85, 0.5),
    Rule("κ = 0.05 too", lambda e, m, n: (0.05, _before(e), 1e-5), 0.85, 0.5),
    Rule("κ = 0.07 instead", lambda e, m, n: (0.07, _before(e), 1e-5), 0.85, 0.5),
    Rule("κ = 0.07, R = 0.65√(N+1)", lambda e, m, n: (0.07, _before(e), 1e-5), 0.65, 0.5),
    Rule("the same, origin at 0.35", lambda e, m, n: (0.07, _before(e), 1e-5), 0.65, 0.35),
    Rule("the same, origin at 0.25", lambda e, m, n: (0.07, _before(e), 1e-5), 0.65, 0.25),
    Rule("defaults, but κ = 0.05 for all", lambda e, m, n: (0.05, *_usual(e, m, n)[1:])),
    Rule("**defaults**", _usual),
    Rule(
        "defaults, but t as in the simplest", lambda e, m, n: _with_t(_usual(e, m, n), _before(e))
    ),
    Rule("by state evolution", _designed),
    Rule("the same, but λ of the defaults", lambda e, m, n: (*_designed(e, m, n)[:2], 2e-5)),
)


def _with_t(settings: tuple[float, float, float], t: float) -> tuple[float, float, float]:
    return settings[0], t, settings[2]


@cache
def sensitivity(epsilon: float, t: float) -> float:
    return objective_sensitivity(epsilon, DELTA, t, "records")


def score(table: str, number: int, epsilon: float, rule: Rule) -> float:
    """R² on held-out rows of one split."""
    found = load(table)
    word = zlib.crc32(table.encode())
    place = np.random.default_rng([word, number]).permutation(found.y.size)
    train, test = np.split(place, [round(TRAINING * found.y.size)])
    (low, high), (below, above) = found.column_bounds.T, found.y_bounds
    half, width, centre = 0.5 * (high - low), above - below, 0.5 * (below + above)
    share = np.where(low < 0.0, 0.5, rule.place)
    origin = (1.0 - share) * low + share * high

    def rows(X: np.ndarray) -> np.ndarray:
        return np.column_stack([(X - origin) / half, np.ones(len(X))])

    G = rows(np.clip(found.X[train], low, high))
    m, n = G.shape
    kappa, t, lam = rule.settings(epsilon, m, n)
    radius = rule.radius * np.sqrt(n)
    shrunk = np.minimum(1.0, radius / np.linalg.norm(G, axis=1))
    labels = (np.clip(found.y[train], below, above) - centre) / width
    noise = np.random.default_rng([word, number, int(1000 * epsilon)]).standard_normal(n)
    penalised = np.append(np.ones(n - 1), 0.0)
    x = pv.solve_clipped(
        G * shrunk[:, None],
        labels * shrunk,
        lam * m,
        kappa * radius / sensitivity(epsilon, t) * noise,
        kappa=kappa,
        ridge=radius**2 / t,
        penalty_weights=penalised,
    ).x
    y = (found.y[test] - centre) / width
    return float(1.0 - np.sum((y - rows(found.X[test]) @ x) ** 2) / np.sum((y - y.mean()) ** 2))


def scores(rule: Rule, epsilon: float) -> np.ndarray:
    """Mean R² of each table."""
    return np.array([
        np.mean([score(table, number, epsilon, rule) for number in range(SPLITS)])
        for table in available("regression")
    ])  # fmt: skip


def study() -> pl.DataFrame:
    """Differences from the simplest rule."""
    lines: list[dict[str, str]] = [{"rule": rule.name} for rule in RULES]
    for epsilon in EPSILONS:
        first = scores(FIRST, epsilon)
        for line, rule in zip(lines, RULES, strict=True):
            gain = scores(rule, epsilon) - first
            halves = (gain[::2].mean(), gain[1::2].mean(), gain.min())
            line[f"ε = {epsilon:g}: chosen on"] = f"{halves[0]:+.3f}"
            line[f"ε = {epsilon:g}: checked on"] = f"{halves[1]:+.3f}"
            line[f"ε = {epsilon:g}: worst table"] = f"{halves[2]:+.3f}"
    return pl.DataFrame(lines)


def main() -> None:
    renew("python -m bench.record_settings", __doc__, {"study": study}, "record-settings")


if __name__ == "__main__":
    main()
