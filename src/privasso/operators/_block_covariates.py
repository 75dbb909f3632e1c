"""Covariates in blocks of rows, known by sums over them that do not depend on their order.

Entries are rounded to integers k = rint(x/2^e), e one for each column such that |k| ≤ 2²⁶. Their
sums and their products are integers too, and matrix products of them are computed without any
rounding. So are whitened rows, up to the last rounding of each entry. Everything is therefore the
same for any cut and order of the rows, in memory, in files or on a cluster.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numba import njit

from privasso._blas import one_thread
from privasso.blocks import Chunk, DataChangedError, RowBlocks, Sums
from privasso.noise import Covariance, Diagonal, Factored
from privasso.operators._covariates import Covariates
from privasso.operators._operator import Operator, as_operator

#: Bits of an entry, of the lower half of one, and of a digit of a whitening matrix.
_BITS, _HALF, _DIGIT = 26, 13, 14
#: Entries that are worked on at a time, and rows, so that sums of products stay below 2⁵³.
_BLOCK, _MOST_ROWS = 1 << 18, 1 << 12
#: Most columns and rows for which all sums are exact.
MOST_COLUMNS, _MOST_TOTAL = 2048, 1 << 30
#: Exponent of a column of zeros.
_EMPTY = -5000
_X_FINITE = "X must be finite; fill or drop missing values before the fit"
_Y_FINITE = "y must be finite; fill or drop missing labels before the fit"
_IN_MEMORY = "this needs the table in memory; pass an array instead of blocks of rows"


@dataclass(frozen=True)
class LargestEntries:
    """A task: the exponents of the largest entries, after a check that all are numbers."""

    def __call__(self, chunks: Iterable[Chunk], state: Any) -> Sums:
        """Return them with the number of rows."""
        rows, largest = 0, None
        for X, y in chunks:
            if not np.isfinite(y).all():
                raise ValueError(_Y_FINITE)
            top = np.full(X.shape[1], _EMPTY)
            for _, part in _cut(X):
                size = np.max(np.abs(part), axis=0, initial=0.0)
                if not np.isfinite(size).all():
                    raise ValueError(_X_FINITE)
                top = np.maximum(top, np.where(size > 0.0, np.frexp(size)[1], _EMPTY))
            largest = top if largest is None else np.maximum(largest, top)
            rows += len(y)
        found = {"rows": np.array([rows])}
        return found if largest is None else {**found, "largest exponent": largest}


@dataclass(frozen=True, eq=False)
class ColumnGrid:
    """Entries as integers: k = rint(x/2^e) − centre."""

    exponents: np.ndarray
    centre: np.ndarray = field(repr=False)

    def integers(self, X: np.ndarray) -> Iterator[tuple[slice, np.ndarray]]:
        """The integers of some rows at a time, as doubles."""
        for span, part in _cut(X):
            yield span, np.rint(np.ldexp(part, -self.exponents)) - self.centre


@dataclass(frozen=True, eq=False)
class IntegerMoments:
    """A task: sums of the integers, of their products, and a checksum of rows and labels."""

    grid: ColumnGrid

    def __call__(self, chunks: Iterable[Chunk], state: Any) -> Sums:
        """Return the sums."""
        n = self.grid.exponents.size
        parts = np.zeros((3, n, n), dtype=np.int64)
        total, seen = np.zeros(n, dtype=np.int64), np.zeros(2, dtype=np.int64)
        with one_thread():
            for X, y in chunks:
                bits = np.ascontiguousarray(y, dtype=np.float64).view(np.int64)
                for span, k in self.grid.integers(X):
                    high = np.floor(np.ldexp(k, -_HALF))
                    low = k - np.ldexp(high, _HALF)
                    for part, (a, b) in zip(
                        parts, ((high, high), (high, low), (low, low)), strict=True
                    ):
                        part += (a.T @ b).astype(np.int64)
                    total += k.sum(axis=0).astype(np.int64)
                    seen[0] += len(k)
                    seen[1:] += checksum(k, bits[span])
        return {"products": parts, "sum": total, "rows": seen[:1], "checksum": seen[1:]}


@dataclass(frozen=True, eq=False)
class BlockWhitening:
    """f ↦ Σ^(−½) f for the live columns, with the same result for any block that a row is in.

    Attributes
    ----------
    grid : ColumnGrid
        Integers of all columns.
    live : ndarray of int
        The columns of Σ.
    scale : ndarray or None
        2^e/σ for independent noise.
    digits : ndarray of shape (2, N, rank) or None
        The whitening matrix in steps of `unit`, cut into two digits.
    """

    grid: ColumnGrid
    live: np.ndarray
    scale: np.ndarray | None
    digits: np.ndarray | None
    unit: float

    @staticmethod
    def of(covariance: Covariance, grid: ColumnGrid, live: np.ndarray) -> BlockWhitening:
        """That of a covariance over the live columns."""
        step = np.ldexp(1.0, grid.exponents[live])
        if isinstance(covariance, Diagonal):
            with np.errstate(divide="ignore"):
                return BlockWhitening(grid, live, step / covariance.sigma, None, 1.0)
        matrix = (covariance.whiten(np.eye(live.size)) * step).T
        unit = float(2.0 ** (np.frexp(np.max(np.abs(matrix)))[1] - 2 * _DIGIT))
        whole = np.rint(matrix / unit)
        high = np.rint(np.ldexp(whole, -_DIGIT))
        return BlockWhitening(
            grid, live, None, np.array([whole - np.ldexp(high, _DIGIT), high]), unit
        )

    @property
    def rank(self) -> int:
        """Entries of a whitened row."""
        return self.live.size if self.digits is None else self.digits.shape[2]

    def rows(self, X: np.ndarray) -> Iterator[tuple[slice, np.ndarray, np.ndarray]]:
        """Whitened rows, some at a time, with the integers of all columns."""
        for span, k in self.grid.integers(X):
            live = k if self.live.size == k.shape[1] else k[:, self.live]
            if self.digits is None:
                yield span, live * self.scale, k
            else:
                # Both products are of integers and exact.
                low, high = live @ self.digits[0], live @ self.digits[1]
                yield span, (np.ldexp(high, _DIGIT) + low) * self.unit, k


@dataclass(frozen=True, eq=False)
class LargestRow:
    """A task: the largest squared length of a whitened row."""

    whitening: BlockWhitening

    def __call__(self, chunks: Iterable[Chunk], state: Any) -> Sums:
        """Return it as the bits of a number that is not negative, which are ordered like these."""
        largest, rows = 0.0, 0
        with one_thread():
            for X, y in chunks:
                for _, white, _ in self.whitening.rows(X):
                    largest = max(largest, largest_square(np.ascontiguousarray(white)))
                rows += len(y)
        return {"rows": np.array([rows]), "largest square": bits_of(largest)}


def bits_of(number: float) -> np.ndarray:
    """A number that is not negative as an integer; larger ones are larger integers.

    >>> bool(bits_of(2.0)[0] > bits_of(1.9)[0] > bits_of(0.0)[0])
    True
    """
    return np.array([number], dtype=np.float64).view(np.int64)


def number_of(bits: np.ndarray) -> float:
    """The inverse of `bits_of`."""
    return float(np.ascontiguousarray(bits, dtype=np.int64).view(np.float64)[0])


@njit(cache=True, nogil=True)
def largest_square(rows: np.ndarray) -> float:  # pragma: no cover
    """The largest squared length of a row, each summed in the order of its entries."""
    largest = 0.0
    for i in range(rows.shape[0]):
        total = 0.0
        for j in range(rows.shape[1]):
            total += rows[i, j] * rows[i, j]
        if not total <= largest:  # also NaN
            largest = total
    return largest


@njit(cache=True, nogil=True)
def checksum(k: np.ndarray, bits: np.ndarray) -> Any:  # pragma: no cover
    """The sum over rows of a number that all entries of a row and the bits of its label decide."""
    total = np.int64(0)
    for i in range(k.shape[0]):
        h = bits[i]
        for j in range(k.shape[1]):
            h = (h ^ np.int64(k[i, j])) * np.int64(1099511628211)
            h = h ^ (h >> np.int64(29))
        h = h * np.int64(-7046029254386353131)
        total += h ^ (h >> np.int64(32))
    return total


def _cut(X: np.ndarray) -> Iterator[tuple[slice, np.ndarray]]:
    """Blocks of rows as doubles."""
    step = max(1, min(_MOST_ROWS, _BLOCK // X.shape[1]))
    for start in range(0, X.shape[0], step):
        span = slice(start, start + step)
        yield span, np.ascontiguousarray(X[span], dtype=np.float64)


class BlockCovariates(Covariates):
    """Public covariates in blocks of rows: means, norms and the Gram matrix by exact sums.

    It takes two passes. Whatever is solved from a release uses the Gram matrix alone.

    Parameters
    ----------
    blocks : RowBlocks
        The table with its labels, of which only a checksum is kept here.
    centre : bool
        Subtract the column means.

    Examples
    --------
    >>> X = np.array([[1.0, 5.0], [3.0, 5.0], [4.0, 5.0]])
    >>> rows = BlockCovariates(RowBlocks.of_arrays(X, np.zeros(3), n_parts=2), centre=True)
    >>> rows.live, rows.gram.round(6)
    (array([ True, False]), array([[4.666667]]))
    """

    def __init__(self, blocks: RowBlocks, *, centre: bool) -> None:
        m, n = blocks.shape
        if n > MOST_COLUMNS or m > _MOST_TOTAL:
            raise ValueError(
                f"labels of blocks of rows are released for at most {MOST_COLUMNS} columns and "
                f"{_MOST_TOTAL} rows; choose some columns"
            )
        self.source, self.shape, self.centred = blocks, (m, n), centre
        self.weights, self.total = None, float(m)
        first = self._sums(LargestEntries())
        top = first["largest exponent"]
        exponents = np.where(top == _EMPTY, 0, top - _BITS).astype(np.int32)
        plain = ColumnGrid(exponents, np.zeros(n))
        sums = self._sums(IntegerMoments(plain))
        self._identity = sums["checksum"].tobytes()
        total = sums["sum"].astype(object)
        middle = np.array([_nearest(int(s), m) if centre else 0 for s in total], dtype=object)
        high, mixed, low = (part.astype(object) for part in sums["products"])
        exact = (high << (2 * _HALF)) + ((mixed + mixed.T) << _HALF) + low
        exact = exact - np.outer(middle, total) - np.outer(total, middle)
        exact = exact + m * np.outer(middle, middle)
        step = np.ldexp(1.0, exponents)
        self.grid = ColumnGrid(exponents, middle.astype(np.float64))
        self._plain = plain
        self.mean = middle.astype(np.float64) * step
        self.column_sums = (total - m * middle).astype(np.float64) * step
        gram = exact.astype(np.float64) * np.outer(step, step)
        self.squares = np.diagonal(gram).copy()
        self.live = np.array([bool(exact[j, j] > 0) for j in range(n)])
        self._gram = gram[np.ix_(self.live, self.live)]

    def _sums(self, task: Any) -> Sums:
        found = self.source.sum(task, None)
        self.check(found)
        return found

    def check(self, found: Sums) -> None:
        """Refuse sums over other rows than those that were read first."""
        known = getattr(self, "_identity", None)
        if int(found["rows"][0]) != self.shape[0] or (
            known is not None and "checksum" in found and found["checksum"].tobytes() != known
        ):
            raise DataChangedError(
                "the data changed between two passes over them, so nothing was released; fit again "
                "when they are complete"
            )

    @property
    def identity(self) -> bytes:
        """A checksum of the rows and labels, private like the labels."""
        return self._identity

    @property
    def sparse(self) -> bool:
        return False

    @property
    def gram(self) -> np.ndarray:  # pyright: ignore[reportIncompatibleVariableOverride]
        """FᵀF of the live columns, F centred if asked for."""
        return self._gram

    def whitening(self, covariance: Covariance) -> BlockWhitening:
        """How rows are whitened by noise over the live columns."""
        return BlockWhitening.of(covariance, self.grid, np.flatnonzero(self.live))

    @property
    def plain(self) -> ColumnGrid:
        """The integers before a centre is subtracted, of which the checksum is made."""
        return self._plain

    def squared_row_norms(self, covariance: Covariance) -> np.ndarray:
        """The largest f_μᵀΣ⁻¹f_μ, rounded up, as the only entry: a pass over the rows."""
        slack = 1.0 + (self.shape[1] + 16) * np.finfo(np.float64).eps
        found = self._sums(LargestRow(self.whitening(covariance)))
        return np.array([slack * number_of(found["largest square"])])

    def best_for_equal_weights(self) -> Factored:
        """Σ ∝ A^½ with the second moments A of standardised columns.

        It has the least trace among all noise with the same mean squared size of a row.
        """
        scale = np.sqrt(self.squares[self.live])
        with one_thread():
            d, Q = np.linalg.eigh(self._gram / np.outer(scale, scale))
        # Directions in which columns are dependent get as much noise as small ones.
        d = np.maximum(d, 1e-6 * d[-1])
        return Factored(scale[:, None] * (Q * d**0.25))

    def moments(self, weights: np.ndarray | None, *, ones: bool = False) -> np.ndarray:
        if weights is not None:
            raise ValueError(_IN_MEMORY)
        if not ones:
            return self._gram
        n = len(self._gram)
        found = np.zeros((n + 1, n + 1))
        found[:n, :n] = self._gram
        found[n, :n] = found[:n, n] = self.column_sums[self.live]
        found[n, n] = self.shape[0]
        return found

    def normal_products(self, x: np.ndarray) -> np.ndarray:
        return self._gram @ x

    def rmatvec(self, r: np.ndarray) -> np.ndarray:
        """Fᵀr for a vector r of equal entries, which is all that sums over the rows tell."""
        if r.size and np.ptp(r) > 0.0:
            raise ValueError(_IN_MEMORY)
        return np.where(self.live, (r[0] if r.size else 0.0) * self.column_sums, 0.0)

    def operator(self) -> Operator:
        """A square matrix with the same Gram matrix."""
        with one_thread():
            d, Q = np.linalg.eigh(self._gram)
        return as_operator(np.sqrt(np.maximum(d, 0.0))[:, None] * Q.T)

    def reweighted(self, weights: np.ndarray | None) -> Covariates:
        if weights is not None:
            raise ValueError(_IN_MEMORY)
        return self

    def sampled(self, index: np.ndarray) -> Covariates:
        raise ValueError(_IN_MEMORY)

    def selected(self, columns: np.ndarray) -> Covariates:
        raise ValueError(_IN_MEMORY)

    def blocks(
        self, entries: int = 0, start: int = 0, stop: int | None = None
    ) -> Iterator[tuple[slice, np.ndarray]]:
        raise ValueError(_IN_MEMORY)


def _nearest(total: int, count: int) -> int:
    """The integer nearest to total/count."""
    return (2 * total + count) // (2 * count)
