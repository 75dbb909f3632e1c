"""Tables and settings that are as hard as possible, and what fits of them certify."""

from __future__ import annotations

import sys
from dataclasses import dataclass, replace
from fractions import Fraction
from typing import Any

import numpy as np

import privasso as pv
import privasso.queries._minimiser as minimiser
import privasso.queries._objective_noise as output
import privasso.queries._shaped_minimiser as shaped
import privasso.solvers._exact_pass as passes
from privasso.blocks import RowBlocks
from privasso.fit import Classes, FitOptions, plan_for
from privasso.problem import Huber, Loss

TABLES = (
    "normal", "constant", "identical", "duplicated", "zeros and ones", "one row", "huge", "tiny",
    "nearly alike", "infinite", "skew",
)  # fmt: skip
LABELS = ("separable", "linear", "zeros", "ones", "random", "far out", "missing")
FITS = ("records", "blocks", "labels", "blocks of labels", "logistic", "shaped", "wide", "private")
HUBER = Huber()
QUANTILES = ("records", "blocks", "labels", "shaped", "wide")


def covariates(kind: str, m: int, n: int, rng: np.random.Generator) -> np.ndarray:
    """A table of m records, mostly with cells between 0 and 1."""
    made = {
        "normal": lambda: np.clip(0.5 + 0.2 * rng.standard_normal((m, n)), 0.0, 1.0),
        "constant": lambda: np.full((m, n), rng.random()),
        "identical": lambda: np.tile(rng.random(n), (m, 1)),
        "duplicated": lambda: np.repeat(rng.random((m, 1)), n, axis=1),
        "zeros and ones": lambda: (rng.random((m, n)) < rng.uniform(0.02, 0.6, n)).astype(float),
        "one row": lambda: np.outer(np.arange(m) == 0, np.ones(n)),
        "huge": lambda: rng.standard_normal((m, n)) * 1e300,
        "tiny": lambda: rng.random((m, n)) * 1e-300,
        "nearly alike": lambda: np.clip(
            rng.random((m, 1)) + 1e-7 * rng.standard_normal((m, n)), 0.0, 1.0
        ),
        "infinite": lambda: rng.choice([0.0, 1.0, np.inf, -np.inf, np.nan], (m, n)),
        "skew": lambda: rng.random((m, n)) ** 6,
    }
    return np.asarray(made[kind](), dtype=np.float64)


def labels(kind: str, X: np.ndarray, rng: np.random.Generator) -> np.ndarray:
    """Labels, mostly between 0 and 1."""
    m, first = len(X), np.nan_to_num(np.clip(X[:, 0], 0.0, 1.0))
    made = {
        "separable": lambda: (first > np.median(first)).astype(float),
        "linear": lambda: np.clip(0.5 * first + 0.1 * rng.standard_normal(m), 0.0, 1.0),
        "zeros": lambda: np.zeros(m),
        "ones": lambda: np.ones(m),
        "random": lambda: rng.random(m),
        "far out": lambda: (rng.random(m) < 0.5) * 2e5 - 1e5,
        "missing": lambda: np.where(rng.random(m) < 0.3, np.nan, rng.random(m)),
    }
    return made[kind]()


