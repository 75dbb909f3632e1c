"""Columns of any correlation: certified solves, linear programmes, AMP, and the predictions."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import KW_ONLY, dataclass, replace
from itertools import product
from typing import ClassVar

import numpy as np

from privasso._validation import integer
from privasso.model import GivenCovariance, Model, covariance_from_name
from privasso.noise import MatrixPower, column_noise_from_name
from privasso.paper.experiments._checks import (
    columns,
    distinct,
    law_name,
    noise_level,
    regularisation,
)
from privasso.paper.experiments._data import model_of, stream
from privasso.paper.experiments._experiment import Experiment
from privasso.paper.experiments._store import Parameters, Result
from privasso.paper.experiments._table import Row, known, mean_and_error
from privasso.problem import critical_lambda
from privasso.solvers import Amp, Status, Vamp, solve
from privasso.theory import CorrelatedPoint, FixedPointStatus, correlated_edge, state_evolution

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

    Parameters
    ----------
    laws : sequence of str
        As in `GridExperiment`.
    correlations : sequence of str
        As in `covariance_from_name`.
    designs : sequence of str
        isotropic, gram (the diagonal of C), matrix:1 or matrix:2 (C or C²).
    lam : float
        Regularisation λ.
    sigmas : sequence of float
        Noise levels.
    n_features : int
        Columns N.
    draws : int
        Draws of a prediction; with more than `samples` of them its standard errors are smaller
        than those of the data sets.

    Examples
    --------
    >>> import tempfile
    >>> from pathlib import Path
    >>> from privasso.paper.experiments import CorrelatedExperiment, run
    >>> few = CorrelatedExperiment(
    ...     ("lognormal",), ("ar:0.8",), ("matrix:2",), sigmas=(0.05,), n_features=80, samples=4
    ... )
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     row = run({"few": few}, store=Path(folder))["few"].row(0, named=True)
    >>> row["exists"], abs(row["E"] / row["E_theory"] - 1) < 0.5, row["ratio"] < 0.5
    (4, True, True)
    """

    kind: ClassVar[str] = "correlated"

    laws: tuple[str, ...] = ("uniform", "lognormal")
    correlations: tuple[str, ...] = ("ar:0.8",)
    designs: tuple[str, ...] = ("isotropic", "gram", "matrix:2")
    _: KW_ONLY
    lam: float = 0.2
    sigmas: tuple[float, ...] = (0.05,)
    n_features: int = 300
    samples: int = 20
    draws: int = 32

    def checked(self) -> dict[str, object]:
        return {
            "laws": distinct("laws", self.laws, law_name),
            "correlations": distinct("correlations", self.correlations, _correlation),
            "designs": distinct("designs", self.designs, _design),
            "lam": regularisation(self.lam),
            "sigmas": distinct("sigmas", self.sigmas, noise_level),
            "n_features": columns(self.n_features),
            "draws": integer("draws", self.draws, minimum=2),
        }

    def cases(self) -> dict[str, Parameters]:
        return {
            f"{law}, {correlation}": {
                "law": law,
                "columns": correlation,
                "designs": list(self.designs),
                "lam": self.lam,
                "sigmas": list(self.sigmas),
                "n_features": self.n_features,
            }
            for law, correlation in product(self.laws, self.correlations)
        }

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
        model = covariance_model({**_shared(self), **case})
        for d, design in enumerate(self.designs):
            first = d * len(self.sigmas)
            ratio, ratio_error = mean_and_error(
                np.array([found["ratio"][first] for found in results])
            )
            unit = column_noise_from_name("design", design, 1.0)
            edge = correlated_edge(model, unit, draws=self.draws, rng=self.seed)
            for k, sigma in enumerate(self.sigmas):
                at = first + k
                E = known([found["E"][at] for found in results])
                mean, error = mean_and_error(E)
                rho, rho_error = mean_and_error(known([found["rho_hat"][at] for found in results]))
                fp = state_evolution(
                    model, self.lam, unit.with_sigma(sigma), draws=self.draws, rng=self.seed
                )
                assert isinstance(fp, CorrelatedPoint)
                stable = fp.status is FixedPointStatus.STABLE
                yield {
                    "law": case["law"], "columns": case["columns"], "design": design,
                    "lam": self.lam, "sigma": sigma, "exists": E.size,
                    "E": mean, "E_se": error, "rho_hat": rho, "rho_hat_se": rho_error,
                    "amp_converged": int(sum(found["amp"][at] for found in results)),
                    "vamp_converged": int(sum(found["vamp"][at] for found in results)),
                    "ratio": ratio, "ratio_se": ratio_error,
                    "ratio_theory": edge.ratio, "ratio_theory_se": edge.standard_error,
                    "status_theory": fp.status.value,
                    "E_theory": fp.E if stable else None,
                    "E_theory_se": fp.standard_errors.E if stable else None,
                    "rho_hat_theory": fp.rho_hat if stable else None,
                    "rho_hat_theory_se": fp.standard_errors.rho_hat if stable else None,
                }  # fmt: skip


def covariance_model(parameters: Parameters) -> Model:
    """Return the model with the one covariance that all data sets of a case have.

    It depends on the seed, the law, the correlation and the number of columns.
    """
    law, correlation, n = (parameters[name] for name in ("law", "columns", "n_features"))
    rng = stream({**parameters, "index": 0}, "columns", law, correlation, n)
    model = replace(
        model_of(parameters), covariance=covariance_from_name("columns", correlation)
    ).realised(n, rng)
    assert isinstance(model.covariance, GivenCovariance)
    return model


def _shared(experiment: Experiment) -> Parameters:
    names = ("alpha", "rho", "sigma_xi", "seed")
    return {name: getattr(experiment, name) for name in names}


def _correlation(text: str) -> str:
    covariance_from_name("correlations", text)
    return text.lower()


def _design(text: str) -> str:
    column_noise_from_name("designs", text, 1.0)
    return text.lower()
