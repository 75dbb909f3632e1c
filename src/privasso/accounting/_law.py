"""Laws of losses on a grid that dominate the loss of a release.

Between points of a grid, δ as a function of e^ε lies below its chords, because it is convex. The
chords are the δ of a law on the grid whose probabilities are the changes of slope (connect the
dots: Doroshenko and others, 2022). Everything that is computed from that law is an upper bound.
"""

from __future__ import annotations

import numpy as np
from numba import njit

#: More than the relative rounding error of a difference of slopes.
_UNIT = 1e-15
#: Losses beyond this one protect nothing, and e^ε would overflow.
LARGEST = 700.0
#: The least e^ε, relative to the largest, that has all its digits.
_SMALL = 1e-290


def both_sides(
    grid: np.ndarray, ahead: np.ndarray, reverse: np.ndarray
) -> tuple[np.ndarray, np.ndarray]:
    """Return the grid from −ε to ε and the δ of one order of a pair there.

    For ε < 0 it is δ_PQ(ε) = 1 − e^ε + e^ε δ_QP(−ε). The bounds of a loss need not belong to a pair
    themselves, which takes a convex function of e^ε; their lower envelope does.
    """
    below = -grid[:0:-1]
    reflected = -np.expm1(below) + np.exp(below) * reverse[:0:-1]
    at = np.concatenate([below, grid])
    return at, lower_envelope(at, np.clip(np.concatenate([reflected, ahead]), 0.0, 1.0))


def dominating_law(at: np.ndarray, deltas: np.ndarray) -> tuple[np.ndarray, float]:
    """Return the probabilities of the losses on a grid, and that of an infinite loss.

    The change of slope is the probability under the second law of the pair, and e^ε times that is
    the one under the first. Each is raised by more than its own rounding error.
    """
    alpha = np.exp(at)
    slopes = np.append(np.diff(np.append(1.0, deltas)) / np.diff(np.append(0.0, alpha)), 0.0)
    jumps = np.maximum(np.diff(slopes), 0.0) + _UNIT * (np.abs(slopes[1:]) + np.abs(slopes[:-1]))
    return alpha * jumps, float(deltas[-1])


def lower_envelope(epsilons: np.ndarray, deltas: np.ndarray) -> np.ndarray:
    """Return the largest bounds at or below these that are convex in e^ε and do not increase.

    The δ of a pair of distributions is such a function, with the value 1 at e^ε = 0. It therefore
    lies below the chords of any upper bound.
    """
    # Bounds that are no numbers are left out. In units of the largest e^ε nothing overflows, and
    # what underflows stays as it is.
    bounds = np.fmin.accumulate(np.append(1.0, deltas))
    x = np.append(0.0, np.exp(epsilons - max(float(np.max(epsilons)) - LARGEST, 0.0)))
    used = (x > _SMALL) | (np.arange(x.size) == 0)
    x, z = x[used], bounds[used]
    kept = _corners(x, z)
    # The rounding of a chord is below 4e-16 of its larger end, and nothing at the ends themselves.
    starts = z[kept][np.searchsorted(x[kept], x, side="right") - 1]
    chords = np.interp(x, x[kept], z[kept]) + 4e-16 * starts
    bounds[used] = np.minimum(chords, z)
    return bounds[1:]


@njit(nogil=True, cache=True)
def _corners(x: np.ndarray, z: np.ndarray) -> np.ndarray:  # pragma: no cover - compiled
    """The points at which the largest convex function below (x, z) has its corners."""
    kept, count = np.empty(x.size, np.int64), 0
    for k in range(x.size):
        while count > 1:
            i, j = kept[count - 2], kept[count - 1]
            if (z[j] - z[i]) * (x[k] - x[i]) < (z[k] - z[i]) * (x[j] - x[i]):
                break
            count -= 1
        kept[count] = k
        count += 1
    return kept[:count]
