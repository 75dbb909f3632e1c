"""Experiments with one number per data set: critical λ, KKT violation."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from dataclasses import KW_ONLY, dataclass
from typing import ClassVar

import numpy as np

from privasso.noise import noise_from_name
from privasso.paper.experiments._experiment import (
    DataSet,
    Experiment,
    Parameters,
    Result,
    Row,
    at,
    known,
    means,
    model_of,
    stream,
)
from privasso.problem import Problem, critical_lambda
from privasso.solvers import Status, amp_paper_many, paper_starts, solve
from privasso.theory import critical_lambda_ratio

#: Random starts of Algorithm 1; the first that converges counts.
STARTS = 4


@dataclass(frozen=True)
class CriticalExperiment(Experiment):
    """λ_crit/σ_η below which a data set has no minimiser, for every law and design.

    The data and noise are those that `GridExperiment` draws from the same seed. ``ratio_theory`` is
    `critical_lambda_ratio` for N columns, ``ratio_limit`` for infinitely many, null if infinite.
    """

    kind: ClassVar[str] = "critical"
    varied: ClassVar[Mapping[str, str]] = {"laws": "law", "designs": "design"}

    laws: tuple[str, ...] = ("uniform", "lognormal")
    designs: tuple[str, ...] = ("isotropic", "gram")
    _: KW_ONLY
    n_features: int = 500
    samples: int = 20

    @staticmethod
    def compute(parameters: Parameters) -> Result:
        """Solve the linear programme of one data set."""
        data = DataSet.draw(parameters)
        return {"ratio": [critical_lambda(data.sample.F, data.direction(parameters["design"]))]}

    def rows(self, case: Parameters, results: list[Result]) -> Iterator[Row]:
        ratios = known(at(results)["ratio"])
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
    varied: ClassVar[Mapping[str, str]] = {"n_features": "n_features"}

    law: str = "lognormal"
    design: str = "gram"
    lam: float = 0.5
    sigma: float = 0.1
    _: KW_ONLY
    n_features: tuple[int, ...] = (250, 500, 1000, 2000)
    samples: int = 20

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
        kkt, exact, distance = (known(at(results)[x]) for x in ("kkt", "kkt_exact", "distance"))
        yield {
            "converged": kkt.size,
            **means(kkt=kkt),
            "kkt_exact": float(exact.max()) if exact.size else None,
            **means(distance=distance),
        }
