"""Times that can be compared: the contenders take turns, and the best of each counts."""

from __future__ import annotations

import time
from collections.abc import Callable

import numpy as np


def best_times(
    contenders: dict[str, Callable[[], object]], repeat: int = 2, rounds: int = 2
) -> dict[str, float]:
    """Seconds of the fastest run of each: in every round, each has its turn of `repeat` runs.

    A pause and an unmeasured run open a turn: the threads of BLAS spin for a while after their
    work is done, and would take a core from whoever comes next.
    """
    best = dict.fromkeys(contenders, float("inf"))
    for _ in range(rounds):
        for name, function in contenders.items():
            time.sleep(0.1)
            function()
            for _ in range(repeat):
                start = time.perf_counter()
                function()
                best[name] = min(best[name], time.perf_counter() - start)
    return best


def kkt(F: np.ndarray, b: np.ndarray, lam: float, x: np.ndarray) -> float:
    """Largest violation of an optimality condition over λ, in plain NumPy."""
    c = b - F.T @ (F @ x)
    off = np.where(x != 0, np.abs(c - lam * np.sign(x)), np.maximum(np.abs(c) - lam, 0))
    return float(off.max() / lam)


def loosest(
    solve_at: Callable[[float], np.ndarray],
    violation: Callable[[np.ndarray], float],
    target: float = 1e-8,
):
    """The loosest tolerance at which a peer reaches the KKT violation, and what it reaches."""
    for tol in 10.0 ** -np.arange(6, 19):
        reached = violation(solve_at(float(tol)))
        if reached <= target:
            return float(tol), reached
    raise RuntimeError(f"the peer does not reach a KKT violation of {target} at any tolerance")
