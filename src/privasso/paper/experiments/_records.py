"""What one replaced record does: to quarters of the columns, and to the law of the release."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import KW_ONLY, dataclass
from itertools import product
from typing import Any, ClassVar

import numpy as np

from privasso.noise import noise_from_name
from privasso.paper.experiments._experiment import (
    Experiment,
    Parameters,
    Result,
    Row,
    at,
    known,
    means,
    model_of,
    neighbours,
    stream,
)
from privasso.solvers import Status, solve
from privasso.theory import log_density, state_evolution

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

    laws: tuple[str, ...] = ("uniform", "lognormal")
    designs: tuple[str, ...] = ("isotropic", "gram")
    lams: tuple[float, ...] = (0.1, 0.2, 0.5)
    _: KW_ONLY
    ratio: float = 4.0
    n_features: int = 400
    records: int = 8

    @staticmethod
    def compute(parameters: Parameters) -> Result:
        """Solve for one data set, and again with each of some records replaced."""
        law, n = parameters["law"], parameters["n_features"]
        v, pairs = neighbours(parameters, "quarters data")
        z = stream(parameters, "quarters noise", law, n).standard_normal(n)
        parts = np.array_split(np.argsort(v), QUARTERS)
        found: dict[str, list[Any]] = {"scale": [], "nonzero": [], "change": []}
        for design, lam in product(parameters["designs"], parameters["lams"]):
            noise = noise_from_name("design", design, lam / parameters["ratio"])
            eta = z * np.sqrt(noise.variances(v))
            answers = [_solution(F, y, lam, eta) for F, y in pairs]
            points = [x for x in answers if x is not None]
            moved = None
            if len(points) == len(answers):
                moved = n * np.mean([(x - points[0]) ** 2 for x in points[1:]], axis=0)
            for part in parts:
                found["scale"].append(float(np.sqrt(v[part]).mean()))
                there = None if moved is None else float(np.mean(points[0][part] != 0.0))
                found["nonzero"].append(there)
                found["change"].append(None if moved is None else float(moved[part].mean()))
        return found

    def rows(self, case: Parameters, results: list[Result]) -> Iterator[Row]:
        grid = product(self.designs, self.lams, range(QUARTERS))
        for k, (design, lam, quarter) in enumerate(grid):
            point = at(results, k)
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
    varied: ClassVar[Mapping[str, str]] = {"points": "law design lam sigma"}

    points: tuple[tuple[str, str, float, float], ...] = ()
    _: KW_ONLY
    n_features: int = 400
    records: int = 12

    @staticmethod
    def compute(parameters: Parameters) -> Result:
        """Mean exact loss of one data set over its neighbours; None if it has no minimiser."""
        law, n, lam = parameters["law"], parameters["n_features"], parameters["lam"]
        v, ((F, y), *others) = neighbours(parameters, "leakage data")
        noise = noise_from_name("design", parameters["design"], parameters["sigma"])
        eta = noise.draw(v, rng=stream(parameters, "leakage noise", law, n))
        x, variances = _solution(F, y, lam, eta), noise.variances(v)
        if x is None:
            return {"loss": [None]}
        densities = [log_density(*one, lam, variances, x) for one in others]
        return {"loss": [log_density(F, y, lam, variances, x) - float(np.mean(densities))]}

    def rows(self, case: Parameters, results: list[Result]) -> Iterator[Row]:
        losses = known(at(results)["loss"])
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
