"""Algorithm 1 of Tanzawa & Sakata (2026), to the letter, for reproduction.

Random start, x ~ N(0, 1) and s ~ U[0, 1], and the Onsager term g ∘ ((F∘F)s) beside the scalar
s_θ = vᵀs/N. A fixed point then has g_μ = (y − Fx)_μ / (1 + s_θ − ((F∘F)s)_μ), which is not the
residual: **it solves the LASSO only up to O(N^−½)**, a relative KKT violation of 1–3 % at
N = 1000…4000. `_amp` is the exact form. This one also needs F∘F, a second matrix of the size
of F, and y itself: with the vector Onsager term it cannot be written in b = Fᵀy − η alone.
"""

from __future__ import annotations

import numpy as np

from privasso._validation import generator
from privasso.problem import Problem
from privasso.solvers._amp import AmpState, movement, soft


class AmpPaper:
    """The step of Algorithm 1.

    Parameters
    ----------
    y, eta : ndarray
        Labels (M,) and objective perturbation (N,).
    rng : None, int or numpy.random.Generator
        For the random start.
    damping : float
        Weight in [0, 1) on the old value; the paper uses none.
    """

    name = "amp-paper"

    def __init__(
        self, y: np.ndarray, eta: np.ndarray, *, rng: object = None, damping: float = 0.0
    ) -> None:
        self._y, self._eta, self._rng = y, eta, generator(rng)
        self.damping = damping
        self._squared: np.ndarray | None = None
        self._s = np.empty(0)

    def init(self, problem: Problem) -> AmpState:
        """Draw the start and form F∘F."""
        m, n = problem.shape
        self._squared = problem.op.toarray() ** 2
        x = self._rng.standard_normal(n)
        self._s = self._rng.uniform(size=n)
        return AmpState(x, np.zeros(m), float(problem.squares @ self._s) / m, problem.b, x)

    def step(self, problem: Problem, state: AmpState, take: np.ndarray | None = None) -> AmpState:
        """One iteration: three products with matrices of the size of F."""
        assert take is None
        assert self._squared is not None
        m = problem.shape[0]
        problem.op.passes += 1  # the reading of F∘F
        theta = problem.op.matvec(state.mixed) - state.g * (self._squared @ self._s)
        s_theta = float(problem.squares @ self._s) / m
        g = (self._y - theta) / (1.0 + s_theta)
        u = problem.op.rmatvec(g) + state.mixed * problem.squares / (1.0 + s_theta) - self._eta
        scale = (1.0 + s_theta) / np.where(problem.squares > 0, problem.squares, np.inf)
        x = soft(u, problem.lam) * scale
        s = scale * (np.abs(u) > problem.lam)
        change, turnover = movement(problem, state.mixed, x)
        mixed = self.damping * state.mixed + (1.0 - self.damping) * x
        self._s = self.damping * self._s + (1.0 - self.damping) * s
        return AmpState(x, g, float(problem.squares @ self._s) / m, u, mixed, change, turnover)
