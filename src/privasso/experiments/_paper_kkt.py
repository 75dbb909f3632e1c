"""How far the fixed point of the literal Algorithm 1 is from the minimiser, against N."""

from __future__ import annotations

from dataclasses import dataclass
from itertools import product
from typing import TYPE_CHECKING, Any

import numpy as np

from privasso._validation import integer
from privasso.experiments._checks import (
    design_name,
    distinct,
    frame,
    known,
    law_name,
    level,
    mean_and_error,
    normalise,
    regularisation,
)
from privasso.experiments._data import DataSet, model_parameters, stream
from privasso.experiments._unit import Result, Unit
from privasso.problem import Problem
from privasso.solvers import Status, solve
from privasso.solvers._amp_paper_many import amp_paper_many, paper_starts

if TYPE_CHECKING:
    import polars as pl

KIND = "paper-kkt"
#: To be raised whenever the meaning of a result changes.
SCHEMA = 1
#: Random starts of Algorithm 1; the first that converges counts.
STARTS = 4


@dataclass(frozen=True)
class PaperKkt:
    """KKT violation, relative to λ, of the fixed point of Algorithm 1 as the paper writes it.

    A unit is one data set at one N. The table has one row an N: ``kkt`` is the mean largest
    violation over the ``converged`` data sets (those with a minimiser on which a run of
    Algorithm 1 settles), ``kkt_exact`` the largest of the certified solver, ``distance`` the mean
    of ‖x_paper − x̂‖/‖x̂‖.

    Examples
    --------
    >>> import tempfile
    >>> from pathlib import Path
    >>> from privasso.experiments import PaperKkt, run
    >>> experiment = PaperKkt("lognormal", "gram", 0.5, 0.1, n_features=(100, 400), samples=3)
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     table = run({"kkt": experiment}, store=Path(folder))["kkt"]
    >>> bool((table["kkt"] > 1e-3).all()), bool((table["kkt_exact"] < 1e-8).all())
    (True, True)
    """

    law: str = "lognormal"
    design: str = "gram"
    lam: float = 0.5
    sigma: float = 0.1
    n_features: tuple[int, ...] = (250, 500, 1000, 2000)
    samples: int = 20
    seed: int = 0
    alpha: float = 0.5
    rho: float = 0.1
    sigma_xi: float = 0.1

    def __post_init__(self) -> None:
        normalise(
            self,
            law=law_name(self.law),
            design=design_name(self.design),
            lam=regularisation(self.lam),
            sigma=level(self.sigma),
            n_features=distinct("n_features", self.n_features, _columns),
        )

    def units(self) -> list[Unit]:
        """One unit a (N, data set)."""
        return [
            Unit(
                KIND,
                {
                    **model_parameters(self, self.law),
                    "schema": SCHEMA,
                    "design": self.design,
                    "lam": self.lam,
                    "sigma": self.sigma,
                    "n_features": n,
                    "seed": self.seed,
                    "index": k,
                },
                f"{self.law}, N = {n}, data set {k}",
            )
            for n, k in product(self.n_features, range(self.samples))
        ]

    def table(self, results: list[Result]) -> pl.DataFrame:
        """Summarise the units, in their order."""
        from privasso import __version__

        rows = []
        for i, n in enumerate(self.n_features):
            part = results[i * self.samples : (i + 1) * self.samples]
            columns = {name: known([result[name][0] for result in part]) for name in part[0]}
            kkt, kkt_se = mean_and_error(columns["kkt"])
            distance, distance_se = mean_and_error(columns["distance"])
            exact = columns["kkt_exact"]
            rows.append(
                {
                    "law": self.law,
                    "design": self.design,
                    "lam": self.lam,
                    "sigma": self.sigma,
                    "n_features": n,
                    "samples": self.samples,
                    "seed": self.seed,
                    "version": __version__,
                    "converged": columns["kkt"].size,
                    "kkt": kkt,
                    "kkt_se": kkt_se,
                    "kkt_exact": float(exact.max()) if exact.size else None,
                    "distance": distance,
                    "distance_se": distance_se,
                }
            )
        return frame(rows)


def compute(parameters: dict[str, Any]) -> Result:
    """Compare the first converged run of Algorithm 1 with the minimiser."""
    data = DataSet.draw(parameters)
    F, y, lam = data.sample.F, data.sample.y, parameters["lam"]
    eta = parameters["sigma"] * data.direction(parameters["design"])
    exact = solve(F, y, lam, eta, throw=False)
    if exact.status is not Status.CONVERGED:
        return {"kkt": [None], "kkt_exact": [None], "distance": [None]}
    name = f"start {parameters['law']} {F.shape[1]}"
    rngs = [stream(parameters["seed"], f"{name} {k}", parameters["index"]) for k in range(STARTS)]
    etas = np.tile(eta, (STARTS, 1)).T
    runs = amp_paper_many(F, y, np.full(STARTS, lam), etas, paper_starts(F.shape[1], rngs))
    if not runs.converged.any():
        return {"kkt": [None], "kkt_exact": [exact.kkt], "distance": [None]}
    x = runs.x[:, int(np.argmax(runs.converged))]
    distance = np.linalg.norm(x - exact.x) / np.linalg.norm(exact.x) if exact.x.any() else None
    return {
        "kkt": [Problem.from_labels(F, y, lam, eta).kkt(x)],
        "kkt_exact": [exact.kkt],
        "distance": [None if distance is None else float(distance)],
    }


def _columns(value: object) -> int:
    return integer("n_features", value, minimum=2)
