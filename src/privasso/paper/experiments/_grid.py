"""Grid points on simulated data: certified solver, literal Algorithm 1, and theory."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import KW_ONLY, dataclass
from itertools import product
from typing import Any, ClassVar, NamedTuple

import numpy as np

from privasso.noise import noise_from_name
from privasso.paper.experiments._certified import Answer, certified
from privasso.paper.experiments._experiment import (
    DataSet,
    Experiment,
    Parameters,
    Result,
    Row,
    at,
    means,
    model_of,
    or_none,
    stream,
)
from privasso.solvers import amp_paper_many, paper_starts
from privasso.theory import tradeoff

#: Points with more active columns than this share of the rows are solved one by one.
_HARD = 0.85


@dataclass(frozen=True)
class GridExperiment(Experiment):
    """Every combination of law, design, λ and σ, on the same `samples` data sets of each law.

    A unit is one data set with all its grid points.

    The table has one row per (law, design, lam, sigma). ``exists``, ``unbounded`` and ``unsolved``
    count data sets with a certified minimiser, with a ray that proves that there is none, and
    with neither. ``E`` and ``rho_hat`` are means over the data sets that have a minimiser, ``_se``
    their standard errors; both are null for fewer than two. ``E_growth`` is the mean of E minus
    its value for the same data set at the lowest σ.

    ``amp_`` is Algorithm 1 exactly as the paper prints it, from a random start for each run, until
    the relative change of x is below 1e-8, for at most 500 iterations. ``amp_converged`` counts
    the runs that reach this; the others are ``amp_unbounded`` (the problem has no minimiser),
    ``amp_flicker`` (it has one, and the iterates stay bounded without converging) or
    ``amp_diverged`` (it has one, and the iterates blow up). Means are over converged runs,
    ``amp_iterations`` is their median.

    ``_theory`` is state evolution for N columns at the quantiles of the law, ``_limit`` that for
    infinitely many columns. ``_realised`` uses the scales of each data set's own columns and is a
    mean over the data sets that have a minimiser and a stable prediction. ``onavekl`` is an
    average under the model, not an ε.
    """

    kind: ClassVar[str] = "points"

    laws: tuple[str, ...] = ("uniform", "lognormal")
    designs: tuple[str, ...] = ("isotropic", "gram")
    lams: tuple[float, ...] = (0.1, 0.2, 0.5)
    sigmas: tuple[float, ...] = (0.01, 0.02, 0.05, 0.1, 0.2)
    _: KW_ONLY
    n_features: int = 1000

    @staticmethod
    def compute(parameters: Parameters) -> Result:
        """Solve, run Algorithm 1 and predict at each point of one data set, in grid order."""
        data = DataSet.draw(parameters)
        points = GridPoints.of(parameters, data)
        F, y = data.sample.F, data.sample.y
        runs = amp_paper_many(F, y, points.lam, points.etas, points.starts)
        # Close to the edge of existence, single solves are fast and the batch is slow.
        hard = runs.blown_up | (np.count_nonzero(runs.x, axis=0) > _HARD * F.shape[0])
        answers, x = certified(F, y, points.lam, points.sigma, points.groups, points.etas, hard)
        exists = answers == Answer.EXISTS
        E, rho_hat = _realised(parameters, data, points, exists)
        n = data.z.size
        return {
            "answer": answers.tolist(),
            "E": or_none(data.errors(x), exists),
            "rho_hat": or_none(np.count_nonzero(x, axis=0) / n, exists),
            "amp_converged": runs.converged.astype(int).tolist(),
            "amp_blown_up": runs.blown_up.astype(int).tolist(),
            "amp_iterations": runs.n_iter.tolist(),
            "amp_E": or_none(data.errors(np.where(runs.converged, runs.x, 0.0)), runs.converged),
            "amp_rho_hat": or_none(np.count_nonzero(runs.x, axis=0) / n, runs.converged),
            "E_realised": or_none(E, exists),
            "rho_hat_realised": or_none(rho_hat, exists),
        }

    def rows(self, case: Parameters, results: list[Result]) -> Iterator[Row]:
        model, k = model_of(case), 0
        lowest = self.sigmas.index(min(self.sigmas))
        for design, lam in product(self.designs, self.lams):
            noise = noise_from_name("design", design, 1.0)
            finite = tradeoff(model, lam, noise, self.sigmas, n_features=self.n_features)
            limit = tradeoff(model, lam, noise, self.sigmas)
            for here, there in zip(finite.to_dicts(), limit.to_dicts(), strict=True):
                point = at(results, k)
                realised = means(E=point["E_realised"], rho_hat=point["rho_hat_realised"])
                start = k - k % len(self.sigmas) + lowest
                grown = [_minus(result["E"][k], result["E"][start]) for result in results]
                yield {
                    "design": design, "alpha": self.alpha, "rho": self.rho, "lam": lam,
                    "sigma": self.sigmas[k % len(self.sigmas)],
                    **_measured(point), **means(E_growth=grown),
                    "E_theory": here["E"], "rho_hat_theory": here["rho_hat"],
                    "stability_theory": here["stability"], "status_theory": here["status"],
                    "E_limit": there["E"], "status_limit": there["status"],
                    "E_realised": realised["E"], "E_realised_se": realised["E_se"],
                    "rho_hat_realised": realised["rho_hat"],
                    "onavekl": here["onavekl"], "onavekl_paper": here["onavekl_paper"],
                }  # fmt: skip
                k += 1


class GridPoints(NamedTuple):
    """The K grid points of one data set, in the order design × λ × σ."""

    groups: np.ndarray
    """Index of the design of each point, shape (K,)."""
    lam: np.ndarray
    sigma: np.ndarray
    etas: np.ndarray
    """Noise, shape (N, K): σ times the noise of the design at level 1."""
    starts: tuple[np.ndarray, np.ndarray]
    """Random starts of Algorithm 1, each with its own random stream."""

    @classmethod
    def of(cls, parameters: Parameters, data: DataSet) -> GridPoints:
        """Lay out the grid of a unit, with its noise and its random starts."""
        law, designs = parameters["law"], parameters["designs"]
        points = list(product(range(len(designs)), parameters["lams"], parameters["sigmas"]))
        groups, lams, sigmas = (np.array(values) for values in zip(*points, strict=True))
        directions = np.stack([data.direction(design) for design in designs], axis=1)
        rngs = [
            stream(parameters, "start", law, designs[g], lam, sigma) for g, lam, sigma in points
        ]
        starts = paper_starts(parameters["n_features"], rngs)
        return cls(groups, lams, sigmas, directions[:, groups] * sigmas, starts)


def _realised(
    parameters: Parameters, data: DataSet, points: GridPoints, exists: np.ndarray
) -> tuple[np.ndarray, np.ndarray]:
    """E and ρ̂ predicted for exactly these columns; NaN without minimiser or stable prediction."""
    E, rho_hat = np.full((2, exists.size), np.nan)
    model = data.realised()
    for group, lam in product(range(len(parameters["designs"])), parameters["lams"]):
        at = np.flatnonzero(exists & (points.groups == group) & (points.lam == lam))
        if at.size:
            noise = noise_from_name("design", parameters["designs"][group], 1.0)
            table = tradeoff(model, lam, noise, points.sigma[at])
            stable = (table["status"] == "stable").to_numpy()
            E[at[stable]] = table["E"].to_numpy()[stable]
            rho_hat[at[stable]] = table["rho_hat"].to_numpy()[stable]
    return E, rho_hat


def _minus(value: float | None, other: float | None) -> float | None:
    return None if value is None or other is None else value - other


def _measured(point: dict[str, list[Any]]) -> Row:
    """Counts and means of the solver and of Algorithm 1 at one grid point."""
    answers = np.array(point["answer"])
    exists, unbounded = answers == Answer.EXISTS, answers == Answer.UNBOUNDED
    converged, blown_up = (np.array(point[name]) == 1 for name in ("amp_converged", "amp_blown_up"))
    iterations = np.array(point["amp_iterations"])[converged]
    counts = {
        "amp_converged": converged,
        "amp_unbounded": ~converged & unbounded,
        "amp_flicker": ~converged & exists & ~blown_up,
        "amp_diverged": ~converged & exists & blown_up,
    }
    return {
        "exists": int(exists.sum()),
        "unbounded": int(unbounded.sum()),
        "unsolved": int((answers == Answer.UNSOLVED).sum()),
        **means(E=point["E"], rho_hat=point["rho_hat"]),
        **{name: int(those.sum()) for name, those in counts.items()},
        **means(amp_E=point["amp_E"], amp_rho_hat=point["amp_rho_hat"]),
        "amp_iterations": float(np.median(iterations)) if iterations.size else None,
    }