@dataclass(frozen=True)
class Case:
    """A fit, made from a number."""

    what: str
    table: str
    label: str
    m: int
    n: int
    epsilon: float
    t: float | None
    kappa: float | None
    lam: float | str
    seed: int
    loss: Loss = HUBER

    @classmethod
    def of(cls, seed: int, most_rows: int = 3000, most_columns: int = 60) -> Case:
        """Draw a case; ε is between 0.01 and 50."""
        rng = np.random.default_rng([seed, 30])
        what = str(rng.choice(FITS))
        m = round(np.exp(rng.uniform(np.log(2), np.log(most_rows))))
        n = round(np.exp(rng.uniform(0.0, np.log(most_columns))))
        if what == "wide":  # with more columns the memory of the machine decides
            m, n = min(m, n), min(max(m, n), 3000)
        elif what.startswith("blocks"):
            m, n = max(m, n + 2), n
        kinds = TABLES
        if "labels" in what:  # covariates are public there, and those are refused
            kinds = tuple(k for k in TABLES if k not in {"huge", "tiny", "infinite"})
            kinds = kinds if what == "labels" else ("normal", "skew")
        return cls(
            what,
            str(rng.choice(kinds)),
            str(rng.choice(LABELS)),
            m,
            n,
            float(np.exp(rng.uniform(np.log(0.01), np.log(50.0)))),
            None if rng.random() < 0.4 else float(10.0 ** rng.uniform(-2.0, 6.0)),
            None if rng.random() < 0.4 else float(10.0 ** rng.uniform(-4.0, 0.0)),
            "auto" if rng.random() < 0.6 else float(10.0 ** rng.uniform(-3.0, 6.0)),
            seed,
        )

    def of_quantile(self) -> Case:
        """The same fit of a quantile."""
        rng = np.random.default_rng([self.seed, 32])
        what, n = str(rng.choice(QUANTILES)), min(self.n, self.m - 1)
        table = self.table if what != "labels" else "normal"
        kappa = None if self.kappa is None else max(self.kappa, 1e-3)
        loss = pv.Quantile(float(rng.uniform(0.02, 0.98)))
        n = self.n if what == "wide" else max(n, 1)
        return replace(self, what=what, table=table, n=n, kappa=kappa, loss=loss)

    def fit(self) -> None:
        """Draw the table, and fit it."""
        rng = np.random.default_rng([self.seed, 31])
        X = covariates(self.table, self.m, self.n, rng)
        y = labels(self.label, X, rng)
        plan, y = self._plan(X, y)
        plan.release(y, rng=np.random.default_rng(self.seed))

    def _plan(self, X: np.ndarray, y: np.ndarray) -> tuple[Any, np.ndarray | None]:
        box = [(0.0, 1.0)] * self.n
        given: dict[str, Any] = {"t": self.t, "kappa": self.kappa}
        if "labels" in self.what:
            privacy: Any = pv.LabelDP(self.epsilon, 1e-6, (0, 1), mechanism="objective", **given)
        elif self.what == "shaped":
            public = np.random.default_rng(self.seed).random((30, self.n))
            privacy = pv.RecordDP(self.epsilon, 1e-6, box, (0, 1), shape=public, **given)
        elif self.what == "private":
            privacy = pv.RecordDP(self.epsilon, 1e-6, box, (0, 1), scales="private", **given)
        else:
            privacy = pv.RecordDP(self.epsilon, 1e-6, box, (0, 1), **given)
        classes = None
        if self.what == "logistic":
            privacy = pv.RecordDP(self.epsilon, 1e-6, box, (0, 1), t=self.t)
            y, classes = np.where(np.isnan(y), y, (y > 0.5).astype(float)), Classes()
        options = FitOptions(privacy, lam=self.lam, classes=classes, loss=self.loss)
        if self.what.startswith("blocks"):
            return plan_for(RowBlocks.of_arrays(X, y), options, seeded=True), None
        return plan_for(X, options, seeded=True), y


@dataclass
class Certified:
    """A minimisation of a fit, and what was claimed: ‖Lᵀx − grid point‖ ≤ off for the exact x."""

    G: np.ndarray
    y: np.ndarray
    loss: Loss
    ridge: float
    eta: list[Fraction]
    thresholds: np.ndarray
    weights: np.ndarray | None
    L: np.ndarray | None
    point: list[Fraction]
    off: float


def certified(case: Case, monkeypatch) -> Certified | None:
    """Run a fit, and catch its minimisation; None where the fit has none."""
    seen: dict[str, Any] = {}

    def keep(module, name, take):
        original = getattr(module, name)

        def wrapped(*args, **named):
            result = original(*args, **named)
            take(result, *args, **named)
            return result

        monkeypatch.setattr(module, name, wrapped)

    def of_output(_, noise, whole, off, bits):
        exponent = output.output_exponent(noise, len(whole))
        seen["noise"], seen["off"] = noise, off
        seen["point"] = [k * Fraction(2) ** exponent for k in whole]

    for module in (minimiser, shaped):
        keep(module, "drawn_eta", lambda eta, *_: seen.update(eta=eta))
        keep(module, "noisy_output", of_output)

    def of_rows(_, G, y, lam, *__, penalty_weights, weights=None, L=None):
        seen.update(G=G, y=y, thresholds=lam * penalty_weights, weights=weights, L=L)

    def of_blocks(_, source, view, setting, lam, noise, bits, penalty_weights):
        rows = seen["rows"][: source.shape[0]]
        seen.update(G=np.array([g for g, _ in rows]), y=np.array([v for _, v in rows]))
        seen.update(thresholds=lam * penalty_weights)

    for own, name, take in (
        (minimiser, "perturbed_minimiser", of_rows),
        (shaped, "shaped_minimiser", of_rows),
        (minimiser, "exact_minimiser", of_blocks),
    ):
        users = [
            m
            for n, m in list(sys.modules.items())
            if n.startswith(("privasso.programs._", "privasso.queries._"))
        ]
        original = getattr(own, name)
        for module in users:
            if getattr(module, name, None) is original:
                keep(module, name, take)

    def of_chunk(made, *_):
        seen.setdefault("rows", []).extend(zip(*made, strict=True))

    keep(passes, "_prepared", of_chunk)
    case.fit()
    if "off" not in seen or "G" not in seen:
        return None
    noise = seen["noise"]
    step = 0.5 * 2.0 ** output.output_exponent(noise, len(seen["point"]))
    return Certified(
        seen["G"], seen["y"], noise.loss, noise.ridge, seen["eta"].exact,
        seen["thresholds"], seen.get("weights"), seen.get("L"), seen["point"],
        seen["off"] + step * len(seen["point"]) ** 0.5,
    )  # fmt: skip
