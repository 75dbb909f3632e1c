"""One data set with all its grid points: what a unit of `Points` computes."""

from __future__ import annotations

from itertools import product
from typing import Any, NamedTuple

import numpy as np

from privasso.experiments._certified import Answer, certified
from privasso.experiments._checks import or_none
from privasso.experiments._data import DataSet, stream
from privasso.experiments._unit import Result
from privasso.noise import design_from_name
from privasso.solvers._amp_paper_many import amp_paper_many, paper_starts
from privasso.theory import tradeoff

KIND = "points"
#: To be raised whenever the meaning of a result changes.
SCHEMA = 1
#: Share of the rows beyond which the number of active columns makes a point a hard one.
_HARD = 0.85


class Grid(NamedTuple):
    """The grid points of one data set, in the order design × λ × σ."""

    groups: np.ndarray
    """Index of the design of each point, shape (K,)."""
    lam: np.ndarray
    sigma: np.ndarray
    etas: np.ndarray
    """Noise, shape (N, K): σ times the noise of the design at level 1."""
    starts: tuple[np.ndarray, np.ndarray]
    """Random starts of Algorithm 1, each from a stream of its own."""


def arrange(parameters: dict[str, Any], data: DataSet) -> Grid:
    """Lay out the grid of a unit, with its noise and its random starts."""
    designs, seed, index = (parameters[name] for name in ("designs", "seed", "index"))
    points = list(product(range(len(designs)), parameters["lams"], parameters["sigmas"]))
    groups, lam, sigma = (np.array(values) for values in zip(*points, strict=True))
    directions = np.stack([data.direction(design) for design in designs], axis=1)
    rngs = [
        stream(seed, f"start {parameters['law']} {designs[g]} {point_lam!r} {level!r}", index)
        for g, point_lam, level in points
    ]
    starts = paper_starts(parameters["n_features"], rngs)
    return Grid(groups, lam, sigma, directions[:, groups] * sigma, starts)


def compute(parameters: dict[str, Any]) -> Result:
    """Solve, run Algorithm 1 and predict at each point of one data set, in grid order."""
    data = DataSet.draw(parameters)
    grid = arrange(parameters, data)
    F, y = data.sample.F, data.sample.y
    runs = amp_paper_many(F, y, grid.lam, grid.etas, grid.starts)
    # Close to the edge of existence, where single solves are fast and the batch is not.
    hard = runs.blown_up | (np.count_nonzero(runs.x, axis=0) > _HARD * F.shape[0])
    answers, x = certified(F, y, grid.lam, grid.sigma, grid.groups, grid.etas, hard)
    exists = answers == Answer.EXISTS
    E, rho_hat = _realised(parameters, data, grid, exists)
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


def _realised(
    parameters: dict[str, Any], data: DataSet, grid: Grid, exists: np.ndarray
) -> tuple[np.ndarray, np.ndarray]:
    """E and ρ̂ predicted for exactly these columns; NaN without minimiser or stable prediction."""
    E, rho_hat = np.full((2, exists.size), np.nan)
    model = data.realised()
    for group, lam in product(range(len(parameters["designs"])), parameters["lams"]):
        at = np.flatnonzero(exists & (grid.groups == group) & (grid.lam == lam))
        if at.size:
            design = design_from_name("design", parameters["designs"][group], 1.0)
            table = tradeoff(model, lam, design, grid.sigma[at])
            stable = (table["status"] == "stable").to_numpy()
            E[at[stable]] = table["E"].to_numpy()[stable]
            rho_hat[at[stable]] = table["rho_hat"].to_numpy()[stable]
    return E, rho_hat
