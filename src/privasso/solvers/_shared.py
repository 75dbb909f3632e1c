"""What the problems of a batch share: their linear terms, without a copy of the noise, and FᵀF.

The Gram matrix of all columns proves minimisers without another reading of F. c = b − FᵀFx computed
with a rounded Gram matrix differs from the true one. With u = 2⁻⁵³, a product of two columns is
wrong by at most about M u‖F_i‖‖F_j‖ whatever the order of summation, so that

    |error of c_i| ≤ u(M + n + 16)‖F_i‖ Σ_j ‖F_j‖|x_j| + 4u|b_i|,

n the number of coefficients that are not zero. A violation counts with this error added to it. What
is proved so has the same violation on F, to the tolerance.
"""

from __future__ import annotations

from functools import cached_property

import numpy as np

from privasso.operators import Operator
from privasso.problem import Certificate, step_to_feasible
from privasso.solvers._newton import residual


class LinearTerms:
    """b_k = b − η_k for k = 1…K, or the columns b_k of a matrix, each made when it is asked for.

    `columns` (N, K): η_1 … η_K; without `b`, the linear terms themselves. `b` (N,).
    """

    def __init__(self, columns: np.ndarray, b: np.ndarray | None = None) -> None:
        self._columns, self._b = columns, b
        self.shape = columns.shape[1], columns.shape[0]

    def one(self, k: int) -> np.ndarray:
        """The k-th term."""
        column = np.ascontiguousarray(self._columns[:, k])
        return column if self._b is None else self._b - column

    def some(self, index: np.ndarray) -> np.ndarray:
        """Some of the terms, one per row."""
        rows = self._columns.T[index]
        return rows if self._b is None else self._b - rows

    @cached_property
    def equal(self) -> bool:
        """Whether all terms are equal."""
        return bool(np.all(self._columns[:, :1] == self._columns))

    def same(self, j: int, k: int) -> bool:
        """Whether two terms are equal."""
        return self.equal or bool(np.array_equal(self._columns[:, j], self._columns[:, k]))


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
