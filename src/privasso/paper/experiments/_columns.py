"""Quarters of the columns by scale: how often they are nonzero, what one record does to them."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import KW_ONLY, dataclass, replace
from functools import partial
from itertools import product
from typing import Any, ClassVar

import numpy as np

from privasso._validation import integer, positive_float
from privasso.noise import noise_from_name
from privasso.paper.experiments._experiment import (
    Check,
    Experiment,
    Parameters,
    Result,
    Row,
    known,
    means,
    model_of,
    stream,
)
from privasso.solvers import Status, solve

QUARTERS = 4


@dataclass(frozen=True)
class QuarterExperiment(Experiment):
    """Quarters of the columns by scale, the smallest first, for every law, design and λ.

    σ is λ divided by `ratio`. ``nonzero`` is the share of a quarter's coefficients that are not
    zero. ``change`` is the mean square by which a coefficient changes when one record is replaced
    by another of the same law and the noise stays as it is, times N. Both are means over the
    ``exists`` data sets that have a minimiser, before and after each of `records` replacements.
    """

    kind: ClassVar[str] = "quarters"
    checks: ClassVar[Mapping[str, Check]] = {
        **Experiment.checks,
        "ratio": partial(positive_float, "ratio"),
        "records": partial(integer, "records", minimum=1),
    }

    laws: tuple[str, ...] = ("uniform", "lognormal")
    designs: tuple[str, ...] = ("isotropic", "gram")
    lams: tuple[float, ...] = (0.1, 0.2, 0.5)
    _: KW_ONLY
    ratio: float = 4.0
    n_features: int = 400
    records: int = 8

    def cases(self) -> dict[str, Parameters]:
        grid = {
            "designs": list(self.designs), "lams": list(self.lams), "ratio": self.ratio,
            "n_features": self.n_features, "records": self.records,
        }  # fmt: skip
        return {law: {"law": law, **grid} for law in self.laws}

    @staticmethod
    def compute(parameters: Parameters) -> Result:
        """Solve for one data set, and again with each of some records replaced."""
        model, law, n = model_of(parameters), parameters["law"], parameters["n_features"]
        m, records = round(model.alpha * n), parameters["records"]
        larger = replace(model, alpha=(m + records) / n)
        s = larger.sample(n, rng=stream(parameters, "quarters data", law, n))
        z = stream(parameters, "quarters noise", law, n).standard_normal(n)
        parts = np.array_split(np.argsort(s.v), QUARTERS)
        found: dict[str, list[Any]] = {"scale": [], "nonzero": [], "change": []}
        for design, lam in product(parameters["designs"], parameters["lams"]):
            noise = noise_from_name("design", design, lam / parameters["ratio"])
            eta = z * np.sqrt(noise.variances(s.v))
            answers = [_solution(s.F[:m], s.y[:m], lam, eta)]
            for k in range(records):
                F, y = s.F[:m].copy(), s.y[:m].copy()
                F[k], y[k] = s.F[m + k], s.y[m + k]
                answers.append(_solution(F, y, lam, eta))
            points = [x for x in answers if x is not None]
            moved = None
            if len(points) == len(answers):
                moved = n * np.mean([(x - points[0]) ** 2 for x in points[1:]], axis=0)
            for part in parts:
                found["scale"].append(float(np.sqrt(s.v[part]).mean()))
                there = None if moved is None else float(np.mean(points[0][part] != 0.0))
                found["nonzero"].append(there)
                found["change"].append(None if moved is None else float(moved[part].mean()))
        return found

    def rows(self, case: Parameters, results: list[Result]) -> Iterator[Row]:
        grid = product(self.designs, self.lams, range(QUARTERS))
        for k, (design, lam, quarter) in enumerate(grid):
            point = {name: [result[name][k] for result in results] for name in results[0]}
            yield {
                "design": design, "alpha": self.alpha, "rho": self.rho, "lam": lam,
                "sigma": lam / self.ratio, "quarter": quarter + 1,
                "exists": known(point["nonzero"]).size,
                "scale": float(np.mean(point["scale"])),
                **means(nonzero=point["nonzero"], change=point["change"]),
            }  # fmt: skip


def _solution(F: np.ndarray, y: np.ndarray, lam: float, eta: np.ndarray) -> np.ndarray | None:
    """The minimiser, or None without one."""
    found = solve(F, y, lam, eta, throw=False)
    return found.x if found.status is Status.CONVERGED else None
