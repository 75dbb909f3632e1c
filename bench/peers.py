"""Solvers of the LASSO that others wrote, behind one call, and how they are compared."""

from __future__ import annotations

import multiprocessing
import resource
import time
import warnings
from collections.abc import Callable
from typing import Any

import numpy as np
import scipy.sparse as sp
from celer import Lasso as CelerLasso
from skglm import Lasso as SkglmLasso
from sklearn.linear_model import Lasso

from bench.timing import kkt

Solve = Callable[[Any, np.ndarray, float, float], np.ndarray]


def scikit_learn(F: Any, y: np.ndarray, lam: float, tol: float) -> np.ndarray:
    model = Lasso(alpha=lam / len(y), fit_intercept=False, tol=tol, max_iter=1_000_000)
    return model.fit(F, y).coef_


def celer(F: Any, y: np.ndarray, lam: float, tol: float) -> np.ndarray:
    model = CelerLasso(
        alpha=lam / len(y), fit_intercept=False, tol=tol, max_iter=1000, max_epochs=100_000
    )
    return model.fit(F, y).coef_


def skglm(F: Any, y: np.ndarray, lam: float, tol: float) -> np.ndarray:
    model = SkglmLasso(
        alpha=lam / len(y), fit_intercept=False, tol=tol, max_iter=1000, max_epochs=100_000
    )
    return model.fit(F, y).coef_


PEERS: dict[str, Solve] = {"scikit-learn": scikit_learn, "celer": celer, "skglm": skglm}


def as_peers_like_it(F: Any) -> Any:
    """F in double precision, column by column: what all three are fastest on."""
    if sp.issparse(F):
        F = sp.csc_matrix(F, dtype=np.float64)
        F.indices, F.indptr = F.indices.astype(np.int32), F.indptr.astype(np.int32)
        return F
    return np.asfortranarray(F, dtype=np.float64)


def calibrated(
    peer: Solve,
    F: Any,
    y: np.ndarray,
    lam: float,
    *,
    target: float,
    limit: int,
    measure: Callable[[np.ndarray], float] | None = None,
) -> tuple[float, float] | None:
    """The loosest tolerance at which the peer reaches the target, and its time.

    `measure` is the violation of a solution, by default that of one LASSO at λ.

    None if it does not reach it at any, or takes more seconds of processor time than the limit.
    Peers cannot be interrupted, so they run in a child process, which the system ends then.
    """
    context = multiprocessing.get_context("fork")
    near, far = context.Pipe(duplex=False)

    def search() -> None:
        warnings.simplefilter("ignore")
        used = int(time.process_time()) + 1
        resource.setrlimit(resource.RLIMIT_CPU, (used + limit, used + limit))
        b = F.T @ y
        for tol in 10.0 ** -np.arange(6, 19, 2):
            start = time.perf_counter()
            x = peer(F, y, lam, float(tol))
            took = time.perf_counter() - start
            violation = kkt(F, b, lam, x) if measure is None else measure(x)
            if violation <= target:
                far.send((float(tol), took))
                return
        far.send(None)

    child = context.Process(target=search, daemon=True)
    child.start()
    far.close()
    child.join()
    try:
        return near.recv()
    except EOFError:  # it was ended before it had an answer
        return None
