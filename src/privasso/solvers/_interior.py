"""An interior-point method, for problems close to the λ below which there is no minimiser.

The dual of min ½‖Fx‖² − bᵀx + λ‖x‖₁ is min ½‖w‖² subject to |b − Fᵀw| ≤ λ, and x is the multiplier
of its constraints. A primal-dual method (Mehrotra 1992) takes a few dozen steps, whatever the
condition of F is, each with the Cholesky factor of I + FΘFᵀ of the size of the rows. If no w
satisfies the constraints, the multipliers grow without bound along a ray. Otherwise the products of
multipliers and slacks tell the support, and equations on its columns are solved with a QR
factorisation, which does not square the condition as a Gram matrix would.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial

import numpy as np
from scipy.linalg import cho_factor, cho_solve, solve_triangular
from scipy.linalg.lapack import get_lapack_funcs

from privasso._clock import Clock
from privasso._threads import interruptible
from privasso.problem import Certificate, Problem, RaySearch, certify, violations
from privasso.solvers import _tuned as tuned
from privasso.solvers._working_set import dense

(_geqrf,) = get_lapack_funcs(("geqrf",), dtype=np.float64)
#: Columns that LAPACK transforms at once.
_BLOCK = 32


@dataclass(frozen=True, eq=False)
class Interior:
    """Where the method ended: at a point with its certificate, or with a ray; otherwise at neither.

    `x`: A point that the certificate proves to be the minimiser.
    """

    n_steps: int
    x: np.ndarray | None = None
    certificate: Certificate | None = None
    ray: np.ndarray | None = None


def interior_point(problem: Problem, *, tol: float, clock: Clock) -> Interior:
    """Minimise, or prove that there is no minimiser, within rounding."""
    rays = RaySearch(problem.op, problem.norms)
    method = _Method(problem)
    clear = list(tuned.INTERIOR_CLEAR)
    for step in range(1, tuned.INTERIOR_STEPS + 1):
        ended = not interruptible(method.step) or step == tuned.INTERIOR_STEPS
        if clock.expired():
            return Interior(step)
        while clear and (ended or method.progress <= clear[0]):
            clear.pop(0)
            found = _on_support(problem, *method.support(), tol=tol, clock=clock)
            if found is not None:
                return Interior(step, *found)
        if (ended or step % tuned.INTERIOR_LOOK == 0) and not problem.bounded:
            ray = rays.ray(problem, method.multipliers)
            if ray is not None:
                return Interior(step, ray=ray)
        if ended or not clear:
            return Interior(step)
    raise AssertionError("the last step ends the loop")


class _Method:
    """Iterates of the primal-dual method on columns of unit norm; A is F or its triangular factor.

    Row 0 of `s` and `z` belongs to b − Fᵀw ≤ λ, row 1 to −(b − Fᵀw) ≤ λ.
    """

    def __init__(self, problem: Problem) -> None:
        A = problem.op.toarray() / problem.norms
        if A.shape[0] > A.shape[1]:
            A = np.triu(interruptible(partial(_triangular, A)))
        self.A = np.ascontiguousarray(A)
        self.norms = problem.norms
        self.b, self.limit = problem.b / problem.norms, problem.lam / problem.norms
        start = 0.1 * max(float(np.abs(self.b).max()), float(self.limit.max()))
        self.w = np.zeros(len(A))
        self.s = np.maximum(self._room(self.b), start)
        self.z = np.full_like(self.s, start)
        self._first = self._mean()

    @property
    def multipliers(self) -> np.ndarray:
        """The coefficients x."""
        return (self.z[0] - self.z[1]) / self.norms

    @property
    def progress(self) -> float:
        """Mean product of slack and multiplier, relative to its first value."""
        return self._mean() / self._first

    def support(self) -> tuple[np.ndarray, np.ndarray]:
        """Columns whose multiplier is larger than its slack, and the signs of the coefficients.

        There are no more than the rank allows: those with the largest ratio of the two.
        """
        ratio = (self.z / self.s).max(axis=0)
        on = np.flatnonzero(ratio > 1.0)
        if on.size > len(self.A):
            on = np.sort(on[np.argsort(-ratio[on])[: len(self.A)]])
        return on, np.where(self.z[0, on] > self.z[1, on], 1.0, -1.0)

    def step(self) -> bool:
        """One predictor and corrector step; False if rounding errors leave no direction."""
        A, s, z = self.A, self.s, self.z
        missing = self._room(self.b - A.T @ self.w) - s
        stationary = self.w - A @ (z[0] - z[1])
        factor = self._factor()
        if factor is None:
            return False

        def direction(products: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
            change = (products - z * missing) / s
            dw = cho_solve(factor, A @ (change[0] - change[1]) - stationary, check_finite=False)
            moved = A.T @ dw
            ds = missing + np.stack([moved, -moved])
            return dw, ds, (products - z * ds) / s

        mean = self._mean()
        _, ds, dz = direction(-s * z)
        t = min(_to_boundary(s, ds), _to_boundary(z, dz))
        ahead = float(np.mean((s + t * ds) * (z + t * dz)))
        dw, ds, dz = direction((ahead / mean) ** 3 * mean - s * z - ds * dz)
        t = min(1.0, tuned.INTERIOR_SHORT * min(_to_boundary(s, ds), _to_boundary(z, dz)))
        if not np.isfinite(t) or t <= 0.0:
            return False
        self.w = self.w + t * dw
        self.s, self.z = s + t * ds, z + t * dz
        return bool(np.isfinite(self.w).all() and (self.s > 0.0).all() and (self.z > 0.0).all())

    def _factor(self) -> tuple[np.ndarray, bool] | None:
        """I + AΘAᵀ factorised, with a little more on its diagonal where rounding demands it.

        The direction is then not quite that of Newton's method, but leads the same way.
        """
        for ridge in tuned.INTERIOR_RIDGES:
            matrix = (self.A * (self.z / self.s).sum(axis=0)) @ self.A.T
            matrix.flat[:: len(matrix) + 1] += 1.0 + ridge * float(np.max(np.diag(matrix)))
            try:
                return cho_factor(matrix, overwrite_a=True, check_finite=False)
            except np.linalg.LinAlgError:
                continue
        return None

    def _room(self, c: np.ndarray) -> np.ndarray:
        return np.stack([self.limit - c, self.limit + c])

    def _mean(self) -> float:
        return float(np.mean(self.s * self.z))


def _to_boundary(values: np.ndarray, change: np.ndarray) -> float:
    falling = change < 0.0
    return float(np.min(-values[falling] / change[falling], initial=1.0))


def _on_support(
    problem: Problem, on: np.ndarray, signs: np.ndarray, *, tol: float, clock: Clock
) -> tuple[np.ndarray, Certificate] | None:
    """The minimiser whose support is nearly the given one, if a certificate proves it.

    Columns whose coefficient has the wrong sign leave the support, and columns that violate their
    condition join it, a few times.
    """
    lam, n = problem.lam, problem.shape[1]
    sign = np.zeros(n)
    sign[on] = signs
    seen: set[bytes] = set()
    for _ in range(tuned.EXCHANGES):
        on = np.flatnonzero(sign)
        if not 0 < on.size <= min(problem.shape) or clock.expired() or sign.tobytes() in seen:
            return None
        seen.add(sign.tobytes())
        norms = problem.norms[on]
        A = dense(problem.op.columns(on)) / norms
        R = interruptible(partial(_triangular, A))
        if np.abs(np.diag(R)).min() <= np.finfo(float).eps * np.abs(np.diag(R)).max():
            return None
        wanted = (problem.b[on] - lam * sign[on]) / norms
        z = np.zeros(on.size)
        for _ in range(tuned.INTERIOR_REFINEMENTS):
            z += _solved(R, wanted - A.T @ (A @ z))
        x = np.zeros(n)
        x[on] = z / norms
        w = A @ z
        delta = A @ _solved(R, lam * sign[on] / norms)
        del A, R  # before the next round makes others
        fitted, q = problem.op.pair_rmatvec(w, delta)
        c = problem.b - fitted
        wrong = on[z * sign[on] <= 0.0]
        if wrong.size == 0:
            certificate = certify(problem, x, w, c, (delta, q), anchors=False)
            if certificate.proves(tol):
                return x, certificate
        excess = violations(c, x, lam)
        excess[on] = 0.0
        joining = np.flatnonzero(excess > 0.1 * tol * lam)
        if wrong.size == 0 and joining.size == 0:
            return None
        sign[wrong] = 0.0
        most = joining[np.argsort(-excess[joining])[: min(problem.shape) - on.size + wrong.size]]
        sign[most] = np.sign(c[most])
    return None


def _triangular(A: np.ndarray) -> np.ndarray:
    """R of A = QR, with other numbers below its diagonal."""
    rows, columns = A.shape
    factors, *_ = _geqrf(np.array(A, order="F"), lwork=_BLOCK * max(columns, 1), overwrite_a=1)
    return factors[: min(rows, columns)]


def _solved(R: np.ndarray, rhs: np.ndarray) -> np.ndarray:
    """RᵀR z = rhs."""
    half = solve_triangular(R, rhs, trans=1, check_finite=False)
    return solve_triangular(R, half, check_finite=False)
