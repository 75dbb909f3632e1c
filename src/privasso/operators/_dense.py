"""Dense storages: row-major (C order) and column-major (Fortran order)."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial

import numpy as np

from privasso._blas import gram_matrix, one_thread, product, product_by_columns
from privasso._threads import chunks, run
from privasso.operators import _enclosed as accurate
from privasso.operators import _kernels as kernels
from privasso.operators._enclosed import Enclosed, enclosed, weights_of
from privasso.operators._operator import Link, Operator
from privasso.operators._rough import Rough

#: Entries of F in one block of rows of `through`: half a megabyte, which stays in cache.
_CHUNK = 1 << 16
#: Entries that a compiled loop reads before Python may be interrupted: a tenth of a second.
_TURN = 1 << 25
#: Bytes of F from which on a rounded copy is made. With a smaller F all takes milliseconds.
ROUGH_FROM = 1 << 22


class _Dense(Operator):
    """The array, and the products that both layouts leave to BLAS."""

    def __init__(self, F: np.ndarray) -> None:
        super().__init__((F.shape[0], F.shape[1]))
        self._F, self.entry_bytes = F, float(F.itemsize)

    def columns(self, take: np.ndarray) -> np.ndarray:
        """Copied in the order of F, or F itself where it is what is asked for."""
        everything = take.size == self.shape[1] and self._F.dtype == np.float64
        if everything and np.array_equal(take, np.arange(take.size)):
            return self._F
        by_rows = self._F.flags.c_contiguous
        taken = self._F.take(take, axis=1) if by_rows else self._F.T.take(take, axis=0).T
        return taken.astype(np.float64, copy=False)

    def matmat(self, X: np.ndarray) -> np.ndarray:
        multiply = product_by_columns if X.flags.f_contiguous else product
        return multiply(self._F, X)

    def rmatmat(self, G: np.ndarray) -> np.ndarray:
        multiply = product_by_columns if G.flags.f_contiguous else product
        return multiply(self._F.T, G)

    def single(self) -> np.ndarray:
        if self._F.dtype == np.float32:
            return self._F
        out = np.empty_like(self._F, dtype=np.float32)
        lines, rounded = (self._F, out) if self._F.flags.c_contiguous else (self._F.T, out.T)

        def work(lo: int, hi: int) -> None:
            with np.errstate(over="ignore"):  # what is too large becomes infinite
                rounded[lo:hi] = lines[lo:hi]

        run([partial(work, lo, hi) for lo, hi in chunks(len(lines), self._F.size, align=1)])
        return out

    def gram(self) -> np.ndarray:
        return gram_matrix(self._F.astype(np.float64, copy=False))

    def toarray(self) -> np.ndarray:
        return np.asarray(self._F, dtype=np.float64)

    def rows(self, take: np.ndarray | slice) -> np.ndarray:
        return np.ascontiguousarray(self._F[take], dtype=np.float64)


def _products(lines: np.ndarray, v: np.ndarray) -> np.ndarray:
    """Each line times v."""
    n_lines, out = len(lines), np.empty(len(lines))
    pieces = chunks(n_lines, lines.size)
    run([partial(kernels.rows_product, lines, lo, hi, v, out) for lo, hi in pieces])
    return out


def _dots(lines: np.ndarray, v: Enclosed) -> Enclosed:
    """Each line times v, enclosed."""
    n_lines = lines.shape[0]
    index = np.flatnonzero((v.value != 0) | (v.error != 0))
    part = Enclosed(*(np.ascontiguousarray(entry[index]) for entry in v))
    out = np.empty((3, n_lines))
    args = (index, part.value, part.low, weights_of(part, index.size), out)
    pieces = chunks(n_lines, n_lines * index.size)
    step = max(1, _TURN // max(1, index.size))
    run([partial(_in_turns, accurate.dots, lines, lo, hi, step, *args) for lo, hi in pieces])
    return enclosed(out[0], out[1], out[2], index.size)


def _axpys(lines: np.ndarray, v: Enclosed) -> Enclosed:
    """The sum of the lines times the entries of v, enclosed."""
    length = lines.shape[1]
    index = np.flatnonzero((v.value != 0) | (v.error != 0))
    part = Enclosed(*(entry[index] for entry in v))
    weights = weights_of(part, index.size)
    pieces = chunks(index.size, index.size * length) or [(0, 0)]
    acc = np.zeros((len(pieces), 3, length))
    step = max(1, _TURN // length)
    args = (index, part.value, part.low, weights)
    run(
        [
            partial(_in_turns, accurate.axpys, lines, lo, hi, step, *args, own)
            for (lo, hi), own in zip(pieces, acc, strict=True)
        ]
    )
    high, low, size = acc[0]
    for other in acc[1:]:
        high, error = accurate.two_sum(high, other[0])
        low = low + error + other[1]
        size = size + other[2]
    return enclosed(high, low, size, index.size)


def _in_turns(
    kernel: Callable[..., None], lines: np.ndarray, lo: int, hi: int, step: int, *args: object
) -> None:
    """Run the kernel over lo..hi, `step` lines at a time."""
    for start in range(lo, hi, step):
        kernel(lines, start, min(start + step, hi), *args)


class RowMajor(_Dense):
    """C order: four rows are read once and used for both products while they are in cache."""

    def _reduce_rows(self, kernel: Callable[..., None], n_out: int, *args: object) -> np.ndarray:
        """Run `kernel` with `n_out` accumulators of its own for each thread, and add them up."""
        m, n = self.shape
        pieces = chunks(m, m * n)
        acc = np.zeros((len(pieces), n_out, n))
        run(
            [
                partial(kernel, self._F, lo, hi, *args, *part)
                for (lo, hi), part in zip(pieces, acc, strict=True)
            ]
        )
        return acc[0] if len(pieces) == 1 else acc.sum(axis=0)

    def rough(self) -> Rough | None:
        large = self._F.dtype == np.float64 and self._F.nbytes >= ROUGH_FROM
        return Rough(self._F) if large else None

    def matvec(self, x: np.ndarray) -> np.ndarray:
        return _products(self._F, x)

    def rmatvec(self, g: np.ndarray) -> np.ndarray:
        if self._F.dtype != np.float64:
            return self.update(np.zeros(self.shape[1]), g.copy(), 1.0, 0.0)[0]
        m, n = self.shape
        pieces = chunks(m, m * n)
        if len(pieces) == 1:
            return g @ self._F
        acc = np.empty((len(pieces), n))

        def work(lo: int, hi: int, out: np.ndarray) -> None:
            np.dot(g[lo:hi], self._F[lo:hi], out=out)

        with one_thread():
            run([partial(work, *piece, out) for piece, out in zip(pieces, acc, strict=True)])
        return acc.sum(axis=0)

    def pair_rmatvec(self, g: np.ndarray, h: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        out = self._reduce_rows(kernels.rows_pair_product, 2, g, h)
        return out[0], out[1]

    def squares_and_rmatvec(self, y: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        out = self._reduce_rows(kernels.rows_squares_and_product, 2, y)
        return out[1], out[0]

    def update(
        self,
        x: np.ndarray,
        g: np.ndarray,
        beta: float,
        gamma: float,
        take: np.ndarray | None = None,
    ) -> tuple[np.ndarray, np.ndarray | None]:
        out = self._reduce_rows(kernels.rows_update, 1, x, g, beta, gamma)
        return out[0], (None if take is None else self.columns(take))

    def through(self, x: np.ndarray, link: Link) -> np.ndarray:
        """Block by block of rows, which stay in cache from the first product to the second."""
        m, n = self.shape
        step = max(4, _CHUNK // n)
        pieces = chunks(m, m * n)
        acc = np.zeros((len(pieces), n))

        def work(lo: int, hi: int, out: np.ndarray) -> None:
            for start in range(lo, hi, step):
                rows = slice(start, min(start + step, hi))
                block = self._F[rows].astype(np.float64, copy=False)
                out += link(rows, block @ x) @ block

        if len(pieces) == 1:
            work(*pieces[0], acc[0])
            return acc[0]
        with one_thread():
            run([partial(work, *piece, out) for piece, out in zip(pieces, acc, strict=True)])
        return acc.sum(axis=0)

    def matvec_enclosed(self, x: np.ndarray) -> Enclosed:
        return _dots(self._F, Enclosed.exactly(x))

    def rmatvec_enclosed(self, g: Enclosed) -> Enclosed:
        return _axpys(self._F, g)

    def columns_cost(self, n_taken: int) -> float:
        # A cache line holds eight numbers: to read one of a row is to read its seven neighbours.
        return min(1.0, 8 * n_taken / self.shape[1])

    def update_cost(self, x: np.ndarray, take: np.ndarray | None) -> float:
        return 1.0 + (0.0 if take is None else self.columns_cost(take.size))


class ColumnMajor(_Dense):
    """Fortran order: ``F @ x`` reads only the columns in the support of x."""

    def _over_columns(self, kernel: Callable[..., None], *args: object) -> None:
        m, n = self.shape
        run([partial(kernel, self._F, lo, hi, *args) for lo, hi in chunks(n, m * n, align=1)])

    def matvec(self, x: np.ndarray) -> np.ndarray:
        support = np.flatnonzero(x)
        return self._F[:, support] @ x[support]

    def matvec_cost(self, x: np.ndarray) -> float:
        return np.count_nonzero(x) / self.shape[1]

    def pair_rmatvec(self, g: np.ndarray, h: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        out = np.empty((2, self.shape[1]))
        self._over_columns(kernels.columns_pair_product, g, h, out[0], out[1])
        return out[0], out[1]

    def squares_and_rmatvec(self, y: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        out = np.empty((2, self.shape[1]))
        self._over_columns(kernels.columns_squares_and_product, y, out[0], out[1])
        return out[1], out[0]

    def rmatvec(self, g: np.ndarray) -> np.ndarray:
        return _products(self._F.T, g)

    def matvec_enclosed(self, x: np.ndarray) -> Enclosed:
        return _axpys(self._F.T, Enclosed.exactly(x))

    def rmatvec_enclosed(self, g: Enclosed) -> Enclosed:
        return _dots(self._F.T, g)
