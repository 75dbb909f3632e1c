"""The Gram matrix of all columns, and what it proves without another reading of F.

c = b − FᵀFx computed with a rounded Gram matrix differs from the true one. With u = 2⁻⁵³, a product
of two columns is wrong by at most about M u‖F_i‖‖F_j‖ whatever the order of summation, so that

    |error of c_i| ≤ u(M + n + 16)‖F_i‖ Σ_j ‖F_j‖|x_j| + 4u|b_i|,

n the number of coefficients that are not zero. A violation counts with this error added to it. What
is proved so has the same violation on F, to the tolerance.
"""

from __future__ import annotations

import numpy as np

from privasso.operators import Operator
from privasso.problem import Certificate, step_to_feasible
from privasso.solvers._newton import residual

_UNIT = 2.0**-53


class WholeGram:
    """FᵀF at unit norm of the columns.

    `H` (N, N). `exact`: whether F holds the numbers themselves, so that the bound on rounding is
    valid.
    """

    def __init__(self, op: Operator, norms: np.ndarray) -> None:
        self.H = op.gram()
        self.H /= norms
        self.H /= norms[:, None]
        self.exact = op.dense and op.exact_columns and not op.packed
        self._norms, self._n_rows = norms, op.shape[0]

    def conditions(self, b: np.ndarray, x: np.ndarray) -> np.ndarray:
        """Return c = b − FᵀFx."""
        r = np.empty_like(b)
        residual(self.H, b / self._norms, x * self._norms, r)
        return r * self._norms

    def certificate(
        self,
        b: np.ndarray,
        lam: float,
        x: np.ndarray,
        c: np.ndarray,
        *,
        dual_point: np.ndarray | None = None,
        path: np.ndarray | None = None,
    ) -> Certificate:
        """What c proves, given a vector with Fᵀ·dual_point = b or the path (F_AᵀF_A)⁻¹ λ sgn(x_A).

        Both violations are upper bounds. The gap is that of `dual_gap`, with ‖Fx‖² and products
        with Fx expressed by c; without a dual point or a path it is infinite.
        """
        size = float(np.abs(x) @ self._norms)
        steps = self._n_rows + int(np.count_nonzero(x)) + 16
        error = 1.01 * _UNIT * (steps * size * self._norms + 4.0 * np.abs(b))
        violation = np.where(x != 0, np.abs(c - lam * np.sign(x)), np.abs(c) - lam) + error
        kkt = max(float(violation.max()), 0.0) / lam
        if dual_point is not None:  # δ = dual_point − Fx
            q, slope = c, float(x @ c)
            length = float(dual_point @ dual_point) - float(x @ b) - slope
        elif path is not None:  # δ = F·path
            q = -self.conditions(np.zeros_like(path), path)
            slope, length = float(x @ q), float(path @ q)
        else:
            return Certificate(kkt, kkt, np.inf)
        t = step_to_feasible(c, q, lam)
        if t is None:
            return Certificate(kkt, kkt, np.inf)
        base = float(np.sum(lam * np.abs(x) - c * x))
        gap = base + t * slope + 0.5 * t * t * max(length, 0.0)
        return Certificate(kkt, kkt, max(gap, 0.0))
