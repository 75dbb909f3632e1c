"""Grid points on simulated data: certified solver, literal Algorithm 1, and theory."""

from __future__ import annotations

from dataclasses import dataclass
from itertools import product
from typing import TYPE_CHECKING, Any

import numpy as np

from privasso._validation import integer
from privasso.experiments._certified import Answer
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
from privasso.experiments._data import model_of, model_parameters
from privasso.experiments._points_unit import KIND, SCHEMA
from privasso.experiments._unit import Result, Unit
from privasso.noise import design_from_name
from privasso.theory import tradeoff

if TYPE_CHECKING:
    import polars as pl


@dataclass(frozen=True)
class Points:
    """Every combination law × design × λ × σ, on the same `samples` data sets of each law.

    A unit is one data set with all its grid points. Its random numbers depend on the seed, the
    law, the number of columns and its index alone: another grid sees the same data.

    The table has one row a (law, design, lam, sigma). ``exists``, ``unbounded`` and ``unsolved``
    count data sets with a certified minimiser, with a ray that proves that there is none, and
    with neither. ``E`` and ``rho_hat`` are means over those that have a minimiser, ``_se`` their
    standard errors, null for fewer than two.

    ``amp_`` is Algorithm 1 of the paper to the letter, from a random start for each run, until
    the relative change of x is below 1e-8, for at most 500 iterations. ``amp_converged`` counts
    the runs that get there; the others are ``amp_unbounded`` (the problem has no minimiser),
    ``amp_flicker`` (it has, and the iterates stay bounded without settling) or ``amp_diverged``
    (it has, and the iterates blow up). Means are over converged runs, ``amp_iterations`` is
    their median.

    ``_theory`` is state evolution for N columns at the quantiles of the law, ``_limit`` that for
    infinitely many, ``_realised`` the mean of that for each data set's own columns, over data
    sets that have a minimiser and a stable prediction. ``onavekl`` is an average under the
    model, not an ε.

    Parameters
    ----------
    laws, designs : sequences of str
        Words such as ``"uniform"``, ``"lognormal"``; ``"isotropic"``, ``"gram"``, ``"power:1"``.
    lams, sigmas : sequences of float
        Regularisation λ and noise level σ_η.
    n_features, samples, seed : int
        Columns N, data sets a law, and the seed of all draws.
    alpha, rho, sigma_xi : float
        As in `Model`.

    Examples
    --------
    >>> import tempfile
    >>> from pathlib import Path
    >>> from privasso.experiments import Points, run
    >>> points = Points(("lognormal",), ("gram",), (0.5,), (0.1, 2.0), n_features=100, samples=2)
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     table = run({"few": points}, store=Path(folder))["few"]
    >>> table.select("sigma", "exists", "unbounded", "status_theory").rows()
    [(0.1, 2, 0, 'stable'), (2.0, 0, 2, 'unstable')]
    """

    laws: tuple[str, ...] = ("uniform", "lognormal")
    designs: tuple[str, ...] = ("isotropic", "gram")
    lams: tuple[float, ...] = (0.1, 0.2, 0.5)
    sigmas: tuple[float, ...] = (0.01, 0.02, 0.05, 0.1, 0.2)
    n_features: int = 1000
    samples: int = 100
    seed: int = 0
    alpha: float = 0.5
    rho: float = 0.1
    sigma_xi: float = 0.1

    def __post_init__(self) -> None:
        normalise(
            self,
            laws=distinct("laws", self.laws, law_name),
            designs=distinct("designs", self.designs, design_name),
            lams=distinct("lams", self.lams, regularisation),
            sigmas=distinct("sigmas", self.sigmas, level),
            n_features=integer("n_features", self.n_features, minimum=2),
        )

    def units(self) -> list[Unit]:
        """One unit a data set."""
        return [
            Unit(
                KIND,
                {
                    **model_parameters(self, law),
                    "schema": SCHEMA,
                    "designs": list(self.designs),
                    "lams": list(self.lams),
                    "sigmas": list(self.sigmas),
                    "n_features": self.n_features,
                    "seed": self.seed,
                    "index": k,
                },
                f"{law}, data set {k}",
            )
            for law, k in product(self.laws, range(self.samples))
        ]

    def table(self, results: list[Result]) -> pl.DataFrame:
        """Summarise the units, in their order, beside the predictions."""
        from privasso import __version__

        rows: list[dict[str, Any]] = []
        for i, law in enumerate(self.laws):
            sets = results[i * self.samples : (i + 1) * self.samples]
            grid = product(self.designs, self.lams, self.sigmas)
            predictions = self._predictions(law)
            for j, (design, lam, sigma) in enumerate(grid):
                point = {name: [result[name][j] for result in sets] for name in sets[0]}
                rows.append(
                    {
                        "law": law,
                        "design": design,
                        "lam": lam,
                        "sigma": sigma,
                        "n_features": self.n_features,
                        "samples": self.samples,
                        "seed": self.seed,
                        "version": __version__,
                        **_measured(point),
                        **predictions[j][0],
                        **_realised(point),
                        **predictions[j][1],
                    }
                )
        return frame(rows)

    def _predictions(self, law: str) -> list[tuple[dict[str, Any], dict[str, Any]]]:
        """What theory says of error and of privacy at each point, in grid order."""
        model = model_of(model_parameters(self, law))
        out = []
        for name, lam in product(self.designs, self.lams):
            design = design_from_name("design", name, 1.0)
            finite = tradeoff(model, lam, design, self.sigmas, n_features=self.n_features)
            limit = tradeoff(model, lam, design, self.sigmas)
            for here, there in zip(finite.to_dicts(), limit.to_dicts(), strict=True):
                error = {
                    "E_theory": here["E"],
                    "rho_hat_theory": here["rho_hat"],
                    "stability_theory": here["stability"],
                    "status_theory": here["status"],
                    "E_limit": there["E"],
                    "status_limit": there["status"],
                }
                out.append((error, {name: here[name] for name in ("onavekl", "onavekl_paper")}))
        return out


def _measured(point: dict[str, list[Any]]) -> dict[str, Any]:
    """Counts and means of the solver and of Algorithm 1 at one grid point."""
    answers = np.array(point["answer"])
    exists, unbounded = answers == Answer.EXISTS, answers == Answer.UNBOUNDED
    converged, blown_up = (np.array(point[name]) == 1 for name in ("amp_converged", "amp_blown_up"))
    iterations = np.array(point["amp_iterations"])[converged]
    return {
        "exists": int(exists.sum()),
        "unbounded": int(unbounded.sum()),
        "unsolved": int((answers == Answer.UNSOLVED).sum()),
        **_means(point, "E", "rho_hat"),
        "amp_converged": int(converged.sum()),
        "amp_unbounded": int((~converged & unbounded).sum()),
        "amp_flicker": int((~converged & exists & ~blown_up).sum()),
        "amp_diverged": int((~converged & exists & blown_up).sum()),
        **_means(point, "amp_E", "amp_rho_hat"),
        "amp_iterations": float(np.median(iterations)) if iterations.size else None,
    }


def _realised(point: dict[str, list[Any]]) -> dict[str, Any]:
    """Mean predictions for the realised columns."""
    means = _means(point, "E_realised", "rho_hat_realised")
    del means["rho_hat_realised_se"]
    return means


def _means(point: dict[str, list[Any]], *names: str) -> dict[str, float | None]:
    out = {}
    for name in names:
        out[name], out[f"{name}_se"] = mean_and_error(known(point[name]))
    return out
