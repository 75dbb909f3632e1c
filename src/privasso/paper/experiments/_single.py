"""Experiments with one number per data set: critical λ, KKT violation, privacy loss."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from dataclasses import KW_ONLY, dataclass, replace
from functools import partial
from itertools import product
from typing import ClassVar

import numpy as np

from privasso._validation import integer
from privasso.noise import noise_from_name
from privasso.paper.experiments._experiment import (
    Check,
    DataSet,
    Experiment,
    Parameters,
    Result,
    Row,
    design_name,
    known,
    law_name,
    means,
    model_of,
    noise_level,
    regularisation,
    stream,
)
from privasso.problem import Problem, critical_lambda
from privasso.solvers import Status, amp_paper_many, paper_starts, solve
from privasso.theory import critical_lambda_ratio, privacy_loss, state_evolution

#: Random starts of Algorithm 1; the first that converges counts.
STARTS = 4
Point = tuple[str, str, float, float]


def _values(results: list[Result], name: str) -> np.ndarray:
    return known(result[name][0] for result in results)


@dataclass(frozen=True)
class CriticalExperiment(Experiment):
    """λ_crit/σ_η below which a data set has no minimiser, for every law and design.

    The data and noise are those that `GridExperiment` draws from the same seed. ``ratio_theory`` is
    `critical_lambda_ratio` for N columns, ``ratio_limit`` for infinitely many, null if infinite.
    """

    kind: ClassVar[str] = "critical"

    laws: tuple[str, ...] = ("uniform", "lognormal")
    designs: tuple[str, ...] = ("isotropic", "gram")
    _: KW_ONLY
    n_features: int = 500
    samples: int = 20

    def cases(self) -> dict[str, Parameters]:
        return {
            f"{law}, {design}": {"law": law, "design": design, "n_features": self.n_features}
            for law, design in product(self.laws, self.designs)
        }

    @staticmethod
    def compute(parameters: Parameters) -> Result:
        """Solve the linear programme of one data set."""
        data = DataSet.draw(parameters)
        return {"ratio": [critical_lambda(data.sample.F, data.direction(parameters["design"]))]}

    def rows(self, case: Parameters, results: list[Result]) -> Iterator[Row]:
        ratios = _values(results, "ratio")
        q10, median, q90 = np.quantile(ratios, [0.1, 0.5, 0.9]).tolist()
        model, noise = model_of(case), noise_from_name("design", case["design"], 1.0)
        limit = critical_lambda_ratio(model, noise)
        yield {
            "alpha": self.alpha,
            **means(ratio=ratios),
            "ratio_median": median,
            "ratio_q10": q10,
            "ratio_q90": q90,
            "ratio_theory": critical_lambda_ratio(model, noise, n_features=self.n_features),
            "ratio_limit": limit if math.isfinite(limit) else None,
        }


@dataclass(frozen=True)
class KktExperiment(Experiment):
    """KKT violation, relative to λ, of the fixed point of Algorithm 1 as the paper writes it.

    The table has one row per N: ``kkt`` is the mean over the ``converged`` data sets of the largest
    violation (data sets that have a minimiser and on which a run of Algorithm 1 converges),
    ``kkt_exact`` the largest violation of the certified solver on any data set, ``distance`` the
    mean of ‖x_paper − x̂‖/‖x̂‖.
    """

    kind: ClassVar[str] = "paper-kkt"

    law: str = "lognormal"
    design: str = "gram"
    lam: float = 0.5
    sigma: float = 0.1
    _: KW_ONLY
    n_features: tuple[int, ...] = (250, 500, 1000, 2000)
    samples: int = 20

    def cases(self) -> dict[str, Parameters]:
        point = {"law": self.law, "design": self.design, "lam": self.lam, "sigma": self.sigma}
        return {f"{self.law}, N = {n}": {**point, "n_features": n} for n in self.n_features}

    @staticmethod
    def compute(parameters: Parameters) -> Result:
        """Compare the first converged run of Algorithm 1 with the minimiser."""
        data = DataSet.draw(parameters)
        F, y, lam = data.sample.F, data.sample.y, parameters["lam"]
        n = F.shape[1]
        eta = parameters["sigma"] * data.direction(parameters["design"])
        exact = solve(F, y, lam, eta, throw=False)
        if exact.status is not Status.CONVERGED:
            return {"kkt": [None], "kkt_exact": [None], "distance": [None]}
        rngs = [stream(parameters, "start", parameters["law"], n, k) for k in range(STARTS)]
        etas = np.tile(eta, (STARTS, 1)).T
        runs = amp_paper_many(F, y, np.full(STARTS, lam), etas, paper_starts(n, rngs))
        if not runs.converged.any():
            return {"kkt": [None], "kkt_exact": [exact.kkt], "distance": [None]}
        x = runs.x[:, int(np.argmax(runs.converged))]
        size = np.linalg.norm(exact.x)
        return {
            "kkt": [Problem.from_labels(F, y, lam, eta).kkt(x)],
            "kkt_exact": [exact.kkt],
            "distance": [float(np.linalg.norm(x - exact.x) / size) if size > 0.0 else None],
        }

    def rows(self, case: Parameters, results: list[Result]) -> Iterator[Row]:
        kkt, exact = _values(results, "kkt"), _values(results, "kkt_exact")
        yield {
            "converged": kkt.size,
            **means(kkt=kkt),
            "kkt_exact": float(exact.max()) if exact.size else None,
            **means(distance=_values(results, "distance")),
        }


def _point(point: Point) -> Point:
    law, design, lam, sigma = point
    if noise_level(sigma) == 0.0:
        raise ValueError("sigma must be positive: without noise the divergence is infinite")
    return law_name(law), design_name(design), regularisation(lam), noise_level(sigma)


@dataclass(frozen=True)
class LeakageExperiment(Experiment):
    """OnAveKL of the released estimate when one record is replaced, without approximation.

    At each point (law, design, λ, σ_η > 0) and for each data set D, noise is drawn, the estimate x
    is released, and log p(x|D)/p(x|D') is computed exactly for `records` neighbours D', each with
    another record replaced by a new one from the same law. The mean over the neighbours is one
    draw; ``onavekl_mc`` is the mean over the ``exists`` data sets that have a minimiser. The table
    also gives the formula for N columns (``onavekl``) and the component-wise one of the paper. All
    of these are averages under the model; none is an ε.
    """

    kind: ClassVar[str] = "leakage"
    checks: ClassVar[Mapping[str, Check]] = {
        **Experiment.checks,
        "points": _point,
        "records": partial(integer, "records", minimum=1),
    }

    points: tuple[Point, ...] = ()
    _: KW_ONLY
    n_features: int = 400
    records: int = 12

    def __post_init__(self) -> None:
        super().__post_init__()
        rows = round(self.alpha * self.n_features)
        if self.records > rows:
            raise ValueError(f"records must not exceed the {rows} rows, not {self.records}")

    def cases(self) -> dict[str, Parameters]:
        size = {"n_features": self.n_features, "records": self.records}
        return {
            f"{law}, {design}, λ = {lam}, σ = {sigma}": {
                "law": law, "design": design, "lam": lam, "sigma": sigma, **size
            }
            for law, design, lam, sigma in self.points
        }  # fmt: skip

    @staticmethod
    def compute(parameters: Parameters) -> Result:
        """Mean exact loss of one data set over its neighbours; None if it has no minimiser."""
        model, law, n = model_of(parameters), parameters["law"], parameters["n_features"]
        m, records, lam = round(model.alpha * n), parameters["records"], parameters["lam"]
        # The new records have the same columns and coefficients: they are rows of a larger sample.
        larger = replace(model, alpha=(m + records) / n)
        s = larger.sample(n, rng=stream(parameters, "leakage data", law, n))
        noise = noise_from_name("design", parameters["design"], parameters["sigma"])
        eta = noise.draw(s.v, rng=stream(parameters, "leakage noise", law, n))
        F, y, variances = s.F[:m], s.y[:m], noise.variances(s.v)
        released = solve(F, y, lam, eta, throw=False)
        if released.status is not Status.CONVERGED:
            return {"loss": [None]}
        losses = []
        for k in range(records):
            F2, y2 = F.copy(), y.copy()
            F2[k], y2[k] = s.F[m + k], s.y[m + k]
            losses.append(privacy_loss(F, y, F2, y2, lam, variances, released.x))
        return {"loss": [float(np.mean(losses))]}

    def rows(self, case: Parameters, results: list[Result]) -> Iterator[Row]:
        losses = _values(results, "loss")
        noise = noise_from_name("design", case["design"], case["sigma"])
        fp = state_evolution(model_of(case), case["lam"], noise, n_features=self.n_features)
        formula, paper = (fp.onavekl(kind) for kind in ("joint", "paper"))
        yield {
            "exists": losses.size,
            **means(onavekl_mc=losses),
            "onavekl": None if np.isnan(formula) else formula,
            "onavekl_paper": None if np.isnan(paper) else paper,
            "stability_theory": fp.stability,
        }
