"""The interface through which every algorithm touches the covariate matrix F."""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import Any

import numpy as np
import scipy.sparse as sp

from privasso._validation import real_array

#: Columns of F, cut out: a dense array or a sparse matrix, M rows.
Block = Any


class Operator(ABC):
    """F, seen through the few products that the algorithms need.

    Every method that reads the matrix adds what it read to `passes`, in units of one
    reading of the whole of F. That number, not flops, is what a solve costs on a machine
    with fast arithmetic and slow memory.
    """

    shape: tuple[int, int]
    dense = True

    def __init__(self, shape: tuple[int, int]) -> None:
        self.shape = shape
        self.passes = 0.0

    @abstractmethod
    def matvec(self, x: np.ndarray) -> np.ndarray:
        """``F @ x``."""

    @abstractmethod
    def pair_rmatvec(self, g: np.ndarray, h: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """``F.T @ g`` and ``F.T @ h`` in one reading of F."""

    @abstractmethod
    def squares_and_rmatvec(self, y: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Squared column norms and ``F.T @ y`` in one reading of F."""

    @abstractmethod
    def rmatvec(self, g: np.ndarray) -> np.ndarray:
        """``F.T @ g``."""

    def update(
        self,
        x: np.ndarray,
        g: np.ndarray,
        beta: float,
        gamma: float,
        take: np.ndarray | None = None,
    ) -> tuple[np.ndarray, Block | None]:
        """In place ``g <- beta*g + gamma*F@x``; returns ``F.T @ g`` and the columns `take`.

        This is one iteration of approximate message passing (and of conjugate gradients). Two
        products, unless the storage can do both in one reading.
        """
        g *= beta
        g += gamma * self.matvec(x)
        return self.rmatvec(g), (None if take is None else self.columns(take))

    @abstractmethod
    def columns(self, take: np.ndarray) -> Block:
        """``F[:, take]`` in float64."""

    def column_squares(self) -> np.ndarray:
        """Squared norms of the columns, diag(F.T @ F)."""
        return self.squares_and_rmatvec(np.zeros(self.shape[0]))[0]

    @abstractmethod
    def matmat(self, X: np.ndarray) -> np.ndarray:
        """``F @ X`` for many right-hand sides."""

    @abstractmethod
    def rmatmat(self, G: np.ndarray) -> np.ndarray:
        """``F.T @ G`` for many right-hand sides."""

    @abstractmethod
    def single(self) -> Block:
        """F in single precision, for products that need not be exact (a copy of half its size)."""

    def gram(self) -> np.ndarray:
        """``F.T @ F``, dense: for small N only."""
        everything = self.columns(np.arange(self.shape[1]))
        product = everything.T @ everything
        return product.toarray() if sp.issparse(product) else product

    @abstractmethod
    def toarray(self) -> np.ndarray:
        """F as a dense float64 array (for the linear programme, which needs all of it)."""


def as_operator(F: Any) -> Operator:
    """Wrap F in the storage that fits it, without a copy where the layout allows.

    Dense float64 or float32 in C or Fortran order (memory maps included) and
    ``scipy.sparse`` CSR or CSC are used as they are; any other real matrix is copied once.
    Looking for NaN would be a pass of its own, so it is left to the first pass that is needed
    anyway: squared column norms are finite only if F is (see `Problem`).

    Examples
    --------
    >>> import numpy as np
    >>> op = as_operator(np.eye(3, dtype=np.float32, order="F"))
    >>> type(op).__name__, op.shape
    ('ColumnMajor', (3, 3))
    """
    from privasso.operators._dense import ColumnMajor, RowMajor
    from privasso.operators._sparse import Sparse

    if isinstance(F, Operator):
        return F
    if sp.issparse(F):
        return Sparse(F)
    array = real_array("F", F, ndim=2, dtype=None, finite=False)
    if array.flags.c_contiguous:
        return RowMajor(array)
    if array.flags.f_contiguous:
        return ColumnMajor(array)
    return RowMajor(np.ascontiguousarray(array))
