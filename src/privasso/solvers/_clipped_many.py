"""Many clipped problems on one F: for several noise vectors, or along a path in λ."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any

import numpy as np

from privasso._validation import positive_float, real_array
from privasso.problem import ClippedProblem
from privasso.solvers._clipped import minimise_clipped, starting_point
from privasso.solvers._clipped_face import Face
from privasso.solvers._many import Solutions
from privasso.solvers._solution import Solution, Status, raise_on_failure


def solve_clipped_many(
    problem: ClippedProblem,
    etas: Any = None,
    lams: Any = None,
    *,
    tol: float = 1e-12,
    x0: Any = None,
    throw: bool = True,
    expired: Callable[[], bool] = lambda: False,
) -> Solutions:
    """Minimise a `ClippedProblem` for K noise vectors, K values of λ, or K pairs of both.

    Each problem starts from the minimiser of the one before, with the columns that it read and
    with its matrix of second derivatives, which changes only by the rows that are clipped in one
    of the two and not in the other. A path in λ is fastest from large to small values.

    Parameters
    ----------
    problem : ClippedProblem
        Gives everything but what varies.
    etas : array_like, shape (N, K), optional
        Noise vectors; that of the problem by default.
    lams : array_like, shape (K,), optional
        Values of λ; that of the problem by default.
    tol, throw : as in `solve_clipped`.
    x0 : array_like, shape (N,), optional
        Where the first problem starts.
    expired : callable
        Asked before every step whether to stop.

    Examples
    --------
    >>> import numpy as np, privasso as pv
    >>> from privasso.problem import ClippedProblem, Huber
    >>> from privasso.solvers import solve_clipped_many
    >>> s = pv.Model(alpha=2.0).sample(n_features=100, rng=0)
    >>> problem = ClippedProblem(s.F, s.y, 0.1, loss=Huber(0.2), ridge=0.1 * s.v)
    >>> many = solve_clipped_many(problem, pv.Gram(0.05).draw(s.v, rng=1, size=8))
    >>> many.x.shape, bool((many.distance < 1e-13).all())
    ((100, 8), True)
    >>> solve_clipped_many(problem, lams=[1.0, 0.1]).x.shape
    (100, 2)
    """
    tol = positive_float("tol", tol)
    problems = list(_problems(problem, etas, lams))
    x, face = starting_point(problem, x0), None
    found: list[Solution] = []
    for one in problems:
        solution, face = minimise_clipped(one, x, _fitting(face, x), tol, expired)
        found.append(raise_on_failure(solution) if throw else solution)
        x = solution.x
    return Solutions(
        x=np.stack([one.x for one in found], axis=1),
        status=np.array([one.status for one in found], dtype=object),
        kkt=np.array([one.kkt for one in found]),
        kkt_beyond_rounding=np.array([one.kkt_beyond_rounding for one in found]),
        gap=np.array([one.gap for one in found]),
        n_iter=np.array([one.n_iter for one in found]),
        messages={k: s.message for k, s in enumerate(found) if s.status is not Status.CONVERGED},
        distance=np.array([one.distance for one in found]),
    )


def _problems(problem: ClippedProblem, etas: Any, lams: Any) -> Iterable[ClippedProblem]:
    n = problem.shape[1]
    if etas is None and lams is None:
        raise ValueError("pass etas, lams or both")
    columns = None if etas is None else real_array("etas", etas, shape=(n, None)).T
    values = None if lams is None else real_array("lams", lams, ndim=1)
    if columns is not None and values is not None and len(columns) != len(values):
        raise ValueError(f"lams has {len(values)} entries for {len(columns)} columns of etas")
    count = len(values) if columns is None else len(columns)  # type: ignore[arg-type]
    for k in range(count):
        one = problem if columns is None else problem.with_eta(columns[k])
        yield one if values is None else one.with_lam(float(values[k]))


def _fitting(face: Face | None, x: np.ndarray) -> Face | None:
    """The face of the last problem, unless most of its columns are of no use by now."""
    if face is None or face.whole:
        return face
    return face if face.index.size <= 4 * max(64, int(np.count_nonzero(x))) else None
