"""Algorithm 1 of the paper in plain NumPy: the reference for speed and tests.

It runs one grid point at a time. F∘F and v, which do not change, are computed once per data set.
"""

from __future__ import annotations

import numpy as np


class Transcription:
    """Algorithm 1 on one data set.

    Examples
    --------
    >>> import privasso as pv
    >>> s = pv.Model(alpha=1.0).sample(n_features=200, rng=0)
    >>> eta = pv.Gram(0.05).draw(s.v, rng=1)
    >>> rng = np.random.default_rng(2)
    >>> x, s_start = rng.standard_normal(200), rng.uniform(size=200)
    >>> Transcription(s.F, s.y).run(0.5, eta, x, s_start)[1]
    True
    """

    def __init__(self, F: np.ndarray, y: np.ndarray) -> None:
        self.F, self.y = F, y
        self.F2 = F * F
        self.M, self.N = F.shape
        self.alpha = self.M / self.N
        self.v = self.F2.sum(axis=0) / self.alpha

    def run(
        self,
        lam: float,
        eta: np.ndarray,
        x: np.ndarray,
        s: np.ndarray,
        *,
        tol: float = 1e-8,
        max_iter: int = 500,
        lost: float = 1e6,
    ) -> tuple[np.ndarray, bool, int]:
        """Return the last iterate, whether it converged, and the number of iterations.

        A run ends as in `amp_paper_many`: when the relative change of √v·x is below `tol`, when
        s_θ exceeds `lost`, or after `max_iter` iterations.
        """
        F, F2, y, v, alpha = self.F, self.F2, self.y, self.v, self.alpha
        weight = np.sqrt(v)
        g = np.zeros(self.M)
        for iteration in range(1, max_iter + 1):
            theta = F @ x - g * (F2 @ s)
            s_theta = v @ s / self.N
            g = (y - theta) / (1 + s_theta)
            Sigma = (1 + s_theta) / (alpha * v)
            m = Sigma * (F.T @ g + alpha * x * v / (1 + s_theta)) - eta * Sigma
            new = np.sign(m) * np.maximum(np.abs(m) - lam * Sigma, 0)
            s = Sigma * (np.abs(m) > lam * Sigma)
            change = np.linalg.norm(weight * (new - x))
            x = new
            if change <= tol * np.linalg.norm(weight * x):
                return x, True, iteration
            if not s_theta <= lost:
                return x, False, iteration
        return x, False, max_iter
