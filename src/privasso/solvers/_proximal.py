"""Proximal-point iteration with semismooth Newton steps, for problems that are hard to solve.

Coordinate descent is very slow near interpolation (as many active columns as rows), on strongly
correlated columns, or with penalties that span many orders of magnitude. The proximal-point
iteration

    z⁺ = argmin ½zᵀHz − bᵀz + Σ w_i|z_i| + ‖z − z_k‖²/(2σ)

has well conditioned subproblems with a smooth dual: with u standing for the point Fu of the range
of F, minimise

    ψ(u) = ½uᵀHu + ‖soft(z_k + σ(b − Hu), σw)‖²/(2σ),

whose generalised Hessian I + σF_JF_Jᵀ involves only the active set J. Newton's method on ψ
ends after a few steps, and z⁺ is the thresholded vector. As σ grows the outer iteration
converges superlinearly (Li, Sun & Toh 2018).

If the objective is unbounded below, the steps z⁺ − z_k tend to a multiple of the smallest vector
by which the optimality conditions must be violated, and that vector is a ray. So the iteration
finds either a minimiser or the proof that there is none.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator

import numpy as np
from scipy.linalg import get_lapack_funcs

from privasso._blas import factorise_lower
from privasso._clock import Clock
from privasso.solvers import _tuned as tuned
from privasso.solvers._newton import cholesky_solve, copy_submatrix


def proximal_points(
    H: np.ndarray,
    b: np.ndarray,
    weights: np.ndarray,
    z: np.ndarray,
    *,
    clock: Clock,
) -> Iterator[tuple[np.ndarray, np.ndarray]]:
    """Yield z_{k+1} and the step z_{k+1} − z_k, a limited number of times."""
    sigma, ceiling, at_ceiling = tuned.FIRST_SIGMA, tuned.LAST_SIGMA, 0
    for outer in range(tuned.PROXIMAL_POINTS):
        accuracy = 0.1 if outer < 4 else 0.01
        new, solved = _proximal_point(H, b, weights, z, sigma, accuracy, clock)
        if not solved:  # σ was too large for a start this far away
            if sigma <= tuned.LEAST_SIGMA or clock.expired():
                return
            ceiling, at_ceiling = sigma / tuned.SIGMA_GROWTH, 0
            sigma = max(sigma / tuned.SIGMA_GROWTH**2, tuned.LEAST_SIGMA)
            continue
        at_ceiling += sigma >= ceiling
        if at_ceiling == tuned.SIGMA_TRUST:
            ceiling, at_ceiling = min(ceiling * tuned.SIGMA_GROWTH, tuned.LAST_SIGMA), 0
        yield new, new - z
        z, sigma = new, min(sigma * tuned.SIGMA_GROWTH, ceiling)


def _proximal_point(
    H: np.ndarray,
    b: np.ndarray,
    weights: np.ndarray,
    centre: np.ndarray,
    sigma: float,
    accuracy: float,
    clock: Clock,
) -> tuple[np.ndarray, bool]:
    """Semismooth Newton on ψ from u = centre: the last point, and whether it is accurate.

    A point is also accurate if the steps have become as small as the rounding errors of ψ.
    """

    def primal(Hu: np.ndarray) -> np.ndarray:
        field = centre + sigma * (b - Hu)
        return field - np.clip(field, -sigma * weights, sigma * weights)

    u: np.ndarray = centre.copy()
    Hu: np.ndarray = H @ u
    z = primal(Hu)
    invisible = 0
    for iteration in range(tuned.PROXIMAL_NEWTON):
        e = z - u  # −∇ψ is the point Fe
        He = H @ e
        residual = np.sqrt(max(float(e @ He), 0.0))
        moved = float(np.linalg.norm(z - centre)) / np.sqrt(sigma)
        if residual == 0.0 or (iteration > 0 and residual <= accuracy * min(1.0, moved)):
            return z, True
        if invisible == tuned.MOST_INVISIBLE:
            return z, True
        if clock.expired():
            break
        active = np.flatnonzero(z)
        du = e
        if active.size:
            A = np.empty((active.size, active.size))
            copy_submatrix(H, active, A)
            A *= sigma
            A.flat[:: active.size + 1] += 1.0
            if not factorise_lower(A):  # σ is too large for the rounding errors of H
                break
            du[active] -= sigma * cholesky_solve(A, He[active])
            del A  # large; the next one need not be there beside it
        Hdu = H @ du
        slope = -float(He @ du)
        psi = 0.5 * float(u @ Hu) + float(z @ z) / (2 * sigma)
        invisible += -slope <= tuned.INVISIBLE * psi
        t = _armijo(lambda t: _psi(u + t * du, Hu + t * Hdu, primal, sigma), psi, slope)  # noqa: B023
        u = u + t * du
        Hu = H @ u
        z = primal(Hu)
    return z, False


def _psi(
    u: np.ndarray, Hu: np.ndarray, primal: Callable[[np.ndarray], np.ndarray], sigma: float
) -> float:
    z = primal(Hu)
    return 0.5 * float(u @ Hu) + float(z @ z) / (2 * sigma)


def _armijo(psi_at: Callable[[float], float], psi: float, slope: float) -> float:
    """Halve the step until ψ decreases enough, which a full step mostly does."""
    t = 1.0
    while t > 1e-6 and psi_at(t) > psi + 1e-4 * t * slope + 1e-14 * abs(psi):
        t *= 0.5
    return t


(_pstrf,) = get_lapack_funcs(("pstrf",), dtype=np.float64)


def to_vertex(
    H: np.ndarray, active: np.ndarray, descent: np.ndarray, z: np.ndarray
) -> np.ndarray | None:
    """Move z until the columns of its support are independent; None if it falls for ever.

    If the columns of the support are dependent, as with one-hot columns that sum to one, the
    minimiser is not unique, and the equations of the support have no unique solution. Along a
    null direction v of H on the support the objective is linear as long as no coefficient
    changes its sign. So one can move along v, the way the objective falls, until a coefficient
    is zero, and leave its column out. After as many such moves as there are null directions the
    columns are independent.

    - `H` (N, N): gram matrix of columns of unit norm.
    - `active` (n,): the support of z.
    - `descent` (n,): minus the gradient of the linear part, b − w·sgn(z), on the support.
    - `z` (n,): coefficients of the support, none of them zero.
    """
    null = _null_directions(H, active)
    scale = float(np.abs(descent).max(initial=0.0))
    z = z.copy()
    while null.shape[1]:
        v = null[:, 0] / np.abs(null[:, 0]).max()
        slope = float(descent @ v)
        if slope < 0.0:
            v = -v
        shrinking = v * z < 0.0
        if not shrinking.any() and abs(slope) <= tuned.NULL * scale * z.size:
            v = -v  # the objective is constant along v
            shrinking = v * z < 0.0
        if not shrinking.any():
            return None
        steps = np.full(z.size, np.inf)
        steps[shrinking] = -z[shrinking] / v[shrinking]
        first = int(np.argmin(steps))
        z += steps[first] * v
        z[first] = 0.0
        null, row = null[:, 1:], null[first, 1:] / v[first]
        for start in range(
            0, z.size, tuned.NULL_ROWS
        ):  # without another matrix of the size of `null`
            part = slice(start, start + tuned.NULL_ROWS)
            null[part] -= np.outer(v[part], row)
        null[first] = 0.0
    return z


def _null_directions(H: np.ndarray, active: np.ndarray) -> np.ndarray:
    """A basis of the null space of H on the active set, one direction per column.

    Cholesky factorisation with pivoting takes one column after another, each time the one that is
    furthest from the span of those before. Those that are left depend on the others, H₁₁u = h₁ⱼ,
    and (−u, 1) is a null direction.
    """
    n = active.size
    A = np.empty((n, n))
    copy_submatrix(H, active, A)
    factor, order, rank, _ = _pstrf(A.T, tol=tuned.NULL, lower=1, overwrite_a=1)
    del A  # its memory is that of the factor
    U = factor.T  # upper triangular: U₁₁u = U₁₂ is solved in the place of U₁₂
    for i in range(rank - 1, -1, -1):
        U[i, rank:] -= U[i, i + 1 : rank] @ U[i + 1 : rank, rank:]
        U[i, rank:] /= U[i, i]
    u = U[:rank, rank:].copy()
    del factor, U  # large, and not needed any longer
    null = np.zeros((n, n - rank))
    null[order[:rank] - 1] = np.negative(u, out=u)
    null[order[rank:] - 1, np.arange(n - rank)] = 1.0
    return null
