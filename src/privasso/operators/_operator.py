"""The interface through which every algorithm reads the covariate matrix F."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import numpy as np
import scipy.sparse as sp

from privasso._types import MatrixLike
from privasso._validation import real_array
from privasso.operators._enclosed import Enclosed
from privasso.operators._rough import Rough

if TYPE_CHECKING:
    from privasso.operators._sparse import Columns

#: Given rows (a slice) and the entries of F @ x in them, the entries of g in these rows.
Link = Callable[[slice, np.ndarray], np.ndarray]
#: Columns or rows copied out of F: a dense array or a sparse matrix, in a working set also packed.
Block = Any


class Operator(ABC):
    """F, seen through the few products that the algorithms need.

    An operator holds the matrix and nothing else; no method changes it. To count how much of F a
    computation reads, wrap the operator in `Metered`. The ``..._cost`` methods tell it how much a
    product reads in this storage, in units of all of F.
    """

    dense = True
    #: Whether `columns` returns the numbers of F as they are, without rounding.
    exact_columns = True
    #: Whether entries are unpacked while they are read, so that a copy of F in plain numbers, or of
    #: many of its columns, would take far more memory than F.
    packed = False
    #: Bytes that an entry takes in memory.
    entry_bytes = 8.0

    def __init__(self, shape: tuple[int, int]) -> None:
        self.shape = shape

    @abstractmethod
    def matvec(self, x: np.ndarray) -> np.ndarray:
        """``F @ x``."""

    @abstractmethod
    def rmatvec(self, g: np.ndarray) -> np.ndarray:
        """``F.T @ g``."""

    @abstractmethod
    def pair_rmatvec(self, g: np.ndarray, h: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """``F.T @ g`` and ``F.T @ h`` in one reading of F."""

    @abstractmethod
    def squares_and_rmatvec(self, y: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Squared column norms and ``F.T @ y`` in one reading of F."""

    def column_squares(self) -> np.ndarray:
        """Squared norms of the columns, diag(F.T @ F)."""
        return self.squares_and_rmatvec(np.zeros(self.shape[0]))[0]

    def update(
        self,
        x: np.ndarray,
        g: np.ndarray,
        beta: float,
        gamma: float,
        take: np.ndarray | None = None,
    ) -> tuple[np.ndarray, Block | None]:
        """In place ``g <- beta*g + gamma*F@x``; returns ``F.T @ g`` and the columns `take`.

        This is one iteration of approximate message passing (and of conjugate gradients). It takes
        two products, unless the storage can do both in one reading.
        """
        g *= beta
        g += gamma * self.matvec(x)
        return self.rmatvec(g), (None if take is None else self.columns(take))

    def through(self, x: np.ndarray, link: Link) -> np.ndarray:
        """``F.T @ g`` with g = link(F @ x), row by row: the gradient of a sum over the rows.

        It takes two products, unless the storage can do both in one reading.
        """
        return self.rmatvec(link(slice(0, self.shape[0]), self.matvec(x)))

    @abstractmethod
    def matvec_enclosed(self, x: np.ndarray) -> Enclosed:
        """``F @ x`` in twice the working precision, with a bound on the error that is left."""

    @abstractmethod
    def rmatvec_enclosed(self, g: Enclosed) -> Enclosed:
        """``F.T @ g`` in the same way, for every vector in the enclosure g."""

    @abstractmethod
    def rows(self, take: np.ndarray | slice) -> Block:
        """``F[take]`` in float64; for a slice it may be a view of F."""

    @abstractmethod
    def columns(self, take: np.ndarray) -> Block:
        """``F[:, take]`` in float64; all columns in their order may be F itself."""

    def working_columns(self, take: np.ndarray) -> Block:
        """``F[:, take]`` in the form in which a working set keeps it: packed if F is."""
        return self.columns(take)

    def sparse_columns(self, take: np.ndarray) -> Columns:
        """``F[:, take]`` without making it dense; only where F is not."""
        raise NotImplementedError

    @abstractmethod
    def matmat(self, X: np.ndarray) -> np.ndarray:
        """``F @ X`` for many right-hand sides."""

    @abstractmethod
    def rmatmat(self, G: np.ndarray) -> np.ndarray:
        """``F.T @ G`` for many right-hand sides."""

    @abstractmethod
    def single(self) -> Block:
        """F in single precision, for products that need not be exact (a copy of half its size)."""

    def rough(self) -> Rough | None:
        """A copy rounded to 16 bits, where passes over it save more than it takes; else None."""
        return None

    def gram(self) -> np.ndarray:
        """``F.T @ F``, dense: for small N only."""
        everything = self.columns(np.arange(self.shape[1]))
        product = everything.T @ everything
        return product.toarray() if sp.issparse(product) else product

    @abstractmethod
    def toarray(self) -> np.ndarray:
        """F as a dense float64 array (for the linear programme, which needs all of it)."""

    def matvec_cost(self, x: np.ndarray) -> float:
        """Part of F that ``matvec(x)`` reads."""
        return 1.0

    def columns_cost(self, n_taken: int) -> float:
        """Part of F that ``columns`` reads to copy that many columns."""
        return n_taken / self.shape[1]

    def update_cost(self, x: np.ndarray, take: np.ndarray | None) -> float:
        """Part of F that ``update`` reads."""
        return self.matvec_cost(x) + 1.0 + (0.0 if take is None else self.columns_cost(take.size))

    def count(self, cost: float) -> None:  # noqa: B027  (most operators count nothing)
        """Take note of a reading of F that no method of the operator did.

        Algorithms call it when they read columns that were copied out earlier. Only `Metered`
        keeps the number.
        """


