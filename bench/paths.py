"""100 values of λ on ten matrices against the paths of scikit-learn, celer and skglm."""

from __future__ import annotations

import time
import warnings
from collections.abc import Callable
from typing import Any

import numpy as np
import polars as pl
from celer import celer_path
from skglm import Lasso as SkglmLasso
from sklearn.linear_model import lasso_path

import privasso as pv
from bench.matrices import MATRICES
from bench.peers import as_peers_like_it, calibrated
from bench.timing import kkt

LIMIT = 15
TITLE = "100 values of λ (`solve_path`), without noise, all to KKT 1e-8"
NOTE = (
    "From λmax to λmax/100 in equal steps of log λ. Seconds of processor time on one thread "
    "(`OMP_NUM_THREADS=1`), the best of two runs. Peers follow the path with their own warm "
    "starts, at the loosest tolerance, in steps of 100, at which the largest violation over all λ "
    f"is at most 1e-8; an empty cell means that a peer did not reach it within {LIMIT} s of "
    "processor time for this search. `certified` counts the points with a proof of ours. "
    "Target: 3 times the fastest peer."
)
NAMES = (
    "Gaussian 2000 × 1000, C order",
    "insurance 5000 × 350",
    "digits, degree 2: 1797 × 2144",
    "TF-IDF 5000 × 20,000",
    "AR(.9) 1000 × 3000",
    "AR(.99) 500 × 2000",
    "genotypes 800 × 4000",
    "cells × genes 1500 × 1000",
    "diabetes, degree 4: 442 × 1000",
    "expression 80 × 7000",
)
PARTS = np.geomspace(1.0, 100.0, 100)

Path = Callable[[Any, np.ndarray, np.ndarray, float], np.ndarray]


def _scikit_learn(F: Any, y: np.ndarray, alphas: np.ndarray, tol: float) -> np.ndarray:
    return lasso_path(F, y, alphas=alphas, tol=tol, max_iter=1_000_000)[1]


def _celer(F: Any, y: np.ndarray, alphas: np.ndarray, tol: float) -> np.ndarray:
    return celer_path(F, y, "lasso", alphas=alphas, tol=tol, max_iter=1000, max_epochs=100_000)[1]


def _skglm(F: Any, y: np.ndarray, alphas: np.ndarray, tol: float) -> np.ndarray:
    model = SkglmLasso(fit_intercept=False, tol=tol, max_iter=1000, max_epochs=100_000)
    return model.path(F, y, alphas)[1]


PEERS: dict[str, Path] = {"scikit-learn": _scikit_learn, "celer": _celer, "skglm": _skglm}


def run() -> pl.DataFrame:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # peers warn where they stop short of a tolerance
        return pl.DataFrame([_matrix(name) for name in NAMES], infer_schema_length=None)


def _matrix(name: str) -> dict[str, object]:
    F, y = MATRICES[name]()
    theirs = as_peers_like_it(F)
    b = F.T @ y
    lams = float(np.abs(b).max()) / PARTS

    def largest(X: np.ndarray) -> float:
        return max(kkt(F, b, lam, X[:, k]) for k, lam in enumerate(lams))

    pv.solve_path(F, y, lams[:3])
    contenders: dict[str, Callable[[], object]] = {"privasso": lambda: pv.solve_path(F, y, lams)}
    for peer_name, peer in PEERS.items():

        def whole(F: Any, y: np.ndarray, _: float, tol: float, peer: Path = peer) -> np.ndarray:
            return peer(F, y, lams / len(y), tol)

        peer(theirs, y, lams[:2] / len(y), 0.1)  # so that no compilation is measured
        found = calibrated(whole, theirs, y, 0.0, target=1e-8, limit=LIMIT, measure=largest)
        if found is not None:
            contenders[peer_name] = lambda whole=whole, tol=found[0]: whole(theirs, y, 0.0, tol)
    times = dict.fromkeys(contenders, float("inf"))
    for _ in range(2):
        for contender, function in contenders.items():
            start = time.process_time()
            function()
            times[contender] = min(times[contender], time.process_time() - start)
    solutions = pv.solve_path(F, y, lams, throw=False)
    ours = times.pop("privasso")
    row: dict[str, object] = {
        "matrix": name,
        "most non-zeros": int(np.count_nonzero(solutions.x, axis=0).max()),
        "certified": int(np.sum(solutions.status == pv.Status.CONVERGED)),
        "largest KKT": f"{largest(solutions.x):.0e}",
        "privasso, s": ours,
        **{f"{peer_name}, s": times.get(peer_name) for peer_name in PEERS},
        "ratio": f"{min(times.values()) / ours:.1f}" if times else "only ours",
    }
    print(row, flush=True)
    return row
