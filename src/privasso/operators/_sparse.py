"""Sparse storage: scipy.sparse in CSR or CSC."""

from __future__ import annotations

from typing import Any

import numpy as np
import scipy.sparse as sp

from privasso._covariates import check_sparse
from privasso._validation import real_array
from privasso.operators import _enclosed as accurate
from privasso.operators import _kernels as kernels
from privasso.operators._columns import Columns
from privasso.operators._enclosed import Enclosed, enclosed, weights_of
from privasso.operators._operator import Operator

#: Entries that a compiled loop reads before Python may be interrupted: a tenth of a second.
_TURN = 1 << 25


class Sparse(Operator):
    """A CSR or CSC matrix; other sparse formats are converted to CSC once."""

    dense = False

    def __init__(self, F: Any) -> None:
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
        if self._F.format == "csc":
            squares, product = np.empty(self.shape[1]), np.empty(self.shape[1])
            kernels.csc_squares_and_product(
                self._F.data, self._F.indices, self._F.indptr, y, squares, product
            )
            return squares, product
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

    def rows(self, take: np.ndarray | slice) -> Any:
        return sp.csr_array(self._F[take], dtype=np.float64)

    def columns(self, take: np.ndarray) -> Any:
        return sp.csc_array(self._F[:, take], dtype=np.float64)

    def sparse_columns(self, take: np.ndarray) -> Columns:
        return Columns.of(
            self.columns(take), np.zeros(take.size), np.broadcast_to(1.0, (self.shape[0],))
        )

    def matmat(self, X: np.ndarray) -> np.ndarray:
        return self._F @ X

    def rmatmat(self, G: np.ndarray) -> np.ndarray:
        return self._FT @ G

    def single(self) -> Any:
        return sp.csc_array(self._F, dtype=np.float32)

    def toarray(self) -> np.ndarray:
        return self._F.toarray().astype(np.float64)
