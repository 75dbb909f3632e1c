"""How many threads BLAS uses, and matrix products on our own threads instead.

After a parallel call the threads of BLAS keep a core busy for tens of milliseconds while they wait
for the next call. Our own passes over F then take twice as long, and on a machine that is busy
already, small parallel calls wait for one another for very long. So BLAS runs on one thread except
for the largest jobs, and products that split well are split over our own threads, which sleep when
they are done.
"""

from __future__ import annotations

import ctypes
import threading
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager
from functools import cache, partial
from itertools import pairwise
from math import ceil

import numpy as np
from numba.extending import get_cython_function_address
from threadpoolctl import ThreadpoolController

from privasso._clock import Clock
from privasso._threads import interruptible, n_threads, run
from privasso._types import Matrix

#: Floating-point operations below which one thread is the better choice.
SERIAL_BELOW = 1e10
#: Multiplications of one call, which takes some tenths of a second; until then Ctrl-C waits.
_LONGEST_CALL = 3e9
#: Columns of a block of a large Gram matrix.
_BLOCK = 1024
#: Columns of a block that is rounded afterwards, which is two megabytes.
_SMALL_BLOCK = 512
#: What one is in a matrix of `fixed_correlations`.
FIXED = 2.0**-31
#: Matrices with fewer rows than this are factorised in a few hundredths of a second.
_SHORT_CALL = 1000


@cache
def _controller() -> ThreadpoolController:
    return ThreadpoolController()


class _Asked(threading.local):
    """How many threads BLAS was limited to around what this thread does now; 0 for no limit."""

    threads = 0


_asked = _Asked()


@contextmanager
def _limited(threads: int) -> Iterator[None]:
    """Limit BLAS, which takes a tenth of a millisecond, unless it is limited so already."""
    before = _asked.threads
    if before == threads:
        yield
        return
    _asked.threads = threads
    try:
        with _controller().limit(limits=threads, user_api="blas"):
            yield
    finally:
        _asked.threads = before


def one_thread() -> AbstractContextManager[object]:
    """A context in which BLAS runs on the calling thread alone."""
    return _limited(1)


def threads_for(flops: float) -> AbstractContextManager[object]:
    """A context in which BLAS uses one thread for a small job and all threads for a large one."""
    return _limited(1 if flops < SERIAL_BELOW else n_threads())


def run_parts(tasks: list[Callable[[], None]], clock: Clock) -> None:
    """Run long tasks on our own threads, BLAS on one thread in each of them.

    If one fails or is interrupted, the clock stops, so that the others end soon.
    """
    try:
        with one_thread():
            run(tasks)
    except BaseException:  # Ctrl-C is raised on one thread, and the others must end too
        clock.stop()
        raise


def product(A: Matrix, B: np.ndarray) -> np.ndarray:
    """``A @ B``, each of our threads taking a share of the columns of B."""
    out = np.empty((A.shape[0], B.shape[1]), dtype=np.result_type(A.dtype, B.dtype))

    def fill(lo: int, hi: int) -> None:
        if isinstance(A, np.ndarray) and hi - lo == B.shape[1]:
            np.matmul(A, B, out=out)  # without a copy
        else:
            out[:, lo:hi] = A @ B[:, lo:hi]

    _in_shares(B.shape[1], A.shape, fill)
    return out


def product_by_columns(A: Matrix, B: np.ndarray) -> np.ndarray:
    """``A @ B`` in column-major order, which is faster if B is in that order as well."""
    out = np.empty((B.shape[1], A.shape[0]), dtype=np.result_type(A.dtype, B.dtype))

    def fill(lo: int, hi: int) -> None:
        np.matmul(B.T[lo:hi], A.T, out=out[lo:hi])

    _in_shares(B.shape[1], A.shape, fill)
    return out.T


