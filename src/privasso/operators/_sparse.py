"""Sparse storage: CSR or CSC, minus its column means if wanted, and columns copied out of it."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
import scipy.sparse as sp

from privasso._covariates import check_sparse
from privasso._types import MatrixLike, SparseMatrix
from privasso._validation import real_array
from privasso.noise import Factored
from privasso.operators import _enclosed as accurate
from privasso.operators._enclosed import Enclosed, enclosed, two_sum, weights_of
from privasso.operators._operator import Operator, as_operator


@dataclass(frozen=True, eq=False)
class Columns:
    """The columns f_i − r·mean_i.

    - `block` (M, n): f_1 … f_n.
    - `mean` (n,): zero unless the matrix is centred.
    - `roots` (M,): r.
    - `along` (n,): r·f_i.
    """

    block: SparseMatrix
    mean: np.ndarray
    roots: np.ndarray
    along: np.ndarray

    @staticmethod
    def of(block: SparseMatrix, mean: np.ndarray, roots: np.ndarray) -> Columns:
        """The columns with r·f_i computed."""
        along = block.T @ roots if mean.any() else np.zeros(mean.size)
        return Columns(block, mean, roots, along)

    @property
    def total(self) -> float:
        """r·r."""
        return float(self.roots @ self.roots)

    def arrays(self) -> tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray, np.ndarray]:
        """Entries, their rows, where each column starts, the means, and r·f_i."""
        return self.block.data, self.block.indices, self.block.indptr, self.mean, self.along

    def joined(self, other: Columns) -> Columns:
        """These columns, then the others."""
        return Columns(
            sp.hstack([self.block, other.block], format="csc"),
            np.concatenate([self.mean, other.mean]),
            self.roots,
            np.concatenate([self.along, other.along]),
        )

    def taken(self, keep: np.ndarray) -> Columns:
        """Some of these columns."""
        return Columns(self.block[:, keep], self.mean[keep], self.roots, self.along[keep])

    def matvec(self, x: np.ndarray) -> np.ndarray:
        """The sum of the columns times x."""
        w = self.block @ x
        return w - self.roots * float(self.mean @ x) if self.mean.any() else w

    def gram(self) -> np.ndarray:
        """Inner products of the columns, dense."""
        gram = (self.block.T @ self.block).toarray()
        if self.mean.any():
            cross = np.outer(self.along, self.mean)
            gram += self.total * np.outer(self.mean, self.mean) - cross - cross.T
        return gram


#: Entries that a compiled loop reads before Python may be interrupted: a tenth of a second.
_TURN = 1 << 25


class Sparse(Operator):
    """A CSR or CSC matrix; other sparse formats are converted to CSC once."""

    dense = False

    def __init__(self, F: SparseMatrix) -> None:
        if F.ndim != 2:
            raise ValueError(f"F must have 2 dimensions, not {F.ndim}")
        check_sparse(F)
        if F.format not in ("csr", "csc"):
            F = F.tocsc()
        m, n = F.shape
        if m == 0 or n == 0:
            raise ValueError(f"F is empty (its shape is {F.shape})")
        if F.data.size:
            data = real_array("F", F.data, ndim=1, dtype=None, finite=False)
            if data is not F.data:
                F = type(F)((data, F.indices, F.indptr), shape=(m, n))
        super().__init__((m, n))
        self._F = F
        self._FT = F.T

    def matvec(self, x: np.ndarray) -> np.ndarray:
        return self._F @ x

    def rmatvec(self, g: np.ndarray) -> np.ndarray:
        return self._FT @ g

    def pair_rmatvec(self, g: np.ndarray, h: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        return self.rmatvec(g), self.rmatvec(h)  # as fast as both at once

    def squares_and_rmatvec(self, y: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        data = self._F.data.astype(np.float64, copy=False)
        entries = type(self._F)((data * data, self._F.indices, self._F.indptr), shape=self.shape)
        return entries.T @ np.ones(self.shape[0]), self.rmatvec(y)

    def matvec_enclosed(self, x: np.ndarray) -> Enclosed:
        return self._enclosed(Enclosed.exactly(x), along_lines=self._F.format == "csr")

    def rmatvec_enclosed(self, g: Enclosed) -> Enclosed:
        return self._enclosed(g, along_lines=self._F.format == "csc")

    def _enclosed(self, v: Enclosed, *, along_lines: bool) -> Enclosed:
        """The product with v, along the stored lines (rows of CSR, columns of CSC) or across."""
        m, n = self.shape
        n_lines, length = (m, n) if self._F.format == "csr" else (n, m)
        terms = length if along_lines else n_lines
        out = np.zeros((3, n_lines if along_lines else length))
        kernel = accurate.sparse_dots if along_lines else accurate.sparse_axpys
        F, weights = self._F, weights_of(v, terms)
        step = max(1, int(n_lines * _TURN / max(1, F.nnz)))
        for start in range(0, n_lines, step):
            stop = min(start + step, n_lines)
            kernel(F.data, F.indices, F.indptr, start, stop, v.value, v.low, weights, out)
        return enclosed(out[0], out[1], out[2], terms)

    def rows(self, take: np.ndarray | slice) -> SparseMatrix:
        return sp.csr_array(self._F[take], dtype=np.float64)

    def columns(self, take: np.ndarray) -> SparseMatrix:
        return sp.csc_array(self._F[:, take], dtype=np.float64)

    def sparse_columns(self, take: np.ndarray) -> Columns:
        return Columns.of(
            self.columns(take), np.zeros(take.size), np.broadcast_to(1.0, (self.shape[0],))
        )

    def matmat(self, X: np.ndarray) -> np.ndarray:
        return self._F @ X

    def rmatmat(self, G: np.ndarray) -> np.ndarray:
        return self._FT @ G

    def single(self) -> SparseMatrix:
        return sp.csc_array(self._F, dtype=np.float32)

    def toarray(self) -> np.ndarray:
        return self._F.toarray().astype(np.float64)


_UNIT = 2.0**-53


class Centred(Operator):
    """F − r·meanᵀ for sparse F: each product is one with F minus a product with the means.

    The subtraction loses digits in a column whose mean is much larger than its spread. That is
    rare in sparse columns, and where it matters the solve ends in another status than CONVERGED.

    - `F` (M, N): the matrix before centring.
    - `mean` (N,): what is subtracted from each column.
    - `squares` (N,): squared norms of the centred columns.
    - `roots` (M,): r, the factors by which the rows of F are already scaled; ones by default.
    """

    dense = False
    exact_columns = False

    def __init__(
        self, F: MatrixLike, mean: np.ndarray, squares: np.ndarray, roots: np.ndarray | None = None
    ) -> None:
        self._base = as_operator(F)
        super().__init__(self._base.shape)
        self._mean, self._squared_norms = mean, squares
        self._roots = np.ones(self.shape[0]) if roots is None else roots

    def matvec(self, x: np.ndarray) -> np.ndarray:
        return self._base.matvec(x) - self._roots * (self._mean @ x)

    def rmatvec(self, g: np.ndarray) -> np.ndarray:
        return self._base.rmatvec(g) - self._mean * (self._roots @ g)

    def pair_rmatvec(self, g: np.ndarray, h: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        out = self.rmatmat(np.stack([g, h], axis=1))
        return out[:, 0], out[:, 1]

    def squares_and_rmatvec(self, y: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        return self._squared_norms.copy(), self.rmatvec(y)

    def matvec_enclosed(self, x: np.ndarray) -> Enclosed:
        self._refuse_scaled_rows()
        products = self._mean * x
        shift = math.fsum(products)
        lost = 2 * _UNIT * (float(np.abs(products).sum()) + abs(shift))
        base = self._base.matvec_enclosed(x)
        value, low = two_sum(base.value, np.full(self.shape[0], -shift))
        return _renormalised(value, low + base.low, base.error + lost)

    def rmatvec_enclosed(self, g: Enclosed) -> Enclosed:
        self._refuse_scaled_rows()
        total = math.fsum(g.value) + math.fsum(g.low)
        lost = 2 * _UNIT * abs(total) + float(g.error.sum()) * (1.0 + g.value.size * _UNIT)
        shift = self._mean * total
        base = self._base.rmatvec_enclosed(g)
        value, low = two_sum(base.value, -shift)
        error = base.error + np.abs(self._mean) * lost + 2 * _UNIT * np.abs(shift)
        return _renormalised(value, low + base.low, error)

    def rows(self, take: np.ndarray | slice) -> np.ndarray:
        return self._base.rows(take).toarray() - np.outer(self._roots[take], self._mean)

    def columns(self, take: np.ndarray) -> np.ndarray:
        block = self._base.columns(take).toarray()
        block -= np.outer(self._roots, self._mean[take])
        return np.asfortranarray(block)

    def sparse_columns(self, take: np.ndarray) -> Columns:
        return Columns.of(self._base.columns(take), self._mean[take], self._roots)

    def matmat(self, X: np.ndarray) -> np.ndarray:
        return self._base.matmat(X) - np.outer(self._roots, self._mean @ X)

    def rmatmat(self, G: np.ndarray) -> np.ndarray:
        return self._base.rmatmat(G) - np.outer(self._mean, self._roots @ G)

    def _refuse_scaled_rows(self) -> None:
        if np.any(self._roots != 1.0):
            raise ValueError(
                "products with centred sparse rows are enclosed only if the rows are not scaled; "
                "pass weights to the solver instead"
            )

    def single(self) -> np.ndarray:
        return self.toarray().astype(np.float32)

    def gram(self) -> np.ndarray:
        total = float(self._roots @ self._roots)
        return self._base.gram() - total * np.outer(self._mean, self._mean)

    def toarray(self) -> np.ndarray:
        return self._base.toarray() - np.outer(self._roots, self._mean)


def _renormalised(value: np.ndarray, low: np.ndarray, error: np.ndarray) -> Enclosed:
    """Enclosure of value + low, which may overlap; the addition of two low parts is rounded."""
    high, rest = two_sum(value, low)
    return Enclosed(high, rest, error * (1.0 + 8 * _UNIT) + 2 * _UNIT * np.abs(low))


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
