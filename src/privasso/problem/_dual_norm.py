"""‖v‖_{K⁻¹} = √(vᵀK⁻¹v) for a positive definite matrix, never too small in spite of rounding."""

from __future__ import annotations

from contextlib import nullcontext

import numpy as np

from privasso._blas import threads_for

_UNIT = 2.0**-53
#: Columns from which on it matters how many threads BLAS uses.
_LARGE = 500


class DualNorm:
    """The norm of K⁻¹ = SXᵀXS, S = diag(K)^(−½) and X the inverse of the Cholesky factor of SKS.

    SKS has a unit diagonal, so that the scales of the columns do not matter. The norm is raised by
    bounds on the rounding of the factor, of its inverse and of the product.

    `K` (n, n): symmetric. `uncertainty` (n,): the true matrix differs from K by at most
    √(uncertainty_i · uncertainty_j) in entry (i, j).

    Raises `ValueError` if K is not positive definite, or too close to singular for double
    precision.
    """

    def __init__(self, K: np.ndarray, uncertainty: np.ndarray | None = None) -> None:
        from scipy.linalg import solve_triangular

        n = len(K)
        diagonal = np.diag(K)
        if not np.all((diagonal > 0) & np.isfinite(diagonal)):
            raise ValueError("the matrix is not positive definite")
        self._scale = np.sqrt(diagonal)
        unit = K / self._scale / self._scale[:, None]
        try:
            with threads_for(n**3 / 3) if n > _LARGE else nullcontext():
                L = np.linalg.cholesky(unit)
                self._X = solve_triangular(L, np.eye(n), lower=True)
        except np.linalg.LinAlgError:
            raise ValueError("the matrix is not positive definite") from None
        #: 1/`size`² is at most the smallest eigenvalue of SKS.
        self.size = float(np.linalg.norm(self._X)) * (1 + 1e-6)
        # Scaling moves each entry by at most 4u, and the factor reproduces the matrix to γ_{n+1}.
        lost = 1.1 * _UNIT * n * (n + 8)
        if uncertainty is not None:
            lost += float(np.sum(uncertainty / diagonal)) * (1 + 1e-6)
        lost *= self.size**2
        if not lost < 0.5:
            raise ValueError("the matrix is too close to singular for double precision")
        self.inflation = 1.0 / float(np.sqrt(1.0 - lost))

    def __call__(self, v: np.ndarray, error: np.ndarray) -> float:
        """Upper bound of ‖a‖_{K⁻¹} over all a within `error` of v, entry by entry."""
        n = v.size
        v, error = v / self._scale, error / self._scale
        spread = np.abs(self._X)
        gamma = 1.1 * (n + 8) * _UNIT
        # |computed Xv − exact| ≤ γ|X||L||X||v| from the inverse, and γ|X||v| from the product.
        rounding = gamma * (2.0 + float(np.sqrt(n)) * self.size) * norm(spread @ np.abs(v))
        total = norm(self._X @ v) + norm(spread @ error) + rounding
        return total * self.inflation * (1 + 8 * gamma)


def norm(v: np.ndarray) -> float:
    """‖v‖₂ without overflow or underflow of the squares."""
    largest = float(np.max(np.abs(v), initial=0.0))
    if largest == 0.0 or not np.isfinite(largest):
        return largest
    return largest * float(np.linalg.norm(v / largest))
