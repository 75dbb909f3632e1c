"""Public genotypes packed in two bits, as in PLINK's .bed files, scaled while they are read.

The two bits of an entry are 00, 10 and 11 for two, one and no copies of the counted allele, and 01
where the genotype is missing (the layout of PLINK's .bed files).

A vector over the rows is stored in four planes: plane k holds the entries 4i + k, so that the
entries of the four genotypes of byte i are at place i of each plane. Loops over bytes then use
vector registers. Planes are longer than the vector by up to three entries, which are zero.
"""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial
from os import PathLike
from typing import Literal

import numpy as np
from numba import njit
from numpy.typing import ArrayLike

from privasso._threads import chunks, run
from privasso.blocks import RowBlocks, bed_lines, copies, read_bed
from privasso.operators import _enclosed as accurate
from privasso.operators._dense import ColumnMajor
from privasso.operators._enclosed import Enclosed, enclosed, weights_of
from privasso.operators._operator import Operator

_FAST = {"reassoc", "contract", "nsz"}
#: Bytes of a column that are read at a time: with the planes they need 128 KB of cache.
_STRIP = 4096
#: Columns that are read strip by strip before the next ones: they are close to one another in
#: the file.
_GROUP = 64
#: What is summed: copies of the allele, one for a missing genotype; people with two; or missing.
COPIES, TWO, GONE = 0, 1, 2


@njit(nogil=True, cache=True, fastmath=_FAST)
def _dot(column, kind, a, b, c, d):  # pragma: no cover
    """The sum of the vector times what the kind says of each genotype."""
    s = 0.0
    t = 0.0
    u = 0.0
    v = 0.0
    for i in range(column.size):
        x = np.int32(column[i]) ^ 255
        low, high = x & 0x55, (x >> 1) & 0x55
        if kind == COPIES:
            x = low + high
        elif kind == TWO:
            x = low & high
        else:
            x = high & ~low
        s += np.float64(x & 3) * a[i]
        t += np.float64((x >> 2) & 3) * b[i]
        u += np.float64((x >> 4) & 3) * c[i]
        v += np.float64(x >> 6) * d[i]
    return s + t + u + v


@njit(nogil=True, cache=True)
def dots(packed, index, lo, hi, kind, planes, out):  # pragma: no cover
    """``out[k]`` = the sum for column index[k]; for k from lo to hi."""
    n_bytes = packed.shape[1]
    out[lo:hi] = 0.0
    for first in range(lo, hi, _GROUP):
        last = min(hi, first + _GROUP)
        for start in range(0, n_bytes, _STRIP):
            stop = min(n_bytes, start + _STRIP)
            a, b = planes[0, start:stop], planes[1, start:stop]
            c, d = planes[2, start:stop], planes[3, start:stop]
            for k in range(first, last):
                out[k] += _dot(packed[index[k], start:stop], kind, a, b, c, d)


Scaling = Literal["standard", "centre", "none"]
#: Entries that are decoded at a time where a product needs plain numbers.
_DECODED = 1 << 22
#: Entries of some rows that are decoded at a time.
_TILE = 1 << 18


