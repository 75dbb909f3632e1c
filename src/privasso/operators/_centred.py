"""A sparse matrix minus its column means, which stays sparse in memory."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from privasso.operators._columns import Columns
from privasso.operators._enclosed import Enclosed, two_sum
from privasso.operators._operator import Operator, as_operator

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
        self, F: Any, mean: np.ndarray, squares: np.ndarray, roots: np.ndarray | None = None
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
