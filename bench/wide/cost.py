"""What the associations of all columns cost: time relative to one plain pass, and memory."""

from __future__ import annotations

import time
import tracemalloc
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import numpy as np
import polars as pl
import scipy.sparse as sp
from numba import njit

from privasso.accounting import ChoiceLoss
from privasso.blocks import RowBlocks, Variants
from privasso.operators import Genotypes
from privasso.programs._screening import Screening
from privasso.queries import Answering, bit_source

REPEATS = 7


@njit(nogil=True)
def _plain(X, y, out):  # pragma: no cover
    """Xᵀy of small integers in floating point, row by row."""
    for i in range(X.shape[0]):
        for j in range(X.shape[1]):
            out[j] += X[i, j] * y[i]


def table() -> pl.DataFrame:
    """The whole choice, noise included, against one product Xᵀy in the same run.

    Times are those of the processor, of which the least is taken; run it with one thread
    (OMP_NUM_THREADS=1).
    """
    rng = np.random.default_rng(0)
    cells: list[tuple[str, Any, tuple[float, float] | None, Callable[[Any, np.ndarray], Any]]] = []
    genotypes = rng.integers(0, 3, (10_000, 200_000), dtype=np.int8)

    def product(X: Any, y: np.ndarray) -> Any:
        return X.T @ y

    def small(X: Any, y: np.ndarray) -> Any:
        _plain(X, y.astype(np.float32), np.zeros(X.shape[1], dtype=np.float32))

    cells.append(("genotypes, int8", genotypes, (0.0, 2.0), small))
    packed = _random_genotypes(10_000, 1_000_000, rng)
    plain = Genotypes(packed.lines, packed.n_rows, scaling="none")
    cells.append(("genotypes, 2 bits", packed, (0.0, 2.0), lambda _, y: plain.rmatvec(y)))
    sparse = sp.random_array((200_000, 100_000), density=1e-3, format="csr", rng=rng)
    cells.append(("sparse by rows, 0.1 % stored", sparse, (0.0, 1.0), product))
    cells.append(("sparse by columns, 0.1 % stored", sparse.tocsc(), (0.0, 1.0), product))
    cells.append(("the same by rows, other bounds each", sparse, None, product))
    cells.append(("the same by columns, other bounds each", sparse.tocsc(), None, product))
    dense = rng.uniform(-1.0, 1.0, (5_000, 20_000))
    cells.append(("dense, 64 bits", dense, (-1.0, 1.0), product))
    return pl.DataFrame([_row(*cell) for cell in cells])


def _random_genotypes(m: int, n: int, rng: np.random.Generator) -> Variants:
    """Each genotype 0, 1 or 2 copies with chances 1/4, 1/4 and 1/2, and none missing."""
    packed = np.empty((n, m // 4), dtype=np.uint8)
    for start in range(0, n, 10_000):
        low, high = (rng.integers(0, 256, (10_000, m // 4), dtype=np.uint8) for _ in range(2))
        high &= 0x55
        packed[start : start + 10_000] = (high << 1) | (low & high)
    return Variants(packed, m, np.ones(n))


def _row(
    name: str, X: Any, bounds: tuple[float, float] | None, plain: Callable[[Any, np.ndarray], Any]
) -> dict[str, str]:
    m, n = X.shape
    rng = np.random.default_rng(1)
    y = rng.standard_normal(m)
    pairs = np.tile(bounds or (0.0, 1.0), (n, 1))
    if bounds is None:
        pairs[:, 1] = rng.uniform(0.5, 2.0, n)
    screening = Screening(ChoiceLoss(0.1, 10), 0.05, 0.08, pairs, (-4.0, 4.0), True)

    def choose() -> None:
        # Nothing is kept from one choice to the next.
        rows = RowBlocks.of_arrays(X, y)
        replace(screening).choose(Answering(rows, bit_source(np.random.default_rng(2))))

    choose()
    plain(X, y)
    ours, others = [], []
    for _ in range(REPEATS):
        ours.append(_seconds(choose))
        others.append(_seconds(lambda: plain(X, y)))
    tracemalloc.start()
    choose()
    memory = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    size = m * n / 4
    if not isinstance(X, Variants):
        size = X.nbytes if isinstance(X, np.ndarray) else X.data.nbytes + X.indices.nbytes
    row = {
        "table": name,
        "rows × columns": f"{m:,} × {n:,}",
        "size": f"{size / 1e6:,.0f} MB",
        "one product": f"{min(others):.2f} s",
        "choice": f"{min(ours):.2f} s",
        "ratio": f"{min(ours) / min(others):.2f}",
        "memory": f"{memory / 1e6:.0f} MB",
        "bytes per column": f"{memory / n:.0f}",
    }
    print(row, flush=True)
    return row


def _seconds(run: Callable[[], None]) -> float:
    """Time of the processor in all threads."""
    start = time.process_time()
    run()
    return time.process_time() - start
