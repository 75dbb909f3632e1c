"""Genotypes packed in two bits, as in PLINK's .bed files, scaled while they are read."""

from __future__ import annotations

from functools import cached_property, partial
from os import PathLike
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from privasso._threads import chunks, run
from privasso.blocks import RowBlocks, bed_lines, read_bed
from privasso.operators import _enclosed as accurate
from privasso.operators import _genotype_kernels as kernels
from privasso.operators._dense import ColumnMajor
from privasso.operators._enclosed import Enclosed, enclosed, weights_of
from privasso.operators._genotype_scaling import (
    GenotypeScaling,
    Missing,
    Scaling,
    checked_fill,
    levels_of,
)
from privasso.operators._operator import Operator
from privasso.operators._packed_columns import PackedColumns, word_buffer

#: Entries that are decoded at a time where a product needs plain numbers.
_DECODED = 1 << 22


class Genotypes(Operator):
    """A matrix of genotypes in two bits per entry, one row per person and one column per variant.

    An entry is the number of copies (0, 1 or 2) of the allele that the file names first, scaled
    column by column. A missing genotype counts as the mean of its column, or as a given number of
    copies. All of it happens while the packed bytes are read, so that the matrix takes 2 bits per
    entry however it is scaled.

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
    missing : "mean", float or array_like of shape (N,)
        What a missing genotype counts as: the mean of its column, or so many copies, from 0 to 2,
        for all columns or for each. Fits of whole records need numbers that were chosen without
        looking at the data, since means would reveal something about the records. Numbers need
        ``scaling="none"``.

    Attributes
    ----------
    mean : ndarray, shape (N,)
        Mean number of copies where the genotype is known; 0 where it never is.
    deviation : ndarray, shape (N,)
        Standard deviation of the columns with their means in place of missing genotypes.
    n_missing : ndarray of int, shape (N,)

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

    def __init__(
        self,
        packed: np.ndarray,
        n_rows: int,
        *,
        scaling: Scaling = "standard",
        missing: Missing = "mean",
    ) -> None:
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
        self.scaling: Scaling = scaling
        #: Copies that a missing genotype counts as, if that was said beforehand.
        self.given_fill = checked_fill(missing, n)
        if self.given_fill is not None and scaling != "none":
            raise ValueError("a number for missing genotypes needs scaling='none'")

    @classmethod
    def open(
        cls,
        path: str | PathLike[str],
        *,
        shape: tuple[int, int] | None = None,
        scaling: Scaling = "standard",
        missing: Missing = "mean",
    ) -> Genotypes:
        """Map a .bed file of PLINK into memory; only what is in use need be there.

        Parameters
        ----------
        path : path of the .bed file
            The .fam and .bim files beside it, one line per person and per variant, give the shape.
        shape : (int, int), optional
            Numbers of people and variants, if these two files are not there.
        scaling, missing : as in the class.

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
        packed, n_rows = bed_lines(path, shape)
        return cls(packed, n_rows, scaling=scaling, missing=missing)

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

    @cached_property
    def scaled(self) -> GenotypeScaling:
        """What copies become; the columns are counted when this is first needed."""
        return GenotypeScaling(self._count(), self.shape[0], self.scaling, self.given_fill)

    @property
    def mean(self) -> np.ndarray:
        """Mean number of copies where the genotype is known; 0 where it never is."""
        return self.scaled.mean

    @property
    def deviation(self) -> np.ndarray:
        """Standard deviation of the columns with their means in place of missing genotypes."""
        return self.scaled.deviation

    @property
    def n_missing(self) -> np.ndarray:
        """Rows whose genotype is missing, in each column."""
        return self.scaled.n_missing

    def _count(self) -> np.ndarray:
        """For each column how many rows have one copy, two copies and none known."""
        m, n = self.shape
        counts = np.empty((n, 3), dtype=np.int64)

        def work(lo: int, hi: int) -> None:
            as_bytes, as_words, buffer = word_buffer(self._bytes.shape[1])
            kernels.count(self._bytes, lo, hi, m, as_bytes, as_words, buffer, counts)

        run([partial(work, lo, hi) for lo, hi in chunks(n, m * n, align=1)])
        return counts

    def _planes(self, G: np.ndarray) -> np.ndarray:
        """The columns of G, each in four planes."""
        m, n_vectors = G.shape
        padded = np.zeros((n_vectors, 4 * self._bytes.shape[1]))
        padded[:, :m] = G.T
        return np.ascontiguousarray(padded.reshape(n_vectors, -1, 4).transpose(0, 2, 1))

    def matvec(self, x: np.ndarray) -> np.ndarray:
        return self.matmat(x[:, None])[:, 0]

    def rmatvec(self, g: np.ndarray) -> np.ndarray:
        return self.rmatmat(g[:, None])[:, 0]

    def pair_rmatvec(self, g: np.ndarray, h: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        out = self.rmatmat(np.stack([g, h], axis=1))
        return out[:, 0], out[:, 1]

    def squares_and_rmatvec(self, y: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        return self.scaled.squares.copy(), self.rmatvec(y)

    def column_squares(self) -> np.ndarray:
        return self.scaled.squares.copy()

    def matmat(self, X: np.ndarray) -> np.ndarray:
        m, n_bytes = self.shape[0], self._bytes.shape[1]
        out = np.empty((m, X.shape[1]))
        for k, x in enumerate(X.T):
            index = np.flatnonzero(x)
            planes = np.zeros((4, n_bytes))
            args = (
                index,
                (self.scaled.factor * x)[index],
                self.scaled.complete,
                self.scaled.fill,
                planes,
            )
            pieces = chunks(n_bytes, m * index.size)
            run([partial(kernels.axpys, self._bytes, lo, hi, *args) for lo, hi in pieces])
            out[:, k] = planes.T.reshape(-1)[:m] + self.scaled.offset @ x
        return out

    def rmatmat(self, G: np.ndarray) -> np.ndarray:
        m, n = self.shape
        planes = self._planes(G)
        out = np.empty((G.shape[1], n))
        pieces = chunks(n, m * n * G.shape[1], align=1)
        args = self.scaled.complete, self.scaled.fill, planes, out
        run([partial(kernels.dots, self._bytes, lo, hi, *args) for lo, hi in pieces])
        return (self.scaled.factor * out + np.outer(G.sum(axis=0), self.scaled.offset)).T

    def sums_of_copies(self, g: np.ndarray) -> np.ndarray:
        """Σ copies·g in each column, where a missing genotype is one copy, whatever the scaling.

        The sums are exact if g holds integers, because no number on the way is larger than
        2·Σ|g|, which has to be below 2^53.
        """
        m, n = self.shape
        planes, out = self._planes(g[:, None]), np.empty((1, n))
        args = np.ones(n, dtype=np.bool_), np.ones(n), planes, out
        pieces = chunks(n, m * n, align=1)
        run([partial(kernels.dots, self._bytes, lo, hi, *args) for lo, hi in pieces])
        return out[0]

    def sums_of_kinds(self, g: np.ndarray) -> np.ndarray:
        """Σ g over the rows with one copy, with two copies, and missing; of shape (3, N).

        The sums are exact if g holds integers with Σ|g| below 2^53.
        """
        m, n = self.shape
        planes, out = self._planes(g[:, None])[0], np.empty((3, n))
        pieces = chunks(n, 2 * m * n, align=1)
        run([partial(kernels.dots_each, self._bytes, lo, hi, planes, out) for lo, hi in pieces])
        return out

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

    def _decodable(self, n: int) -> list[tuple[int, int]]:
        step = max(1, _DECODED // self.shape[0])
        return [(lo, min(lo + step, n)) for lo in range(0, n, step)]

    def rows(self, take: np.ndarray | slice) -> np.ndarray:
        rows = np.arange(self.shape[0])[take]
        return np.ascontiguousarray(self._decoded(np.arange(self.shape[1]), rows).T)

    def columns(self, take: np.ndarray) -> np.ndarray:
        return self._decoded(take, np.arange(self.shape[0])).T

    def _decoded(self, columns: np.ndarray, rows: np.ndarray) -> np.ndarray:
        """One line per column."""
        out = np.empty((columns.size, rows.size))
        if self.given_fill is None:
            values = self.scaled.values[columns]
        else:
            values = levels_of(self.given_fill[columns])

        def work(lo: int, hi: int) -> None:
            kernels.decode(self._bytes, columns[lo:hi], rows, values[lo:hi], out[lo:hi])

        run([partial(work, *piece) for piece in chunks(columns.size, out.size, align=1)])
        return out

    def __getitem__(self, at: tuple[slice, Any]) -> np.ndarray:
        """``F[:, columns]``, decoded; no other index is possible."""
        rows, columns = at
        if rows != slice(None):
            raise IndexError("packed genotypes are taken by columns: F[:, columns]")
        return self.columns(np.arange(self.shape[1])[columns])

    def __matmul__(self, x: np.ndarray) -> np.ndarray:
        """``F @ x``, from the columns where x is not zero alone."""
        index, out = np.flatnonzero(x), np.zeros(self.shape[0])
        for lo, hi in self._decodable(index.size):
            out += self.columns(index[lo:hi]) @ x[index[lo:hi]]
        return out

    def working_columns(self, take: np.ndarray) -> PackedColumns:
        return PackedColumns(self, self._bytes, take)

    def single(self) -> np.ndarray:
        return self.toarray().astype(np.float32)

    def gram(self) -> np.ndarray:
        return self.working_columns(np.arange(self.shape[1])).gram()

    def toarray(self) -> np.ndarray:
        return self.columns(np.arange(self.shape[1]))

    def matvec_cost(self, x: np.ndarray) -> float:
        return np.count_nonzero(x) / self.shape[1]
