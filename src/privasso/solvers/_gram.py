"""The LASSO on a few columns, in Gram form.

    minimise ½zᵀHz − bᵀz + Σ w_i|z_i|,

H the Gram matrix of the columns at unit norm, z and the weights w in the same units, so
that nothing here depends on the scales of the columns. If the support is nearly known, two or
three factorisations are enough (`_newton`); if not, the proximal-point iteration of `_proximal`
follows.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial

import numpy as np
from numpy.typing import ArrayLike

from privasso._blas import factorise_lower, one_thread
from privasso._clock import Clock
from privasso._threads import interruptible, n_threads, run
from privasso._validation import positive_float, real_array
from privasso.solvers import _tuned as tuned
from privasso.solvers._newton import (
    cholesky_solve,
    copy_submatrix,
    descend,
    largest_violation,
    newton_steps,
    residual,
)
from privasso.solvers._proximal import proximal_points, to_vertex


@dataclass(frozen=True, eq=False)
class Factor:
    """H on an active set as LLᵀ, in single or double precision.

    L is the lower triangle of an array of which the rest means nothing.
    """

    active: np.ndarray
    L: np.ndarray

    def solve(self, rhs: np.ndarray) -> np.ndarray:
        """Solve H_AA p = rhs."""
        return cholesky_solve(self.L, rhs)


def submatrix(H: np.ndarray, index: np.ndarray, dtype: type = np.float64) -> np.ndarray:
    """H[index][:, index], several times faster than with NumPy's indexing."""
    out = np.empty((index.size, index.size), dtype)
    copy_submatrix(H, index, out)
    return out


def factorise(H: np.ndarray, active: np.ndarray) -> Factor | None:
    """Factorise H on the active set; None if it is singular to working precision."""
    L = submatrix(H, active)
    if not factorise_lower(L) or np.diagonal(L).min(initial=1.0) <= tuned.LEAST_PIVOT:
        return None
    return Factor(active, L)


@dataclass(frozen=True, eq=False)
class GramResult:
    """Outcome of `Subproblem.minimise`.

    - `z`: the minimiser, or the best iterate.
    - `factor`: the factor of H on the support of z, if one was computed.
    - `ray`: what `find_ray` returned, if it proved the whole problem unbounded.
    - `falling`: whether the iteration stopped because the objective seems to fall for ever.
    """

    z: np.ndarray
    factor: Factor | None = None
    ray: np.ndarray | None = None
    falling: bool = False


