"""K perturbed LASSOs on one F in one batched run: many noise vectors, or a path in λ."""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np
from numpy.typing import ArrayLike

from privasso._clock import Clock
from privasso._types import MatrixLike
from privasso._validation import positive_float, real_array
from privasso.operators import Operator, as_operator, finite_squares
from privasso.solvers._batch import Batch
from privasso.solvers._shared import LinearTerms
from privasso.solvers._solution import ComparesFields, Solution, Status, raise_on_failure


@dataclass(frozen=True, eq=False)
class Solutions(ComparesFields):
    """Answers to K problems that share F; the attributes are those of `Solution`, once per problem.

    Two of these are equal (``==``) if all their attributes are, to the last digit.

    Attributes
    ----------
    x : ndarray, shape (N, K)
        One column per problem, as in `Solution`: the minimiser where the status is CONVERGED, NaN
        where it is UNBOUNDED, otherwise the last iterate.
    status : ndarray of Status, shape (K,)
    kkt, kkt_beyond_rounding, gap : ndarray, shape (K,)
    n_iter : ndarray, shape (K,)
    rays : dict
        For each unbounded problem its ray.
    messages : dict
        For each problem that did not converge what happened and what to do.
    rounding_limited : ndarray of bool, shape (K,)
        As in `Solution`.

    Examples
    --------
    >>> import numpy as np, privasso as pv
    >>> found = pv.solve_path(np.eye(2), [3.0, 0.5], [2.0, 1.0])
    >>> found.x
    array([[1., 2.],
           [0., 0.]])
    >>> [status.name for status in found.status]
    ['CONVERGED', 'CONVERGED']
    """

    x: np.ndarray = field(repr=False)
    status: np.ndarray
    kkt: np.ndarray = field(repr=False)
    kkt_beyond_rounding: np.ndarray = field(repr=False)
    gap: np.ndarray = field(repr=False)
    n_iter: np.ndarray = field(repr=False)
    rays: dict[int, np.ndarray] = field(repr=False)
    messages: dict[int, str] = field(repr=False)
    rounding_limited: np.ndarray = field(repr=False)


def solve_many(
    F: MatrixLike,
    y: ArrayLike,
    lam: ArrayLike,
    etas: ArrayLike | None = None,
    *,
    tol: float = 1e-8,
    throw: bool = True,
    time_limit: float | None = None,
) -> Solutions:
    """Minimise ½‖y − Fx‖² + λ_k‖x‖₁ + η_kᵀx for k = 1…K.

    Parameters
    ----------
    F, y : as in `solve`.
    lam : float or array_like, shape (K,)
        One λ for all problems, or one for each.
    etas : array_like, shape (N, K), optional
        Noise vectors; none for a path in λ alone.
    tol, throw : as in `solve`.
        With `throw`, an error is raised for the first problem that fails.
    time_limit : float, optional
        Seconds after which the problems that are not solved are left with `Status.TIME_LIMIT`.
        Problems that need a solve of their own come in the order of decreasing λ.

    Examples
    --------
    >>> import privasso as pv
    >>> s = pv.Model().sample(n_features=300, rng=0)
    >>> etas = pv.Gram(0.05).draw(s.v, rng=1, size=8)
    >>> many = pv.solve_many(s.F, s.y, 0.1, etas)
    >>> many.x.shape, bool((many.kkt < 1e-8).all())
    ((300, 8), True)
    """
    clock = Clock(time_limit)
    op = as_operator(F)
    m, n = op.shape
    y = real_array("y", y, shape=(m,))
    if etas is None:
        etas = np.zeros((n, np.size(lam)))
    etas = real_array("etas", etas, shape=(n, None))
    lams = _one_for_each(lam, etas.shape[1])
    squares, b = op.squares_and_rmatvec(y)
    finite_squares(squares)
    noiseless = None if etas.any() else y
    terms = LinearTerms(etas, b)
    return _solved(op, terms, lams, squares, tol, throw, clock, dual_point=noiseless)