def _in_shares(n: int, shape: tuple[int, int], fill: Callable[[int, int], None]) -> None:
    """Call `fill` for shares of n right-hand sides of a matrix of this shape."""
    work = float(shape[0]) * shape[1] * n
    parts = min(n, n_threads() * ceil(work / (n_threads() * _LONGEST_CALL))) if work > 1e7 else 1
    edges = [n * k // parts for k in range(parts + 1)]
    with one_thread():
        run([partial(fill, lo, hi) for lo, hi in pairwise(edges)])


def gram_matrix(A: np.ndarray) -> np.ndarray:
    """``A.T @ A`` in the precision of A, block by block over our own threads."""
    m, n = A.shape
    work = m * float(n) * n
    parts = 1 if work < 2e7 else n_threads()
    count = parts if work < parts * _LONGEST_CALL else max(parts, ceil(n / _BLOCK))
    spans = max(1, ceil(m * (n / count) ** 2 / _LONGEST_CALL))
    rows = [slice(m * k // spans, m * (k + 1) // spans) for k in range(spans)]
    out = np.empty((n, n), dtype=A.dtype)

    def fill(i: slice, j: slice) -> None:
        # On the diagonal NumPy uses the symmetric product.
        block = out[i, j]
        np.matmul(A[rows[0], i].T, A[rows[0], j], out=block)
        for span in rows[1:]:
            block += A[span, i].T @ A[span, j]
        if i != j:
            out[j, i] = block.T

    _each_pair(n, count, parts, fill)
    return out


def fixed_correlations(A: np.ndarray, norms: np.ndarray) -> np.ndarray:
    """``A.T @ A`` divided by the norms of both columns, as multiples of 2⁻³¹.

    No entry is larger than one, so that 32-bit integers are more accurate than single precision:
    by a factor of 4 where columns have a correlation of 0.03, and of 64 where they have one of 1.
    """
    m, n = A.shape
    parts = 1 if m * float(n) * n < 2e7 else n_threads()
    out, inverses = np.empty((n, n), dtype=np.int32), 1.0 / norms

    def fill(i: slice, j: slice) -> None:
        block = _sum_of_products(A, i, j)
        block *= inverses[i, None] / FIXED
        block *= inverses[j]
        np.clip(np.rint(block, out=block), -(2**31 - 1), 2**31 - 1, out=block)
        out[i, j] = block
        if i != j:
            out[j, i] = out[i, j].T

    _each_pair(n, max(parts, ceil(n / _SMALL_BLOCK)), parts, fill)
    return out


def _sum_of_products(A: np.ndarray, i: slice, j: slice) -> np.ndarray:
    """``A[:, i].T @ A[:, j]`` in double precision, in calls that are short enough for Ctrl-C."""
    out = None
    for lo in range(0, len(A), _BLOCK):
        left = A[lo : lo + _BLOCK, i].astype(np.float64, copy=False)
        right = left if i == j else A[lo : lo + _BLOCK, j].astype(np.float64, copy=False)
        part = left.T @ right
        out = part if out is None else np.add(out, part, out=out)
    return np.zeros((i.stop - i.start, j.stop - j.start)) if out is None else out


def _each_pair(n: int, count: int, parts: int, fill: Callable[[slice, slice], None]) -> None:
    """Call `fill` for each pair of `count` blocks of columns, on `parts` threads."""
    edges = [n * k // count for k in range(count + 1)]
    groups = [slice(lo, hi) for lo, hi in pairwise(edges)]

    def work(pairs: list[tuple[slice, slice]]) -> None:
        for i, j in pairs:
            fill(i, j)

    # A block off the diagonal takes twice the work of one on it; those are assigned first.
    loads: list[list[tuple[slice, slice]]] = [[] for _ in range(parts)]
    weight = [0] * parts
    pairs = [(i, j) for k, i in enumerate(groups) for j in groups[k:]]
    for i, j in sorted(pairs, key=lambda pair: pair[0] == pair[1]):
        lightest = weight.index(min(weight))
        loads[lightest].append((i, j))
        weight[lightest] += 1 if i == j else 2
    with one_thread():
        run([partial(work, load) for load in loads])


@cache
def _potrf(name: str) -> Callable[..., None]:
    """A function of LAPACK, called through ctypes so that other threads go on meanwhile."""
    address = get_cython_function_address("scipy.linalg.cython_lapack", name)
    integer = ctypes.POINTER(ctypes.c_int)
    types = ctypes.c_char_p, integer, ctypes.c_void_p, integer, integer
    return ctypes.CFUNCTYPE(None, *types)(address)


def factorise_upper(A: np.ndarray) -> bool:
    """Replace the upper triangle of A by that of U, where A = UᵀU; False if there is no such U.

    What is below the diagonal is neither read nor changed. Other threads go on meanwhile, which
    they do not during a call of scipy's own function, and nothing is copied.
    """
    return _factorise(A, b"L")


def factorise_lower(A: np.ndarray) -> bool:
    """Replace the lower triangle of A by that of L, where A = LLᵀ; as `factorise_upper`."""
    return _factorise(A, b"U")


def _factorise(A: np.ndarray, triangle: bytes) -> bool:
    """LAPACK reads columns where we have rows, so that its lower triangle is our upper one."""
    kind = A.dtype.char
    by_rows = A.ndim == 2 and A.shape[0] == A.shape[1] and A.strides[1] == A.itemsize
    if kind not in "fd" or not by_rows or A.strides[0] < A.strides[1] * len(A):
        raise TypeError("A must be a square matrix by rows, of single or double precision")
    n, failed = ctypes.c_int(len(A)), ctypes.c_int(0)
    between = ctypes.c_int(A.strides[0] // A.itemsize)
    potrf = _potrf("spotrf" if kind == "f" else "dpotrf")
    where = A.ctypes.data, ctypes.byref(between)
    arguments = triangle, ctypes.byref(n), *where, ctypes.byref(failed)
    if len(A) < _SHORT_CALL:
        potrf(*arguments)
    else:
        interruptible(lambda: potrf(*arguments))
    return failed.value == 0
