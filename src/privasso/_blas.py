"""How many threads BLAS uses, and matrix products on our own threads instead.

After a parallel call the threads of BLAS keep a core busy for tens of milliseconds while they wait
for the next call. Our own passes over F then take twice as long, and on a machine that is busy
already, small parallel calls wait for one another for very long. So BLAS runs on one thread except
for the largest jobs, and products that split well are split over our own threads, which sleep when
they are done.
"""

from __future__ import annotations

import ctypes
from collections.abc import Callable
from contextlib import AbstractContextManager
from functools import cache, partial
from itertools import pairwise
from math import ceil
from typing import Any

import numpy as np
from numba.extending import get_cython_function_address
from threadpoolctl import ThreadpoolController

from privasso._threads import interruptible, n_threads, run

#: Floating-point operations below which one thread is the better choice.
SERIAL_BELOW = 1e10
#: Multiplications of one call, which takes some tenths of a second; until then Ctrl-C waits.
_LONGEST_CALL = 3e9
#: Columns of a block of a large Gram matrix.
_BLOCK = 1024
#: Matrices with fewer rows than this are factorised in a few hundredths of a second.
_SHORT_CALL = 1000


@cache
def _controller() -> ThreadpoolController:
    return ThreadpoolController()


def one_thread() -> AbstractContextManager[Any]:
    """A context in which BLAS runs on the calling thread alone."""
    return _controller().limit(limits=1, user_api="blas")


def threads_for(flops: float) -> AbstractContextManager[Any]:
    """A context in which BLAS uses one thread for a small job and all threads for a large one."""
    limits = 1 if flops < SERIAL_BELOW else n_threads()
    return _controller().limit(limits=limits, user_api="blas")


def product(A: Any, B: np.ndarray) -> np.ndarray:
    """``A @ B``, each of our threads taking a share of the columns of B.

    >>> product(np.eye(2), np.array([[1.0, 2.0], [3.0, 4.0]]))
    array([[1., 2.],
           [3., 4.]])
    """
    n = B.shape[1]
    work = A.shape[0] * float(A.shape[1]) * n
    parts = min(n, n_threads() * ceil(work / (n_threads() * _LONGEST_CALL))) if work > 1e7 else 1
    edges = [n * k // parts for k in range(parts + 1)]
    out = np.empty((A.shape[0], n), dtype=np.result_type(A.dtype, B.dtype))

    def fill(lo: int, hi: int) -> None:
        out[:, lo:hi] = A @ B[:, lo:hi]

    with one_thread():
        run([partial(fill, lo, hi) for lo, hi in pairwise(edges)])
    return out


def gram_matrix(A: np.ndarray) -> np.ndarray:
    """``A.T @ A`` in the precision of A, block by block over our own threads.

    >>> A = np.arange(6.0).reshape(3, 2)
    >>> gram_matrix(A)
    array([[20., 26.],
           [26., 35.]])
    """
    m, n = A.shape
    work = m * float(n) * n
    parts = 1 if work < 2e7 else n_threads()
    count = parts if work < parts * _LONGEST_CALL else max(parts, ceil(n / _BLOCK))
    edges = [n * k // count for k in range(count + 1)]
    groups = [slice(lo, hi) for lo, hi in pairwise(edges)]
    spans = max(1, ceil(m * (n / count) ** 2 / _LONGEST_CALL))
    rows = [slice(m * k // spans, m * (k + 1) // spans) for k in range(spans)]
    out = np.empty((n, n), dtype=A.dtype)

    def fill(pairs: list[tuple[slice, slice]]) -> None:
        for i, j in pairs:
            # On the diagonal NumPy uses the symmetric product.
            block = out[i, j]
            np.matmul(A[rows[0], i].T, A[rows[0], j], out=block)
            for span in rows[1:]:
                block += A[span, i].T @ A[span, j]
            if i != j:
                out[j, i] = block.T

    # A block off the diagonal takes twice the work of one on it; those are assigned first.
    loads: list[list[tuple[slice, slice]]] = [[] for _ in range(parts)]
    weight = [0] * parts
    pairs = [(i, j) for k, i in enumerate(groups) for j in groups[k:]]
    for i, j in sorted(pairs, key=lambda pair: pair[0] == pair[1]):
        lightest = weight.index(min(weight))
        loads[lightest].append((i, j))
        weight[lightest] += 1 if i == j else 2
    with one_thread():
        run([partial(fill, load) for load in loads])
    return out


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

    >>> A = np.array([[4.0, 2.0], [7.0, 2.0]])
    >>> factorise_upper(A), A
    (True, array([[2., 1.],
           [7., 1.]]))
    """
    return _factorise(A, b"L")


def factorise_lower(A: np.ndarray) -> bool:
    """Replace the lower triangle of A by that of L, where A = LLᵀ; as `factorise_upper`.

    >>> A = np.array([[4.0, 7.0], [2.0, 2.0]])
    >>> factorise_lower(A), A
    (True, array([[2., 7.],
           [1., 1.]]))
    """
    return _factorise(A, b"U")


def _factorise(A: np.ndarray, triangle: bytes) -> bool:
    """LAPACK reads columns where we have rows, so that its lower triangle is our upper one."""
    kind = A.dtype.char
    if kind not in "fd" or not A.flags.c_contiguous or A.ndim != 2:
        raise TypeError("A must be a C-ordered matrix of single or double precision")
    n, failed = ctypes.c_int(len(A)), ctypes.c_int(0)
    potrf = _potrf("spotrf" if kind == "f" else "dpotrf")
    arguments = triangle, ctypes.byref(n), A.ctypes.data, ctypes.byref(n), ctypes.byref(failed)
    if len(A) < _SHORT_CALL:
        potrf(*arguments)
    else:
        interruptible(lambda: potrf(*arguments))
    return failed.value == 0