class Genotypes(Operator):
    """A matrix of public genotypes in two bits per entry, a row per person, a column per variant.

    An entry is the number of copies (0, 1 or 2) of the allele that the file names first, scaled
    column by column. A missing genotype counts as the mean of its column. All of it happens while
    the packed bytes are read, so that the matrix takes 2 bits per entry however it is scaled. For
    private fits see `read_bed` of `privasso.blocks`.

    Parameters
    ----------
    packed : ndarray of uint8, shape (N, ⌈M/4⌉)
        One line per variant, in the layout of .bed files: four genotypes to a byte, the first in
        the lowest two bits; 00, 10 and 11 for two, one and no copies, 01 for missing. It is used
        in place and may be memory-mapped.
    n_rows : int
        M.
    scaling : {"standard", "centre", "none"}
        ``"standard"`` subtracts the mean and divides by the standard deviation, so that each
        column has squared norm M; a column that does not vary becomes zero. ``"centre"`` only
        subtracts the mean, ``"none"`` neither.

    Attributes
    ----------
    mean : ndarray, shape (N,)
        Mean number of copies where the genotype is known; 0 where it never is.
    deviation : ndarray, shape (N,)
        Standard deviation of the columns with their means in place of missing genotypes.

    Examples
    --------
    Three people and two variants; the second genotype of the second variant is missing.

    >>> import numpy as np
    >>> packed = np.array([[0b00_10_11], [0b11_01_00]], dtype=np.uint8)
    >>> Genotypes(packed, n_rows=3, scaling="none").toarray()
    array([[0., 2.],
           [1., 1.],
           [2., 0.]])
    >>> Genotypes(packed, n_rows=3).column_squares()
    array([3., 3.])
    """

    packed = True
    entry_bytes = 0.25

    def __init__(self, packed: np.ndarray, n_rows: int, *, scaling: Scaling = "standard") -> None:
        if scaling not in ("standard", "centre", "none"):
            raise ValueError(f"scaling must be standard, centre or none, not {scaling!r}")
        if packed.dtype != np.uint8 or packed.ndim != 2:
            raise ValueError("packed must be an array of bytes (uint8) with one line per variant")
        n = packed.shape[0]
        if n_rows < 1 or n < 1:
            raise ValueError(f"there are no genotypes: {n_rows} rows and {n} columns")
        if packed.shape[1] != -(-n_rows // 4):
            raise ValueError(
                f"{n_rows} genotypes take {-(-n_rows // 4)} bytes, not {packed.shape[1]}"
            )
        super().__init__((n_rows, n))
        self._bytes = np.ascontiguousarray(packed).view()
        self._bytes.flags.writeable = False  # as a mapped file is, so that kernels compile once
        every, ones = np.arange(n), self._planes(np.ones(n_rows))
        total, two, gone = (self._sums(every, kind, ones) for kind in (COPIES, TWO, GONE))
        one = total - 2 * two - gone
        known = n_rows - gone
        self.mean = (one + 2 * two) / np.maximum(known, 1)
        squares = one * (1 - self.mean) ** 2 + two * (2 - self.mean) ** 2
        squares += (known - one - two) * self.mean**2
        self.deviation = np.sqrt(squares / n_rows)
        varies = (one > 0) & (one < known) | (two > 0) & (two < known)
        #: What no copy, one, two, and a missing genotype stand for.
        levels = np.stack([np.zeros(n), np.ones(n), np.full(n, 2.0), self.mean], axis=1)
        if scaling != "none":
            levels -= self.mean[:, None]
            size = self.deviation if scaling == "standard" else np.ones(n)
            levels *= np.where(varies, 1.0 / np.where(varies, size, 1.0), 0.0)[:, None]
        self._levels = levels
        counts = np.stack([known - one - two, one, two, gone], axis=1)
        self._squares = np.sum(counts * levels**2, axis=1)
        self._incomplete = np.flatnonzero(gone)

    @classmethod
    def open(
        cls,
        path: str | PathLike[str],
        *,
        shape: tuple[int, int] | None = None,
        scaling: Scaling = "standard",
    ) -> Genotypes:
        """Open a .bed file of PLINK, which is mapped if it takes more than half of the memory.

        Parameters
        ----------
        path : path of the .bed file
            The .fam and .bim files beside it, one line per person and per variant, give the shape.
        shape : (int, int), optional
            Numbers of people and variants, if these two files are not there.
        scaling : as in the class.

        Examples
        --------
        >>> import tempfile
        >>> from pathlib import Path
        >>> import privasso as pv
        >>> with tempfile.TemporaryDirectory() as folder:
        ...     path = Path(folder) / "tiny.bed"
        ...     _ = path.write_bytes(bytes([0x6C, 0x1B, 0x01, 0b00_10_11, 0b10_00_11]))
        ...     F = pv.operators.Genotypes.open(path, shape=(3, 2))
        ...     pv.solve(F, [1.0, 2.0, 4.0], lam=0.5).x.round(4)
        array([1.0581, 0.    ])
        """
        return cls(*bed_lines(path, shape), scaling=scaling)

    @staticmethod
    def table(
        path: str | PathLike[str], y: ArrayLike | str = "pheno", *, missing: ArrayLike = 1.0
    ) -> RowBlocks:
        """Open a .bed file as a table of copies with labels, for `PrivateLasso.fit`.

        Parameters
        ----------
        path : path of the .bed file
            The .fam and .bim files are beside it, one line per person and per variant.
        y : array_like of shape (M,) or "pheno"
            Labels, or the name of those in the sixth column of the .fam file.
        missing : float or array_like of shape (N,)
            Copies that a missing genotype counts as, from 0 to 2, for all variants or for each.
            Choose them without looking at the data: means would tell something about the records.
        """
        return read_bed(path, y, missing=missing)

    def _planes(self, g: np.ndarray) -> np.ndarray:
        """A vector over the rows in four planes."""
        padded = np.zeros(4 * self._bytes.shape[1])
        padded[: g.size] = g
        return np.ascontiguousarray(padded.reshape(-1, 4).T)

    def _sums(self, index: np.ndarray, kind: int, planes: np.ndarray) -> np.ndarray:
        """A sum for each of these columns, see the kernel."""
        out = np.empty(index.size)
        args = kind, planes, out
        pieces = chunks(index.size, self.shape[0] * index.size, align=1)
        run([partial(dots, self._bytes, index, lo, hi, *args) for lo, hi in pieces])
        return out

    def rmatvec(self, g: np.ndarray) -> np.ndarray:
        planes, gaps, (none, one, _, gone) = self._planes(g), self._incomplete, self._levels.T
        out = none * g.sum()
        out += (one - none) * self._sums(np.arange(self.shape[1]), COPIES, planes)
        out[gaps] += (gone - one)[gaps] * self._sums(gaps, GONE, planes)
        return out

    def rmatmat(self, G: np.ndarray) -> np.ndarray:
        return np.stack([self.rmatvec(g) for g in G.T], axis=1)

    def pair_rmatvec(self, g: np.ndarray, h: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        return self.rmatvec(g), self.rmatvec(h)

    def squares_and_rmatvec(self, y: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        return self.column_squares(), self.rmatvec(y)

    def column_squares(self) -> np.ndarray:
        return self._squares.copy()

    def matvec(self, x: np.ndarray) -> np.ndarray:
        return self.matmat(x[:, None])[:, 0]

    def matmat(self, X: np.ndarray) -> np.ndarray:
        index, out = np.flatnonzero(X.any(axis=1)), np.zeros((self.shape[0], X.shape[1]))
        for start, stop in self._tiles(index.size):
            np.matmul(self.decoded(index, start, stop).T, X[index], out=out[start:stop])
        return out

    def _tiles(self, n_columns: int) -> Iterator[tuple[int, int]]:
        """Rows of which so many columns, decoded, stay in cache."""
        step = max(64, _TILE // max(1, n_columns) & -4)
        return ((k, min(k + step, self.shape[0])) for k in range(0, self.shape[0], step))

    def matvec_enclosed(self, x: np.ndarray) -> Enclosed:
        index = np.flatnonzero(x)
        v = Enclosed.exactly(x[index])
        weights, acc = weights_of(v, index.size), np.zeros((3, self.shape[0]))
        for lo, hi in self._decodable(index.size):
            lines = np.ascontiguousarray(self.columns(index[lo:hi]).T)
            part = slice(lo, hi)
            args = v.value[part], v.low[part], weights[part]
            accurate.axpys(lines, 0, hi - lo, np.arange(hi - lo), *args, acc)
        return enclosed(acc[0], acc[1], acc[2], index.size)

    def rmatvec_enclosed(self, g: Enclosed) -> Enclosed:
        out = np.empty((3, self.shape[1]))
        for lo, hi in self._decodable(self.shape[1]):
            out[:, lo:hi] = ColumnMajor(self.columns(np.arange(lo, hi))).rmatvec_enclosed(g)
        return Enclosed(*out)

    def _decodable(self, n: int) -> Iterator[tuple[int, int]]:
        step = max(1, _DECODED // self.shape[0])
        return ((lo, min(lo + step, n)) for lo in range(0, n, step))

    def decoded(self, columns: np.ndarray | slice, start: int, stop: int) -> np.ndarray:
        """Some columns of the rows from one place to another: a line for each column."""
        first = start // 4
        codes = copies(self._bytes[columns, first : -(-stop // 4)])
        codes = codes[:, start - 4 * first : stop - 4 * first]
        levels = self._levels[columns]
        found = codes * (levels[:, 1:2] - levels[:, :1])
        found += levels[:, :1]
        np.copyto(found, levels[:, 3:], where=codes == 3)
        return found

    def rows(self, take: np.ndarray | slice) -> np.ndarray:
        if isinstance(take, slice):
            start, stop, step = take.indices(self.shape[0])
            return np.ascontiguousarray(self.decoded(slice(None), start, stop).T[::step])
        return np.concatenate([self.rows(slice(k, k + 1)) for k in take])

    def columns(self, take: np.ndarray) -> np.ndarray:
        return self.decoded(take, 0, self.shape[0]).T

    def working_columns(self, take: np.ndarray) -> PackedColumns:
        return PackedColumns(self, take)

    def single(self) -> np.ndarray:
        return self.toarray().astype(np.float32)

    def gram(self) -> np.ndarray:
        return self.working_columns(np.arange(self.shape[1])).gram()

    def toarray(self) -> np.ndarray:
        return self.columns(np.arange(self.shape[1]))

    def matvec_cost(self, x: np.ndarray) -> float:
        return np.count_nonzero(x) / self.shape[1]


class PackedColumns:
    """Some columns of `Genotypes`, which are not copied."""

    def __init__(self, op: Genotypes, index: np.ndarray) -> None:
        self._op, self.index = op, index
        self.shape = (op.shape[0], index.size)

    def joined(self, other: PackedColumns) -> PackedColumns:
        """These columns, then the others."""
        return PackedColumns(self._op, np.concatenate([self.index, other.index]))

    def taken(self, keep: np.ndarray) -> PackedColumns:
        """Some of these columns."""
        return PackedColumns(self._op, self.index[keep])

    def matvec(self, x: np.ndarray) -> np.ndarray:
        """The sum of the columns times x."""
        whole = np.zeros(self._op.shape[1])
        whole[self.index] = x
        return self._op.matvec(whole)

    def gram(self) -> np.ndarray:
        """Products of these columns with one another."""
        return self.cross(self)

    def cross(self, other: PackedColumns) -> np.ndarray:
        """Products of these columns (rows of the result) with others of the same matrix."""
        out = np.zeros((self.index.size, other.index.size))
        for start, stop in self._op._tiles(max(out.shape)):
            left = right = self._op.decoded(self.index, start, stop)
            if other is not self:
                right = self._op.decoded(other.index, start, stop)
            out += left @ right.T
        return out
