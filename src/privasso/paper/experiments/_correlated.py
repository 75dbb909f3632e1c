"""Columns of any correlation: certified solves, linear programmes, AMP, and the predictions."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import KW_ONLY, dataclass, replace
from itertools import product
from typing import ClassVar

import numpy as np

from privasso.model import Model, covariance_from_name
from privasso.noise import MatrixPower, column_noise_from_name
from privasso.paper.experiments._experiment import (
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
from privasso.problem import critical_lambda
from privasso.solvers import Amp, Status, Vamp, solve
from privasso.theory import FixedPointStatus, correlated_edge, state_evolution

#: The algorithms without another solver to finish for them.
ALONE = {"amp": Amp(polish=False), "vamp": Vamp(polish=False, max_iter=500)}


@dataclass(frozen=True)
class CorrelatedExperiment(Experiment):
    """E, ρ̂ and the critical λ/σ_η of data sets with correlated columns, and their predictions.

    A case is a law of scales and a correlation; all its data sets have the same covariance C. The
    table has one row per case, design and noise level: ``E`` and ``rho_hat`` of certified solves,
    how many have a minimiser (``exists``), on how many AMP and vector AMP converge without help
    from another solver, the critical ratio by linear programming, and what `state_evolution` and
    `correlated_edge` predict for C.
    """

    kind: ClassVar[str] = "correlated"
    varied: ClassVar[Mapping[str, str]] = {"laws": "law", "correlations": "columns"}

    laws: tuple[str, ...] = ("uniform", "lognormal")
    correlations: tuple[str, ...] = ("ar:0.8",)
    designs: tuple[str, ...] = ("isotropic", "gram", "matrix:2")
    _: KW_ONLY
    lam: float = 0.2
    sigmas: tuple[float, ...] = (0.05,)
    n_features: int = 300
    samples: int = 20
    draws: int = 32

    @staticmethod
    def compute(parameters: Parameters) -> Result:
        """Solve one data set with every design and level; None where there is no minimiser."""
        model, law, n = covariance_model(parameters), parameters["law"], parameters["n_features"]
        words = parameters["columns"], law, n
        s = model.sample(rng=stream(parameters, "correlated data", *words))
        z = stream(parameters, "correlated noise", *words).standard_normal(n)
        C: np.ndarray = model.covariance.covariance
        found: Result = {name: [] for name in ("ratio", "E", "rho_hat", "amp", "vamp")}
        for design in parameters["designs"]:
            noise = column_noise_from_name("design", design, 1.0)
            if isinstance(noise, MatrixPower):
                root = noise.root(C)
                direction = root @ z[: root.shape[1]]
            else:
                direction = z * np.sqrt(noise.variances(s.v))
            ratio = critical_lambda(s.F, direction)
            for sigma in parameters["sigmas"]:
                found["ratio"].append(ratio)
                eta = sigma * direction
                released = solve(s.F, s.y, parameters["lam"], eta, throw=False)
                there = released.status is Status.CONVERGED
                miss = released.x - s.x0
                E = float(miss @ C @ miss) / n + model.sigma_xi**2
                found["E"].append(E if there else None)
                found["rho_hat"].append(float(np.mean(released.x != 0.0)) if there else None)
                for name, method in ALONE.items():
                    alone = solve(s.F, s.y, parameters["lam"], eta, method=method, throw=False)
                    found[name].append(float(alone.status is Status.CONVERGED))
        return found

    def rows(self, case: Parameters, results: list[Result]) -> Iterator[Row]:
        model, drawn = covariance_model(case), {"draws": self.draws, "rng": self.seed}
        units = {name: column_noise_from_name("design", name, 1.0) for name in self.designs}
        edges = {name: correlated_edge(model, unit, **drawn) for name, unit in units.items()}
        for k, (design, sigma) in enumerate(product(self.designs, self.sigmas)):
            point = at(results, k)
            fp = state_evolution(model, self.lam, units[design].with_sigma(sigma), **drawn)
            stable = fp.status is FixedPointStatus.STABLE
            yield {
                "design": design, "sigma": sigma, "exists": known(point["E"]).size,
                **means(E=point["E"], rho_hat=point["rho_hat"]),
                "amp_converged": int(sum(point["amp"])),
                "vamp_converged": int(sum(point["vamp"])),
                **means(ratio=point["ratio"]),
                "ratio_theory": edges[design].ratio,
                "ratio_theory_se": edges[design].standard_error,
                "status_theory": fp.status.value,
                "E_theory": fp.E if stable else None,
                "E_theory_se": fp.standard_errors.E if stable else None,
                "rho_hat_theory": fp.rho_hat if stable else None,
                "rho_hat_theory_se": fp.standard_errors.rho_hat if stable else None,
            }  # fmt: skip


def covariance_model(parameters: Parameters) -> Model:
    """The model with the one covariance of a case, from its seed, law, correlation and N."""
    law, correlation, n = (parameters[name] for name in ("law", "columns", "n_features"))
    rng = stream({**parameters, "index": 0}, "columns", law, correlation, n)
    return replace(
        model_of(parameters), covariance=covariance_from_name("columns", correlation)
    ).realised(n, rng)