class Subproblem:
    """The problem on one working set.

    - `H`, `b`, `weights`: see the module.
    - `rank`: largest rank H can have; an active set larger than that is not factorised.
    - `find_ray`: given a direction along which the objective seems to fall for ever, returns a ray
      of the whole problem, or None. Without it no ray is looked for, and such a direction ends the
      iteration.
    - `bounded`: whether there is a minimiser for certain, so that no direction ends the iteration.
    """

    def __init__(
        self,
        H: np.ndarray,
        b: np.ndarray,
        weights: np.ndarray,
        rank: int,
        find_ray: Callable[[np.ndarray], np.ndarray | None] | None = None,
        *,
        bounded: bool = False,
    ) -> None:
        self.H, self.b, self.weights = H, b, weights
        self._rank, self._find_ray, self._bounded = rank, find_ray, bounded

    def minimise(
        self,
        z: np.ndarray,
        tol: float,
        *,
        clock: Clock,
        roughly: bool = False,
    ) -> GramResult:
        """Minimise from z until no violation exceeds tol times its weight, or rounding.

        When the clock has expired, the result is the best iterate so far. `roughly` does not
        insist: a few descent and Newton steps, wherever they lead.
        """
        z = z.copy()
        if roughly:
            found = self._newton(z, tol, np.float32, tuned.GRAM_ROUGH_ROUNDS)
            return found or GramResult(z)
        found = self._newton(z, tol, np.float32, 4) or self._newton(z, tol)
        for _ in range(tuned.VERTICES):
            if found is not None or clock.expired():
                break
            active = np.flatnonzero(z)
            if not 0 < active.size <= tuned.MOST_DEPENDENT:
                break
            if active.size <= self._rank and factorise(self.H, active) is not None:
                break
            z = self._vertex(z, active)
            found = self._newton(z, tol)
        if found is not None:
            return found
        best, best_violation, factor, stale = z, np.inf, None, 0
        for point, step in proximal_points(self.H, self.b, self.weights, z, clock=clock):
            z, factor_here, exact = self._exact_on_support(point, tol)
            if exact:
                return GramResult(z, factor_here)
            violation = float(largest_violation(self.b, self.weights, z, self.b - self.H @ z))
            stale = 0 if violation < 0.5 * best_violation else stale + 1
            if violation < best_violation:
                best, best_violation, factor = z, violation, factor_here
            if violation <= tol or stale > tuned.GRAM_PATIENCE or clock.expired():
                break
            if self._bounded:
                continue
            falls = float(self.b @ step) > float(self.weights @ np.abs(step))
            flat = float(step @ (self.H @ step)) < 1e-2 * float(step @ step)
            if falls and flat:
                if self._find_ray is None:
                    return GramResult(best, factor, falling=True)
                ray = self._find_ray(step)
                if ray is not None:
                    return GramResult(z, ray=ray)
        return GramResult(best, factor)

    def _newton(
        self, z: np.ndarray, tol: float, dtype: type = np.float64, rounds: int = tuned.GRAM_ROUNDS
    ) -> GramResult | None:
        """Descent and Newton steps on z, in place; None if they are not enough."""
        H, b, weights = self.H, self.b, self.weights
        r = np.empty_like(z)
        residual(H, b, z, r)
        for _ in range(rounds):
            if z.size < tuned.SHORT_DESCENT:
                descend(H, z, r, weights, tuned.EPOCHS, tol)
            else:
                interruptible(lambda: descend(H, z, r, weights, tuned.EPOCHS, tol))
            if largest_violation(b, weights, z, r) <= tol:
                return GramResult(z)  # coordinate descent alone was enough
            active = z.nonzero()[0]  # on small problems, np.flatnonzero would take most of the time
            if not 0 < active.size <= self._rank:
                return None
            L = submatrix(H, active, dtype)
            if not factorise_lower(L):
                return None
            if newton_steps(H, b, weights, z, r, active, L, tol):
                return GramResult(z, Factor(active, L))
            del L  # large; the next one need not be there beside it
        solved = largest_violation(b, weights, z, r) <= tol
        return GramResult(z) if solved else None

    def _vertex(self, z: np.ndarray, active: np.ndarray) -> np.ndarray:
        """A point no worse than z on independent columns, or z if there is none that way."""
        descent = self.b[active] - self.weights[active] * np.sign(z[active])
        found = to_vertex(self.H, active, descent, z[active])
        if found is None:
            return z
        moved = np.zeros_like(z)
        moved[active] = found
        return moved

    def _exact_on_support(
        self, z: np.ndarray, tol: float
    ) -> tuple[np.ndarray, Factor | None, bool]:
        """The exact minimiser with the support and signs of z, or z where it has other signs.

        The last entry says whether it is the minimiser of the whole subproblem: no other column
        violates its condition, and on the support only rounding errors are left. With large
        coefficients that cancel, those may exceed tol, and further iterations would not help.
        """
        active = np.flatnonzero(z)
        if not 0 < active.size <= max(self._rank, tuned.MOST_DEPENDENT):
            return z, None, False
        factor = factorise(self.H, active) if active.size <= self._rank else None
        if factor is None:
            z = self._vertex(z, active)
            active = np.flatnonzero(z)
            factor = factorise(self.H, active)
            if factor is None:
                return z, None, False
        signs, weights = np.sign(z[active]), self.weights[active]
        refined, r = np.zeros_like(z), np.empty_like(z)
        for _ in range(1 + tuned.GRAM_REFINEMENTS):
            residual(self.H, self.b, refined, r)
            refined[active] += factor.solve(r[active] - weights * signs)
        exact = refined[active]
        if not np.all(exact * signs > 0):
            return z, factor, False
        residual(self.H, self.b, refined, r)
        left = float(np.max(np.abs(r[active] - weights * np.sign(exact)) / weights))
        r[active] = 0.0
        violated = np.abs(r) > self.weights * (1.0 + tol)
        return refined, factor, left <= tuned.GRAM_ROUNDING and not violated.any()


