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

import numpy as np

from privasso.solvers._newton import (
    cholesky_solve,
    copy_submatrix,
    descent_and_newton,
    largest_violation,
)
from privasso.solvers._proximal import FIRST_SIGMA, proximal_points

_ROUNDS = 4
_SINGLE, _DOUBLE = np.empty(0, np.float32), np.empty(0)
#: Proximal points without a halving of the violation before giving up.
_PATIENCE = 12


@dataclass(frozen=True, eq=False)
class Factor:
    """H on an active set as LLᵀ, L lower triangular, in single or double precision."""

    active: np.ndarray
    L: np.ndarray

    def solve(self, rhs: np.ndarray) -> np.ndarray:
        """Solve H_AA p = rhs."""
        return cholesky_solve(self.L, rhs)


def submatrix(H: np.ndarray, index: np.ndarray) -> np.ndarray:
    """H[index][:, index], several times faster than with NumPy's indexing."""
    out = np.empty((index.size, index.size))
    copy_submatrix(H, index, out)
    return out


def factorise(H: np.ndarray, active: np.ndarray) -> Factor | None:
    """Factorise H on the active set; None if it is singular."""
    try:
        return Factor(active, np.linalg.cholesky(submatrix(H, active)))
    except np.linalg.LinAlgError:
        return None


@dataclass(frozen=True, eq=False)
class GramResult:
    """Outcome of `Subproblem.minimise`.

    Attributes
    ----------
    z : ndarray
        The minimiser, or the best iterate.
    factor : Factor or None
        The factor of H on the support of z, if one was computed.
    ray : ndarray or None
        What `find_ray` returned, if it proved the whole problem unbounded.
    sigma : float
        The last σ of the proximal-point iteration, with which the next one may start.
    """

    z: np.ndarray
    factor: Factor | None = None
    ray: np.ndarray | None = None
    sigma: float = FIRST_SIGMA


class Subproblem:
    """The problem on one working set.

    Parameters
    ----------
    H, b, weights : ndarray
        See the module.
    rank : int
        Largest rank H can have; an active set larger than that is not factorised.
    find_ray : callable, optional
        Given a direction along which the objective seems to fall for ever, returns a ray of the
        whole problem, or None. Without it no ray is looked for.
    """

    def __init__(
        self,
        H: np.ndarray,
        b: np.ndarray,
        weights: np.ndarray,
        rank: int,
        find_ray: Callable[[np.ndarray], np.ndarray | None] | None = None,
    ) -> None:
        self.H, self.b, self.weights = H, b, weights
        self._rank, self._find_ray = rank, find_ray

    def minimise(self, z: np.ndarray, tol: float, *, sigma: float = FIRST_SIGMA) -> GramResult:
        """Minimise from z until no violation exceeds tol times its weight, or rounding."""
        z = z.copy()
        for like in (_SINGLE, _DOUBLE):
            solved, active, L = descent_and_newton(
                self.H, self.b, self.weights, z, self._rank, _ROUNDS, tol, like
            )
            if solved:
                return GramResult(z, Factor(active, L) if active.size else None)
        best, best_violation, factor, stale = z, np.inf, None, 0
        last_sigma = sigma
        for point, step, used in proximal_points(self.H, self.b, self.weights, z, sigma=sigma):
            last_sigma = used
            z, factor_here = self._exact_on_support(point)
            violation = float(largest_violation(self.b, self.weights, z, self.b - self.H @ z))
            stale = 0 if violation < 0.5 * best_violation else stale + 1
            if violation < best_violation:
                best, best_violation, factor = z, violation, factor_here
            if violation <= tol or stale > _PATIENCE:
                break
            falls = float(self.b @ step) > float(self.weights @ np.abs(step))
            flat = float(step @ (self.H @ step)) < 1e-2 * float(step @ step)
            if falls and flat and self._find_ray is not None:
                ray = self._find_ray(step)
                if ray is not None:
                    return GramResult(z, ray=ray)
        return GramResult(best, factor, sigma=last_sigma)

    def _exact_on_support(self, z: np.ndarray) -> tuple[np.ndarray, Factor | None]:
        """The exact minimiser with the support and signs of z, or z where it has other signs."""
        active = np.flatnonzero(z)
        if not 0 < active.size <= self._rank:
            return z, None
        factor = factorise(self.H, active)
        if factor is None:
            return z, None
        target = self.b[active] - self.weights[active] * np.sign(z[active])
        exact = factor.solve(target)
        exact += factor.solve(target - submatrix(self.H, active) @ exact)  # refinement
        if not np.all(exact * z[active] > 0):
            return z, factor
        refined = np.zeros_like(z)
        refined[active] = exact
        return refined, factor
