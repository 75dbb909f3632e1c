"""Times that can be compared: the contenders take turns, and the best of each counts."""

from __future__ import annotations

import os
import time
from collections.abc import Callable

import numpy as np

#: Part of the processors that other programs may use during a run that counts.
_DISTURBED = 0.1
#: Further runs of a turn, if all were disturbed.
_PATIENCE = 8


def best_times(
    contenders: dict[str, Callable[[], object]], repeat: int = 2, rounds: int = 2
) -> dict[str, float]:
    """Seconds of the fastest run of each: in every round, each has its turn of `repeat` runs.

    A pause and an unmeasured run open a turn: the threads of BLAS spin for a while after their
    work is done, and would take a core from whoever comes next. Runs during which other programs
    kept the processors busy do not count, and are repeated, as long as there is patience. If all
    runs of a contender are disturbed, the fastest of them counts, and that is printed.
    """
    best = dict.fromkeys(contenders, float("inf"))
    disturbed = dict.fromkeys(contenders, float("inf"))
    for _ in range(rounds):
        for name, function in contenders.items():
            time.sleep(0.1)
            function()
            good = tries = 0
            while good < repeat and tries < repeat + _PATIENCE:
                if tries >= repeat:
                    time.sleep(0.2)
                tries += 1
                before = _busy()
                start = time.perf_counter()
                function()
                took = time.perf_counter() - start
                if _busy() - before > _DISTURBED * took * (os.cpu_count() or 1):
                    disturbed[name] = min(disturbed[name], took)
                else:
                    best[name] = min(best[name], took)
                    good += 1
    for name in contenders:
        if best[name] == float("inf"):
            print(f"{name}: other programs ran all the time", flush=True)
            best[name] = disturbed[name]
    return best


def _busy() -> float:
    """Processor seconds of all programs but this one since the start of the machine (Linux)."""
    try:
        with open("/proc/stat", encoding="ascii") as file:
            ticks = [int(word) for word in file.readline().split()[1:]]
    except OSError:  # other systems: every run counts
        return 0.0
    idle = ticks[3] + ticks[4]
    own = time.process_time()
    return (sum(ticks[:8]) - idle) / os.sysconf("SC_CLK_TCK") - own


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
