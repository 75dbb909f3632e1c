"""Large sparse rows with column means taken off, never written out as dense rows."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import scipy.sparse as sp

from privasso._types import SparseMatrix
from privasso.noise import Factored

#: Tables with more entries than this, stored or not, are large.
_LARGE = 1 << 25
#: Largest part of stored entries for which products of sparse rows are faster than dense ones.
_DENSITY = 1 / 16
#: Entries of whitened rows at one time.
_CHUNK = 1 << 20
_EPS = np.finfo(np.float64).eps


@dataclass(frozen=True, eq=False)
class SparseRows:
    """The rows f_μ = x_μ − m, x_μ sparse.

    Columns stored in more than half of the rows are centred entry by entry, with m_i = 0. In the
    others m_i² is at most the variance, so that no subtraction of the means loses digits.

    - `stored` (M, n): the x_μ, in CSR form.
    - `shift` (n,): m.
    """

    stored: SparseMatrix
    shift: np.ndarray

    @staticmethod
    def pay(F: SparseMatrix) -> bool:
        """Whether rows are so many, and so sparse, that dense blocks of them would be slower."""
        entries = F.shape[0] * F.shape[1]
        return sp.issparse(F) and entries > _LARGE and F.nnz < _DENSITY * entries

    @staticmethod
    def of(F: SparseMatrix, mean: np.ndarray) -> SparseRows:
        """The rows of F in CSR form, without zeros that are stored, minus the mean."""
        m, n = F.shape
        full = np.flatnonzero((2 * np.bincount(F.indices, minlength=n) > m) & (mean != 0.0))
        if not full.size:
            return SparseRows(F, mean)
        means = sp.csr_array(
            (np.tile(mean[full], m), np.tile(full, m), full.size * np.arange(m + 1)), shape=(m, n)
        )
        shift = mean.copy()
        shift[full] = 0.0
        return SparseRows(F - means, shift)

    def moments(self, weights: np.ndarray | None) -> np.ndarray:
        """Σ_μ w_μ f_μf_μᵀ for rows f_μ with a 1 as their last entry."""
        m, n = self.stored.shape
        w = np.ones(m) if weights is None else weights
        out = np.empty((n + 1, n + 1))
        out[:n, :n] = (self.stored.T @ (sp.diags_array(w) @ self.stored)).toarray()
        along, total = self.stored.T @ w, float(w.sum())
        cross = np.outer(along, self.shift)
        out[:n, :n] += total * np.outer(self.shift, self.shift) - cross - cross.T
        out[n, :n] = out[:n, n] = along - total * self.shift
        out[n, n] = total
        return out

    def squared_norms(self, noise: Factored, start: int, stop: int) -> np.ndarray:
        """f_μᵀΣ⁻¹f_μ for noise of full rank and the rows start ≤ μ < stop, rounded up.

        With the left inverse W of a root of Σ it is ‖Wx_μ − Wm‖². Its rounding is at most that of
        n terms of the size ‖w_i‖|x_μi| and ‖w_i‖|m_i|, for the columns w_i of W.
        """
        W, n = np.ascontiguousarray(noise.whitener.T), self.shift.size
        lengths = np.sqrt(np.einsum("ij,ij->i", W, W))
        base, out = self.shift @ W, np.empty(stop - start)
        step = max(1, _CHUNK // n)
        for first in range(start, stop, step):
            block = self.stored[first : min(first + step, stop)]
            white = block @ W - base
            terms = abs(block) @ lengths + np.abs(self.shift) @ lengths
            size = np.sqrt(np.einsum("ij,ij->i", white, white)) + (n + 16) * _EPS * terms
            out[first - start : first - start + len(size)] = size * size
        return out