class GramLasso:
    """The minimisers of ½xᵀCx − b_kᵀx + λ‖x‖₁ for one C and many b_k.

    `C` (N, N): symmetric, positive semidefinite, with a positive diagonal. `rank`: its rank; N if
    not given.
    """

    def __init__(self, C: ArrayLike, rank: int | None = None) -> None:
        C = real_array("C", C, ndim=2)
        d = np.diag(C)
        if C.shape[0] != C.shape[1] or not np.min(d) > 0.0:
            raise ValueError("C must be square with a positive diagonal")
        self.norms = np.sqrt(d)
        self._H = C / self.norms
        self._H /= self.norms[:, None]
        self._rank = C.shape[0] if rank is None else rank

    def minimise(
        self,
        B: np.ndarray,
        lam: float,
        start: np.ndarray | None = None,
        *,
        tol: float = 1e-6,
    ) -> tuple[np.ndarray, np.ndarray]:
        """Solve for the columns of B until no optimality condition is violated by more than tol·λ.

        B, `start` (points close to the minimisers) and the result are of shape (N, K). Without
        `start`, λ is followed down to its value. The second result is False where the objective
        falls for ever, which needs a singular C, or the iteration gave up.
        """
        lam, tol = positive_float("lam", lam), positive_float("tol", tol)
        X = np.zeros(B.shape) if start is None else start.copy()
        solved = np.zeros(B.shape[1], dtype=bool)
        parts = min(n_threads(), B.shape[1])

        def work(part: int) -> None:
            for k in range(part, B.shape[1], parts):
                X[:, k], solved[k] = self._one(B[:, k], lam, X[:, k], tol, start is not None)

        with one_thread():
            run([partial(work, part) for part in range(parts)])
        return X, solved

    def path(
        self, b: np.ndarray, lams: np.ndarray, *, tol: float = 1e-8, clock: Clock | None = None
    ) -> tuple[np.ndarray, np.ndarray]:
        """Solve for one b and many λ, the largest first; b is in the range of C.

        Each minimiser is the start of the next. Columns that are far from entering are left out at
        first (the sequential strong rule of Tibshirani et al. 2012). The results are those of
        `minimise`; λ that the clock leaves no time for are not solved.
        """
        X, solved = np.zeros((b.size, lams.size)), np.zeros(lams.size, dtype=bool)
        b, z, clock = b / self.norms, np.zeros(b.size), clock or Clock(None)
        r, at = b, float(np.max(np.abs(b) * self.norms, initial=0.0))
        with one_thread():
            for k in np.argsort(-lams, kind="stable").tolist():
                lam = float(lams[k])
                while lam < at and not clock.expired():
                    before, at = at, max(lam, at * tuned.DESCENT)
                    weights = at / self.norms
                    few = (np.abs(r) >= (2.0 * at - before) / self.norms) | (z != 0.0)
                    z, r = self._within(few, b, weights, z, tol if at == lam else None, clock)
                X[:, k] = z / self.norms
                found = largest_violation(b, lam / self.norms, z, r)
                solved[k] = lam >= at and found <= 10.0 * tol
        return X, solved

    def _within(
        self,
        few: np.ndarray,
        b: np.ndarray,
        weights: np.ndarray,
        z: np.ndarray,
        tol: float | None,
        clock: Clock,
    ) -> tuple[np.ndarray, np.ndarray]:
        """Minimise over a few columns and all that violate their condition then; b − Hz, too.

        Without `tol` one rough solve is enough.
        """
        z, r = z.copy(), np.empty_like(z)
        while True:
            index = np.flatnonzero(few)
            H = self._H if index.size == b.size else submatrix(self._H, index)
            part = Subproblem(H, b[index], weights[index], self._rank, bounded=True)
            level = tuned.ROUGHLY if tol is None else tol
            z[index] = part.minimise(z[index], level, clock=clock, roughly=tol is None).z
            residual(self._H, b, z, r)
            left = ~few & (np.abs(r) > weights * (1.0 + level))
            if tol is None or clock.expired() or not left.any():
                return z, r
            few |= left

    def _one(
        self, b: np.ndarray, lam: float, x: np.ndarray, tol: float, near: bool
    ) -> tuple[np.ndarray, bool]:
        b, z, clock = b / self.norms, x * self.norms, Clock(None)
        weights = lam / self.norms
        if near:
            # A few rounds from the start; if they fail, λ is followed down from above instead.
            found = self._subproblem(b, weights).minimise(z, tol, clock=clock, roughly=True)
            if self._violation(b, weights, found.z) <= tol:
                return found.z / self.norms, True
            z = np.zeros_like(z)
        top = float(np.max(np.abs(b) / weights))
        steps = max(0, int(np.ceil(np.log(max(top, 1.0)) / -np.log(tuned.DESCENT))))
        for k in range(1, steps):
            z = self._subproblem(b, weights * top * tuned.DESCENT**k).minimise(
                z, tuned.ROUGHLY, clock=clock, roughly=True
            ).z  # fmt: skip
        result = self._subproblem(b, weights).minimise(z, tol, clock=clock)
        return result.z / self.norms, self._accepted(b, weights, result, tol)

    def _subproblem(self, b: np.ndarray, weights: np.ndarray) -> Subproblem:
        return Subproblem(self._H, b, weights, self._rank)

    def _violation(self, b: np.ndarray, weights: np.ndarray, z: np.ndarray) -> float:
        r = b - self._H @ z
        miss = np.where(z != 0.0, np.abs(r - weights * np.sign(z)), np.abs(r) - weights)
        return float(np.max(miss / weights))

    def _accepted(self, b: np.ndarray, weights: np.ndarray, result: GramResult, tol: float) -> bool:
        return not result.falling and self._violation(b, weights, result.z) <= 10.0 * tol
