"""Sums of products of columns and labels in integers, in one pass over the table."""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import cached_property

import numpy as np
import scipy.sparse as sp

from privasso._types import SparseMatrix
from privasso.blocks import Variants
from privasso.programs import _association_kernels as kernels

#: Entries and labels are integers of these sizes at most.
ENTRY, LABEL = 1 << 16, 1 << 20
#: Sparse rows whose sums are exact: no difference of two entries is larger than 2^17.
_SPARSE_ROWS = 1 << 16
#: Entries of sparse rows that are made integers before they are summed.
_ENTRIES = 1 << 17
#: More rows would not fit 64 bits, and the places of more columns not 32.
MOST_ROWS, _MOST_COLUMNS = (1 << 26) - 1, 1 << 32


@dataclass(frozen=True, eq=False)
class IntegerColumns:
    """How the entries of columns become integers, each by itself.

    An entry x becomes the integer nearest to 2^16·(x − origin)/unit, cut to [least, largest], which
    lies within ±2^16. A missing entry becomes the middle of these limits. A column whose unit is
    zero becomes zeros, whatever it holds. Where zero is the lower bound of every column, so that it
    becomes −2^16, the integer is computed as that of 2^16·x/unit, less 2^16: then sparse rows need
    one number for each column only.

    Attributes
    ----------
    origin, unit : ndarray of shape (N,)
        As above. Columns that are all alike may be described by one: then the shape is (1,).
    least, largest : ndarray of shape (N,)
        Integers, as floating-point numbers.
    """

    origin: np.ndarray = field(repr=False)
    unit: np.ndarray = field(repr=False)
    least: np.ndarray = field(repr=False)
    largest: np.ndarray = field(repr=False)

    @cached_property
    def factor(self) -> np.ndarray:
        """2^16/unit, or zero."""
        return _factor(self.unit)

    @cached_property
    def shift(self) -> int:
        """2^16 if entries are measured from zero, the lower bound of all columns; otherwise 0."""
        usual = (self.least == -ENTRY) & (self.largest == ENTRY) & np.isfinite(self.factor)
        return ENTRY if np.all((self.origin == self.unit) & (self.unit > 0.0) & usual) else 0

    @property
    def scaling(self) -> tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray]:
        """From where entries are measured, factors, and limits of the integers before the shift."""
        if not self.shift:
            return self.origin, self.factor, self.least, self.largest
        start = np.zeros(self.origin.size)
        return start, self.factor, self.least + self.shift, self.largest + self.shift

    @classmethod
    def within(cls, bounds: np.ndarray, origin: np.ndarray, unit: np.ndarray) -> IntegerColumns:
        """Columns whose values are cut to bounds that lie within one unit of the origin."""
        factor = _factor(unit)
        least, largest = (
            np.clip(np.rint((end - origin) * factor), -ENTRY, ENTRY)
            for end in (bounds[:, 0], bounds[:, 1])
        )
        return cls(origin, unit, least, largest)

    def products(self, X: SparseMatrix, labels: np.ndarray) -> np.ndarray:
        """Σ_μ k_μi ℓ_μ for each column, exactly, of type int64.

        A record adds its own integers times its own label and changes nothing else, so the sums of
        two tables that differ in one record differ by at most 2^16·|ℓ| in each column.

        Parameters
        ----------
        X : ndarray, sparse matrix or Variants of shape (M, N)
            In any order, of any floating-point type or of integers, memory-mapped or not; CSR or
            CSC. Sparse columns are not filled, even where zero does not become zero. Matrices of
            int8 are read as they are, and genotypes are decoded some columns at a time.
        labels : ndarray of int64, shape (M,)
            ℓ, at most 2^20 in size.
        """
        if X.shape[1] >= _MOST_COLUMNS:
            raise ValueError(f"at most {_MOST_COLUMNS - 1} columns can be summed")
        if X.shape[0] > MOST_ROWS:
            raise ValueError(f"at most {MOST_ROWS} rows can be summed without rounding")
        if labels.size and int(np.max(np.abs(labels))) > LABEL:
            raise ValueError("labels must be at most 2^20 in size")
        ell = labels.astype(np.float64)
        if isinstance(X, Variants):
            every = self if self.origin.size == 1 else None
            parts = [
                (every or self._some(span)).products(block, labels)
                for span, block in X.column_blocks()
            ]
            return np.concatenate(parts)
        if sp.issparse(X):
            return self._sparse(X, ell)
        X = np.asanyarray(X)
        found = self._small(X, ell) if X.dtype in (np.int8, np.bool_) else None
        return self._each(X.shape[1])._dense(X, ell) if found is None else found

    def _each(self, n: int) -> IntegerColumns:
        """The same with a description of each of N columns."""
        parts = (self.origin, self.unit, self.least, self.largest)
        if self.origin.size == n:
            return self
        return IntegerColumns(*(np.full(n, part[0]) for part in parts))

    def _some(self, span: slice) -> IntegerColumns:
        """The same for some of the columns."""
        parts = (self.origin, self.unit, self.least, self.largest)
        return IntegerColumns(*(part[span] for part in parts))

    def _dense(self, X: np.ndarray, ell: np.ndarray) -> np.ndarray:
        m, n = X.shape
        total, scaling = np.zeros(n, dtype=np.int64), self.scaling
        by_columns = X.flags.f_contiguous and not X.flags.c_contiguous
        for start in range(0, m, kernels.MOST_ROWS):
            stop = min(start + kernels.MOST_ROWS, m)
            block = np.asarray(X[start:stop])
            kernel = kernels.by_columns if by_columns else kernels.by_rows
            sums = np.zeros(n)
            kernel(block, ell[start:stop], *scaling, sums)
            total += sums.astype(np.int64)
        total -= self.shift * int(ell.sum())
        return total

    def _sparse(self, X: SparseMatrix, ell: np.ndarray) -> np.ndarray:
        """Stored entries as far as they differ from zero, and what zeros would add."""
        stored = X if X.format in ("csr", "csc") else X.tocsr()
        by_columns = stored.format == "csc"
        total = (self._stored_columns if by_columns else self._stored_rows)(stored, ell)
        if total is None:
            # Two entries in one place would count twice.
            stored = stored.copy()
            stored.sum_duplicates()
            total = (self._stored_columns if by_columns else self._stored_rows)(stored, ell)
            assert total is not None
        return total

    def _of_zeros(self, n: int, ell: np.ndarray) -> np.ndarray:
        """The sums of columns of zeros."""
        total = np.empty(n, dtype=np.int64)
        total[:] = (-self.shift if self.shift else self._of(0.0)) * int(ell.sum())
        return total

    def _with_zero(self) -> tuple[np.ndarray, ...]:
        """The scaling, and what zero becomes before the shift."""
        zero = np.zeros(1) if self.shift else self._of(0.0).astype(np.float64)
        return *self.scaling, zero

    def _stored_columns(self, X: SparseMatrix, ell: np.ndarray) -> np.ndarray | None:
        """The sums of CSC columns; None if entries are not in order, or are there twice."""
        # Labels of 21 bits are exact in 32, and half as long to read.
        short, total = ell.astype(np.float32), self._of_zeros(X.shape[1], ell)
        o, f, s, t, z = (np.broadcast_to(part, total.size) for part in self._with_zero())
        good = kernels.stored_columns(X.indptr, X.indices, X.data, short, o, f, s, t, z, total)
        return total if good else None

    def _stored_rows(self, X: SparseMatrix, ell: np.ndarray) -> np.ndarray | None:
        """The same for CSR rows."""
        m, n = X.shape
        total, parts = self._of_zeros(n, ell), (X.indptr, X.indices, X.data)
        o, f, s, t, z = self._with_zero()
        alike = o.size == 1
        # Columns whose unit is zero become zeros with any limits that enclose zero.
        limits = _common(s[f > 0.0], t[f > 0.0])
        room, columns, sums = np.empty(0), np.empty((0, 0)), np.zeros(n)
        if alike or (limits and not o.any()):
            room = np.empty(max(_ENTRIES, int(np.max(np.diff(X.indptr), initial=0))))
        else:
            columns = np.zeros((n, 8))
            columns[:, :5] = np.column_stack([o, f, s, t, z])
        for start in range(0, m, _SPARSE_ROWS):
            rows = start, min(start + _SPARSE_ROWS, m)
            if alike:
                one = float(o[0]), float(f[0]), float(s[0]), float(t[0]), float(z[0])
                good = kernels.alike_rows(*rows, *parts, ell, *one, sums, room)
            elif limits and room.size:
                good = kernels.scaled_rows(*rows, *parts, ell, f, *limits, sums, room)
            else:
                good = kernels.general_rows(*rows, *parts, ell, columns)
                sums, columns[:, 5] = columns[:, 5].copy(), 0.0
            if not good:
                return None
            kernels.moved(sums, total)
        return total

    def _of(self, x: float | np.ndarray) -> np.ndarray:
        """The integer that a number becomes in each column."""
        start, factor, least, largest = self.scaling
        k = np.clip((x - start) * factor, least, largest)
        return np.rint(k).astype(np.int64) - self.shift

    def _small(self, X: np.ndarray, ell: np.ndarray) -> np.ndarray | None:
        """The sums of small integers, of genotypes for instance; None where k is not a multiple.

        Where 2^16/unit and its product with the origin are integers, k = (2^16/unit)·(x − origin)
        needs no rounding, and the sums of x·ℓ are enough.
        """
        factor = self.factor
        offset = factor * self.origin
        whole = (np.rint(factor) == factor) & (np.rint(offset) == offset) & (factor > 0.0)
        if not whole.all():
            return None
        # The integers whose k is within the limits.
        low = np.ceil((self.least + offset) / factor)
        high = np.floor((self.largest + offset) / factor)
        exact = (low * factor - offset == self.least) & (high * factor - offset == self.largest)
        size = int(max(np.max(np.abs(low)), np.max(np.abs(high)), 1.0)) if exact.all() else 128
        if size > 127:
            return None
        least, largest = (np.empty(X.shape[1], dtype=np.int8) for _ in range(2))
        least[:], largest[:] = low, high
        if X.dtype != np.int8:
            X = X.view(np.int8)
        total, weights = np.zeros(X.shape[1], dtype=np.int64), ell.astype(np.int32)
        by_columns = X.flags.f_contiguous and not X.flags.c_contiguous
        kernel = kernels.small_columns if by_columns else kernels.small_rows
        rows = (1 << 31) // (LABEL * (size + 1))
        for start in range(0, X.shape[0], rows):
            kernel(
                np.asarray(X[start : start + rows]),
                weights[start : start + rows],
                least,
                largest,
                total,
            )
        total *= factor.astype(np.int64)
        total -= offset.astype(np.int64) * int(ell.sum())
        return total


def _common(least: np.ndarray, largest: np.ndarray) -> tuple[float, float] | None:
    """The limits of all columns, if they are the same and enclose zero."""
    if not least.size or np.ptp(least) != 0.0 or np.ptp(largest) != 0.0:
        return None
    low, high = float(least[0]), float(largest[0])
    return (low, high) if low <= 0.0 <= high else None


def _factor(unit: np.ndarray) -> np.ndarray:
    return np.divide(float(ENTRY), unit, out=np.zeros(unit.size), where=unit > 0.0)