def solve_problems(
    F: MatrixLike,
    B: ArrayLike,
    lam: ArrayLike,
    *,
    tol: float = 1e-8,
    throw: bool = True,
    time_limit: float | None = None,
) -> Solutions:
    """Minimise ½‖Fx‖² − b_kᵀx + λ_k‖x‖₁ for k = 1…K, b_k the columns of B.

    This is `solve_many` for callers who hold b_k = Fᵀy − η_k, but neither labels nor noise.

    Parameters
    ----------
    F : as in `solve`.
    B : array_like, shape (N, K)
        The linear terms; one of shape (N, 1) serves for all λ.
    lam : float or array_like, shape (K,)
        One λ for all problems, or one for each.
    tol, throw, time_limit : as in `solve_many`.

    Examples
    --------
    >>> import numpy as np
    >>> from privasso.solvers import solve_problems
    >>> solve_problems(np.eye(2), [[3.0], [-2.0]], lam=[1.0, 2.5]).x
    array([[ 2. ,  0.5],
           [-1. ,  0. ]])
    """
    clock = Clock(time_limit)
    op = as_operator(F)
    B = real_array("B", B, shape=(op.shape[1], None))
    if B.shape[1] == 1:
        B = np.broadcast_to(B, (B.shape[0], np.size(lam)))
    lams = _one_for_each(lam, B.shape[1])
    squares = finite_squares(op.column_squares())
    return _solved(op, LinearTerms(B), lams, squares, tol, throw, clock)


def _solved(
    op: Operator,
    terms: LinearTerms,
    lams: np.ndarray,
    squares: np.ndarray,
    tol: float,
    throw: bool,
    clock: Clock,
    *,
    dual_point: np.ndarray | None = None,
) -> Solutions:
    batch = Batch(
        op,
        squares,
        terms,
        lams,
        positive_float("tol", tol),
        clock,
        bounded=dual_point is not None,
        dual_point=dual_point,
    )
    batch.run()
    kkt, beyond, gap = batch.evidence.T
    limited = (batch.status == Status.CONVERGED) & (kkt > batch.tol)
    solutions = Solutions(
        batch.x.T, batch.status, kkt, beyond, gap, batch.n_iter, batch.rays, batch.messages, limited
    )
    if throw:
        _raise_first(solutions)
    return solutions


def _one_for_each(lam: ArrayLike, n_rhs: int) -> np.ndarray:
    """λ of each problem, from one number or one per problem."""
    lams = real_array("lam", lam)
    if lams.ndim > 1 or not (lams > 0).all():
        raise ValueError("lam must be a positive number or a vector of positive numbers")
    if lams.size not in (1, n_rhs):
        raise ValueError(f"lam has {lams.size} entries for {n_rhs} problems")
    return np.broadcast_to(lams.reshape(-1), (n_rhs,)).copy()


def _raise_first(solutions: Solutions) -> None:
    failed = [k for k, status in enumerate(solutions.status) if status is not Status.CONVERGED]
    if not failed:
        return
    k = failed[0]
    count = f"{len(failed)} of {solutions.status.size} problems failed; problem {k}: "
    raise_on_failure(
        Solution(
            x=solutions.x[:, k],
            status=solutions.status[k],
            n_iter=int(solutions.n_iter[k]),
            n_passes=float("nan"),
            kkt=float(solutions.kkt[k]),
            kkt_beyond_rounding=float(solutions.kkt_beyond_rounding[k]),
            gap=float(solutions.gap[k]),
            method="auto",
            ray=solutions.rays.get(k),
            message=count + solutions.messages.get(k, ""),
        )
    )


def solve_path(
    F: MatrixLike,
    y: ArrayLike,
    lams: ArrayLike,
    eta: ArrayLike | None = None,
    *,
    tol: float = 1e-8,
    throw: bool = True,
    time_limit: float | None = None,
) -> Solutions:
    """Minimise ½‖y − Fx‖² + λ_k‖x‖₁ + ηᵀx for λ_1, …, λ_K.

    Each solve starts from the minimiser at the next larger λ, on the columns that were needed
    there, and has a certificate of its own. Where the columns look independent, all λ share
    batched AMP and one Gram matrix instead, as in `solve_many`.

    Parameters
    ----------
    F, y, eta : as in `solve`.
    lams : array_like, shape (K,)
        Values of λ > 0, in any order.
    tol, throw, time_limit : as in `solve_many`.

    Examples
    --------
    >>> import numpy as np, privasso as pv
    >>> pv.solve_path(np.eye(2), [3.0, -2.0], [1.0, 2.5]).x
    array([[ 2. ,  0.5],
           [-1. ,  0. ]])
    """
    op = as_operator(F)
    lams = real_array("lams", lams, ndim=1)
    n = op.shape[1]
    eta = np.zeros(n) if eta is None else real_array("eta", eta, shape=(n,))
    etas = np.broadcast_to(eta[:, None], (n, lams.size))
    return solve_many(op, y, lams, etas, tol=tol, throw=throw, time_limit=time_limit)
