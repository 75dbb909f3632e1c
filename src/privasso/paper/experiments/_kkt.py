"""How far the fixed point of the literal Algorithm 1 is from the minimiser, against N."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import KW_ONLY, dataclass
from typing import ClassVar

import numpy as np

from privasso.paper.experiments._checks import (
    columns,
    design_name,
    distinct,
    law_name,
    noise_level,
    regularisation,
)
from privasso.paper.experiments._data import DataSet, stream
from privasso.paper.experiments._experiment import Experiment
from privasso.paper.experiments._store import Parameters, Result
from privasso.paper.experiments._table import Row, known, mean_and_error
from privasso.problem import Problem
from privasso.solvers import Status, amp_paper_many, paper_starts, solve

#: Random starts of Algorithm 1; the first that converges counts.
STARTS = 4


@dataclass(frozen=True)
class KktExperiment(Experiment):
    """KKT violation, relative to λ, of the fixed point of Algorithm 1 as the paper writes it.

    The table has one row per N: ``kkt`` is the mean over the ``converged`` data sets of the largest
    violation (data sets that have a minimiser and on which a run of Algorithm 1 converges),
    ``kkt_exact`` the largest violation of the certified solver on any data set, ``distance`` the
    mean of ‖x_paper − x̂‖/‖x̂‖.

    Parameters
    ----------
    law, design : str
        As in `GridExperiment`.
    lam, sigma : float
        Regularisation λ and noise level σ_η.
    n_features : sequence of int
        Columns N of each case.

    Examples
    --------
    >>> import tempfile
    >>> from pathlib import Path
    >>> from privasso.paper.experiments import KktExperiment, run
    >>> experiment = KktExperiment("lognormal", "gram", 0.5, 0.1, n_features=(100, 400), samples=3)
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     table = run({"kkt": experiment}, store=Path(folder))["kkt"]
    >>> bool((table["kkt"] > 1e-3).all()), bool((table["kkt_exact"] < 1e-8).all())
    (True, True)
    """

    kind: ClassVar[str] = "paper-kkt"

    law: str = "lognormal"
    design: str = "gram"
    lam: float = 0.5
    sigma: float = 0.1
    _: KW_ONLY
    n_features: tuple[int, ...] = (250, 500, 1000, 2000)
    samples: int = 20

    def checked(self) -> dict[str, object]:
        return {
            "law": law_name(self.law),
            "design": design_name(self.design),
            "lam": regularisation(self.lam),
            "sigma": noise_level(self.sigma),
            "n_features": distinct("n_features", self.n_features, columns),
        }

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
        found = {name: known([result[name][0] for result in results]) for name in results[0]}
        kkt, kkt_se = mean_and_error(found["kkt"])
        distance, distance_se = mean_and_error(found["distance"])
        exact = found["kkt_exact"]
        yield {
            "law": self.law,
            "design": self.design,
            "lam": self.lam,
            "sigma": self.sigma,
            "converged": found["kkt"].size,
            "kkt": kkt,
            "kkt_se": kkt_se,
            "kkt_exact": float(exact.max()) if exact.size else None,
            "distance": distance,
            "distance_se": distance_se,
        }
