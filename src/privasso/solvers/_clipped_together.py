"""Many small clipped problems on the same rows, minimised together by Newton's method.

Each step is a few products of matrices for all problems at once. A semismooth Newton step fits the
coefficients that stay away from zero and sets the others to zero; the objective decides how far it
is taken, and where it does not decrease a gradient step takes its place. It ends after some steps
in any case, with a bound on the distance from each minimiser: who wants one that is closer solves
that problem by itself.
"""

from __future__ import annotations

import numpy as np

from privasso._blas import one_thread
from privasso.problem import Loss, smallest_subgradient
from privasso.solvers import _tuned as tuned

_UNIT = 2.0**-53


def minimise_together(
    F: np.ndarray,
    y: np.ndarray,
    loss: Loss,
    weights: np.ndarray | None,
    ridge: float,
    thresholds: np.ndarray,
    etas: np.ndarray,
) -> tuple[np.ndarray, np.ndarray]:
    """Minimise Σ_μ w_μ ℓ(y_μ, f_μᵀx) + Σ_i t_i|x_i| + (Λ/2)‖x‖² + ηᵀx for each row of η.

    Returns the points, a row each, and upper bounds of their distances from the minimisers in the
    norm of x, rounding included.

    Examples
    --------
    >>> from privasso.problem import Huber
    >>> F, y, etas = np.eye(2), np.array([3.0, 0.5]), np.array([[0.0, 0.0], [1.0, 0.0]])
    >>> x, off = minimise_together(F, y, Huber(1.0), None, 1.0, np.array([0.5, 0.5]), etas)
    >>> x.tolist(), bool(off.max() < 1e-13)
    ([[0.5, 0.0], [0.0, 0.0]], True)
    """
    m, n = F.shape
    w = np.ones(m) if weights is None else weights
    run = _Together(F, loss.labels(y)[:, None], loss, w[:, None], ridge, thresholds[:, None])
    step = max(1, tuned.TOGETHER_NUMBERS // (m + n * n))
    with one_thread():
        found = [run.minimise(etas[k : k + step].T) for k in range(0, len(etas), step)]
    return np.vstack([x.T for x, _ in found]), np.concatenate([off for _, off in found])


class _Together:
    """The rows, with what all problems share; points and noise are columns."""

    def __init__(
        self,
        F: np.ndarray,
        y: np.ndarray,
        loss: Loss,
        w: np.ndarray,
        ridge: float,
        thresholds: np.ndarray,
    ) -> None:
        self.F, self.y, self.loss, self.w = F, y, loss, w
        self.ridge, self.thresholds = ridge, thresholds
        self.one, self.two = np.triu_indices(F.shape[1])
        self.products = F[:, self.one] * F[:, self.two]
        curvature = loss.curvature_bound * float(np.linalg.norm(np.sqrt(w) * F, 2)) ** 2
        self.steepest = curvature * (1.0 + 1e-9) + ridge
        # What rounding does: sums of so many terms, and of this size.
        size = np.abs(F)
        self.heaviest, self.longest = size.T @ w, float(np.max(size.sum(axis=1)))
        terms = tuned.TOGETHER_ROWS + len(F) / tuned.TOGETHER_ROWS + 80.0
        self.rounding = terms * _UNIT * loss.largest_pull

    def minimise(self, etas: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """The points and their distances."""
        X, off = np.zeros_like(etas), np.full(etas.shape[1], np.inf)
        left = np.arange(etas.shape[1])
        for done in range(tuned.TOGETHER_STEPS + 1):
            x, eta = X[:, left], etas[:, left]
            u = self.F @ x
            g = self._gradient(x, u, eta)
            residual = np.linalg.norm(smallest_subgradient(g, x, self.thresholds), axis=0)
            rounding = np.linalg.norm(self._rounding(x, eta), axis=0)
            off[left] = (residual + rounding) / self.ridge * (1.0 + 1e-12)
            open_ = residual > rounding
            if done == tuned.TOGETHER_STEPS or not np.any(open_):
                break  # the distances are those of the points as they are
            left, x, eta, u, g = left[open_], x[:, open_], eta[:, open_], u[:, open_], g[:, open_]
            X[:, left] = self._improved(x, eta, u, g)
        return X, off

    def _gradient(self, x: np.ndarray, u: np.ndarray, eta: np.ndarray) -> np.ndarray:
        """That of the smooth part, summed in parts, so that little is lost."""
        pulled = np.zeros_like(x)
        for k in range(0, len(self.F), tuned.TOGETHER_ROWS):
            rows = slice(k, k + tuned.TOGETHER_ROWS)
            pulled += self.F[rows].T @ (self.w[rows] * self.loss.pull(self.y[rows], u[rows]))
        return self.ridge * x + eta - pulled

    def _rounding(self, x: np.ndarray, eta: np.ndarray) -> np.ndarray:
        """How far its entries may be off.

        The pulls ψ are off by what the rounding of u moves them and by a few units of the largest.
        """
        largest = np.max(np.abs(x), axis=0) * self.longest
        of_u = 1.1 * len(x) * _UNIT * self.loss.curvature_bound * largest
        own = np.abs(eta) + self.ridge * np.abs(x) + self.thresholds
        return self.heaviest * (self.rounding + of_u) + 8.0 * _UNIT * own

    def _step(self, x: np.ndarray, u: np.ndarray, g: np.ndarray) -> np.ndarray:
        """Newton's step on the coefficients that are, or become, different from zero."""
        n, diagonal = len(x), range(len(x))
        curved = self.w * self.loss.curvature(self.y, u)
        H = np.empty((x.shape[1], n, n))
        H[:, self.one, self.two] = H[:, self.two, self.one] = curved.T @ self.products
        H[:, diagonal, diagonal] += self.ridge
        ahead = x - g / H[:, diagonal, diagonal].T
        away = np.abs(ahead) > self.thresholds / H[:, diagonal, diagonal].T
        gone = np.where(away, 0.0, x).T[:, :, None]
        slope = (g + self.thresholds * np.sign(ahead)).T
        wanted = np.where(away.T, (H @ gone)[:, :, 0] - slope, -x.T)
        H *= away.T[:, :, None] & away.T[:, None, :]
        H[:, diagonal, diagonal] += ~away.T
        return np.linalg.solve(H, wanted[:, :, None])[:, :, 0].T

    def _improved(self, x: np.ndarray, eta: np.ndarray, u: np.ndarray, g: np.ndarray) -> np.ndarray:
        """Points after as much of the step as does not increase the objective."""
        step, before = self._step(x, u, g), self._objective(x, u, eta)
        moved, open_ = self.F @ step, np.arange(x.shape[1])
        ahead = x - g / self.steepest
        found = ahead - np.clip(
            ahead, *(sign * self.thresholds / self.steepest for sign in (-1, 1))
        )
        for k in range(tuned.TOGETHER_HALVINGS):
            part = 0.5**k
            new = x[:, open_] + part * step[:, open_]
            value = self._objective(new, u[:, open_] + part * moved[:, open_], eta[:, open_])
            good = value <= before[open_] + tuned.TOGETHER_SAME * (1.0 + np.abs(before[open_]))
            found[:, open_[good]] = new[:, good]
            open_ = open_[~good]
            if not open_.size:
                break
        return found

    def _objective(self, x: np.ndarray, u: np.ndarray, eta: np.ndarray) -> np.ndarray:
        own = self.thresholds * np.abs(x) + (0.5 * self.ridge * x + eta) * x
        return np.sum(self.w * self.loss.value(self.y, u), axis=0) + np.sum(own, axis=0)
