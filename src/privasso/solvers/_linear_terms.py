"""The linear terms b_k of many problems, without a copy of the noise vectors."""

from __future__ import annotations

from functools import cached_property

import numpy as np


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
