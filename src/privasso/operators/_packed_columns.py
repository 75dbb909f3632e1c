"""Columns of a matrix of genotypes that stay packed, and their products by counting bits."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING

import numpy as np

from privasso._threads import chunks, run
from privasso.operators import _genotype_kernels as kernels

if TYPE_CHECKING:
    from privasso.operators._genotypes import Genotypes

#: Bytes of the columns that are unpacked to words at a time, on each side of a product.
_TILE = 1 << 23


def word_buffer(n_bytes: int) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Zeroed memory for a column, as bytes and as words, and words for two of them."""
    n_words = -(-n_bytes // 8)
    words = np.zeros(n_words, dtype=np.uint64)
    return words.view(np.uint8), words, np.empty((2, n_words), dtype=np.uint64)


class PackedColumns:
    """Some columns of `Genotypes`, which are not copied; products of two of them are exact.

    A column is a·d + c + k·g, d the copies (0 where missing) and g the missing genotypes. The
    products of two columns follow from those of d and g, which are counts of bits, with one
    rounding per term.
    """

    def __init__(self, op: Genotypes, packed: np.ndarray, index: np.ndarray) -> None:
        self._op, self._packed, self.index = op, packed, index
        self.shape = (op.shape[0], index.size)

    def joined(self, other: PackedColumns) -> PackedColumns:
        """These columns, then the others."""
        return PackedColumns(self._op, self._packed, np.concatenate([self.index, other.index]))

    def taken(self, keep: np.ndarray) -> PackedColumns:
        """Some of these columns."""
        return PackedColumns(self._op, self._packed, self.index[keep])

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
        out = np.empty((self.index.size, other.index.size))
        same = self is other
        step = max(1, _TILE // self._packed.shape[1])
        for lo in range(0, self.index.size, step):
            left = _Words(self._op, self._packed, self.index[lo : lo + step])
            for start in range(lo if same else 0, other.index.size, step):
                right = left
                if not (same and start == lo):
                    right = _Words(self._op, self._packed, other.index[start : start + step])
                block = left.times(right)
                out[lo : lo + step, start : start + step] = block
                if same:
                    out[start : start + step, lo : lo + step] = block.T
        return out


class _Words:
    """A few columns as words of bits."""

    def __init__(self, op: Genotypes, packed: np.ndarray, index: np.ndarray) -> None:
        self.op, self.index = op, index
        n_words = -(-packed.shape[1] // 8)
        self.copies = np.empty((index.size, n_words), dtype=np.uint64)
        missing = np.empty((index.size, n_words), dtype=np.uint64)

        def work(lo: int, hi: int) -> None:
            as_bytes, as_words, _ = word_buffer(packed.shape[1])
            for k in range(lo, hi):
                kernels.load(
                    packed[index[k]],
                    op.shape[0],
                    as_bytes,
                    as_words,
                    self.copies[k],
                    missing[k],
                )

        pieces = chunks(index.size, index.size * op.shape[0], align=1)
        run([partial(work, lo, hi) for lo, hi in pieces])
        self.gaps = np.flatnonzero(op.scaled.n_missing[index])
        self.missing = missing[self.gaps]

    def times(self, other: _Words) -> np.ndarray:
        """Products of these columns with others."""
        op, m = self.op, self.op.shape[0]
        a, c = op.scaled.factor[self.index], op.scaled.offset[self.index]
        b, e = op.scaled.factor[other.index], op.scaled.offset[other.index]
        exchanged = np.empty_like(self.copies)
        kernels.exchange(self.copies, exchanged)
        both = _common(self.copies, other.copies, m) + _common(exchanged, other.copies, m)
        ones, others = op.scaled.copies[self.index], op.scaled.copies[other.index]
        out = np.outer(a, b) * both + np.outer(a * ones, e) + np.outer(c, b * others)
        out += m * np.outer(c, e)
        # Where a genotype is missing, `fill` copies are added.
        i, j = self.gaps, other.gaps
        k = a[i] * op.scaled.fill[self.index[i]]
        h = b[j] * op.scaled.fill[other.index[j]]
        if i.size:
            here = _common(self.missing, other.copies, m)
            gone = op.scaled.n_missing[self.index[i]]
            out[i] += k[:, None] * (b * here + np.outer(gone, e))
        if j.size:
            there = _common(self.copies, other.missing, m)
            gone = op.scaled.n_missing[other.index[j]]
            out[:, j] += h * (a[:, None] * there + np.outer(c, gone))
        if i.size and j.size:
            out[np.ix_(i, j)] += np.outer(k, h) * _common(self.missing, other.missing, m) / 2
        return out


def _common(A: np.ndarray, B: np.ndarray, n_rows: int) -> np.ndarray:
    """Numbers of bits that are set in a line of A and in a line of B."""
    out = np.zeros((A.shape[0], B.shape[0]), dtype=np.int64)

    def work(lo: int, hi: int) -> None:
        kernels.common_bits(A[lo:hi], B, out[lo:hi])

    pieces = chunks(A.shape[0], n_rows * A.shape[0] * B.shape[0] // 16, align=1)
    run([partial(work, lo, hi) for lo, hi in pieces])
    return out