def as_operator(F: MatrixLike) -> Operator:
    """Wrap F in the storage that fits it, without a copy where the layout allows.

    Dense float64 or float32 in C or Fortran order (memory maps included) and
    ``scipy.sparse`` CSR or CSC are used as they are; any other real matrix is copied once.
    NaN and infinity are not looked for here, because that would read all of F once more; whoever
    computes the squared column norms passes them to `finite_squares`.
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


def finite_squares(squares: np.ndarray) -> np.ndarray:
    """Return squared column norms of F; refuse an F that they show to hold NaN or infinity."""
    if not np.isfinite(squares).all():
        raise ValueError(
            "F contains NaN or infinity (or a column whose squared norm overflows); "
            "remove or impute those entries, or change the units of the column"
        )
    return squares


def _all_of_it(op: Operator, *args: object) -> float:
    return 1.0


def _counted(name: str, cost: Callable[..., float] = _all_of_it) -> Callable[..., Block]:
    """The method `name` of another operator, which counts what it reads."""

    def method(self: Metered, *args: object, **kwargs: object) -> Block:
        self.passes += cost(self._op, *args, *kwargs.values())
        return getattr(self._op, name)(*args, **kwargs)

    return method


class Metered(Operator):
    """Another operator, with a count of what is read through it.

    `passes`: how often F was read; a part of its columns counts as that part of a pass. On a
    machine with fast arithmetic and slow memory this number, not the number of operations, tells
    how long a solve takes.
    """

    def __init__(self, op: Operator) -> None:
        super().__init__(op.shape)
        self._op = op
        self.dense, self.exact_columns = op.dense, op.exact_columns
        self.packed, self.entry_bytes = op.packed, op.entry_bytes
        self.passes = 0.0

    def count(self, cost: float) -> None:
        self.passes += cost

    matvec = _counted("matvec", lambda op, x: op.matvec_cost(x))
    matvec_enclosed = _counted("matvec_enclosed", lambda op, x: op.matvec_cost(x))
    update = _counted("update", lambda op, x, g, b, c, take=None: op.update_cost(x, take))
    through = _counted("through", lambda op, x, link: op.update_cost(x, None))
    columns = _counted("columns", lambda op, take: op.columns_cost(take.size))
    working_columns = _counted("working_columns", lambda op, take: op.columns_cost(take.size))
    sparse_columns = _counted("sparse_columns", lambda op, take: op.columns_cost(take.size))
    rmatvec, rmatvec_enclosed = _counted("rmatvec"), _counted("rmatvec_enclosed")
    pair_rmatvec, squares_and_rmatvec = _counted("pair_rmatvec"), _counted("squares_and_rmatvec")
    matmat, rmatmat, single = _counted("matmat"), _counted("rmatmat"), _counted("single")
    gram, toarray = _counted("gram"), _counted("toarray")

    def rough(self) -> Rough | None:
        copy = self._op.rough()
        self.count(0.0 if copy is None else 1.0)
        return copy

    def rows(self, take: np.ndarray | slice) -> Block:
        rows = self._op.rows(take)
        self.count(rows.shape[0] / self.shape[0])
        return rows
