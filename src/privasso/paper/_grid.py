"""Grid points on simulated data: certified solver, literal Algorithm 1, and theory."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import suppress
from dataclasses import KW_ONLY, dataclass
from enum import IntEnum
from itertools import product
from typing import ClassVar, NamedTuple

import numpy as np

from privasso.noise import noise_from_name
from privasso.operators import as_operator
from privasso.paper import _experiment as sim
from privasso.problem import Problem, ProgrammeError, is_ray, linear_programme
from privasso.solvers import (
    Solution,
    Status,
    amp_paper_many,
    paper_starts,
    solve_many,
    solve_problem,
)
from privasso.theory import tradeoff

#: Points with more active columns than this share of the rows are solved one by one.
_HARD = 0.85
#: Size M·N² up to which the linear programme, which then takes some seconds, is tried where the
#: solver finds no answer.
_LP_LIMIT = 1e9


class Answer(IntEnum):
    """What is proved about a grid point: a minimiser exists, none exists, or neither is known."""

    EXISTS = 0
    UNBOUNDED = 1
    UNSOLVED = 2


_ANSWERS = {Status.CONVERGED: Answer.EXISTS, Status.UNBOUNDED: Answer.UNBOUNDED}


@dataclass(frozen=True)
class GridExperiment(sim.Experiment):
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
    def compute(parameters: sim.Parameters) -> sim.Result:
        """Solve, run Algorithm 1 and predict at each point of one data set, in grid order."""
        data = sim.DataSet.draw(parameters)
        points = GridPoints.of(parameters, data)
        F, y = data.sample.F, data.sample.y
        runs = amp_paper_many(F, y, points.lam, points.etas, points.starts)
        # Close to the edge of existence, single solves are fast and the batch is slow.
        hard = runs.blown_up | (np.count_nonzero(runs.x, axis=0) > _HARD * F.shape[0])
        answers, x = certified(F, y, points, hard)
        exists = answers == Answer.EXISTS
        E, rho_hat = _realised(parameters, data, points, exists)
        n, there = data.z.size, runs.converged
        return {
            "answer": answers.tolist(),
            "E": sim.or_none(data.errors(x), exists),
            "rho_hat": sim.or_none(np.count_nonzero(x, axis=0) / n, exists),
            "amp_converged": there.astype(int).tolist(),
            "amp_blown_up": runs.blown_up.astype(int).tolist(),
            "amp_iterations": runs.n_iter.tolist(),
            "amp_E": sim.or_none(data.errors(np.where(there, runs.x, 0.0)), there),
            "amp_rho_hat": sim.or_none(np.count_nonzero(runs.x, axis=0) / n, there),
            "E_realised": sim.or_none(E, exists),
            "rho_hat_realised": sim.or_none(rho_hat, exists),
        }

    def rows(self, case: sim.Parameters, results: list[sim.Result]) -> Iterator[sim.Row]:
        model, k = sim.model_of(case), 0
        lowest = self.sigmas.index(min(self.sigmas))
        for design, lam in product(self.designs, self.lams):
            noise = noise_from_name("design", design, 1.0)
            finite = tradeoff(model, lam, noise, self.sigmas, n_features=self.n_features)
            limit = tradeoff(model, lam, noise, self.sigmas)
            for here, there in zip(finite.to_dicts(), limit.to_dicts(), strict=True):
                point = sim.at(results, k)
                realised = sim.means(E=point["E_realised"], rho_hat=point["rho_hat_realised"])
                start = k - k % len(self.sigmas) + lowest
                grown = [_minus(result["E"][k], result["E"][start]) for result in results]
                yield {
                    "design": design, "alpha": self.alpha, "rho": self.rho, "lam": lam,
                    "sigma": self.sigmas[k % len(self.sigmas)],
                    **_measured(point), **sim.means(E_growth=grown),
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
    def of(cls, parameters: sim.Parameters, data: sim.DataSet) -> GridPoints:
        """Lay out the grid of a unit, with its noise and its random starts."""
        law, designs = parameters["law"], parameters["designs"]
        points = list(product(range(len(designs)), parameters["lams"], parameters["sigmas"]))
        groups, lams, sigmas = (np.array(values) for values in zip(*points, strict=True))
        directions = np.stack([data.direction(design) for design in designs], axis=1)
        rngs = [
            sim.stream(parameters, "start", law, designs[g], lam, sigma) for g, lam, sigma in points
        ]
        starts = paper_starts(parameters["n_features"], rngs)
        return cls(groups, lams, sigmas, directions[:, groups] * sigmas, starts)


def _realised(
    parameters: sim.Parameters, data: sim.DataSet, points: GridPoints, exists: np.ndarray
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


def _measured(point: sim.Result) -> sim.Row:
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
        **sim.means(E=point["E"], rho_hat=point["rho_hat"]),
        **{name: int(those.sum()) for name, those in counts.items()},
        **sim.means(amp_E=point["amp_E"], amp_rho_hat=point["amp_rho_hat"]),
        "amp_iterations": float(np.median(iterations)) if iterations.size else None,
    }


def certified(
    F: np.ndarray, y: np.ndarray, points: GridPoints, hard: np.ndarray
) -> tuple[np.ndarray, np.ndarray]:
    """Return the answers (K,) and the minimisers (N, K), NaN where there is none.

    With η = σz, the objective has no minimiser exactly when some d with Fd = 0 has
    σ zᵀd + λ‖d‖₁ < 0. Such a ray d proves this for every point with the same data set and direction
    z and a ratio σ/λ > ‖d‖₁/(−zᵀd). The costly search for a ray is therefore made once or twice,
    near the edge; at every other point the ray is only verified.

    Points of one group have noise of the same direction: η_k = σ_k z. At the `hard` points a ray is
    likely; they are solved first and one by one, which changes the time this takes, not the
    answers.
    """
    lams, etas = points.lam, points.etas
    answers, open_ = np.full(lams.size, Answer.UNSOLVED), np.ones(lams.size, dtype=bool)
    x = np.full((F.shape[1], lams.size), np.nan)
    op = as_operator(F)
    squares, b = op.squares_and_rmatvec(y)
    problems = [
        Problem(op, b - eta, lam, squares=squares)
        for eta, lam in zip(etas.T, lams.tolist(), strict=True)
    ]

    def record(k: int, solution: Solution) -> None:
        answers[k] = _ANSWERS.get(solution.status, Answer.UNSOLVED)
        x[:, k] = solution.x if answers[k] == Answer.EXISTS else np.nan
        open_[k] = False
        if solution.ray is not None:
            beyond = open_ & (points.groups == points.groups[k])
            for j in np.flatnonzero(beyond).tolist():
                if is_ray(problems[j], solution.ray):
                    answers[j], open_[j] = Answer.UNBOUNDED, False

    # A ray that is found at a small ratio decides more of the other points.
    for k in np.argsort(points.sigma / lams, kind="stable").tolist():
        if hard[k] and open_[k]:
            record(k, solve_problem(problems[k], throw=False))
    left = np.flatnonzero(open_)
    if left.size:
        many = solve_many(F, y, lams[left], etas[:, left], throw=False)
        answers[left] = [_ANSWERS.get(status, Answer.UNSOLVED) for status in many.status]
        exists = answers[left] == Answer.EXISTS
        x[:, left[exists]] = many.x[:, exists]
    for k in np.flatnonzero(answers == Answer.UNSOLVED).tolist():
        if _has_ray(problems[k]):
            answers[k] = Answer.UNBOUNDED
    return answers, x


def _has_ray(problem: Problem) -> bool:
    """Whether the linear programme finds a ray; for points too close to the edge for the solver."""
    m, n = problem.shape
    if m < n and m * float(n) * n <= _LP_LIMIT:
        with suppress(ProgrammeError):
            return is_ray(problem, linear_programme(problem).d)
    return False
