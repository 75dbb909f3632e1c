"""How far a tail reaches that is lost in noise, from the counts before it."""

from __future__ import annotations

import numpy as np

#: What is supposed of the parts of values above t, exp(−(t/θ)^p): the shapes p, from tails that are
#: heavier than exponential to those that are lighter than normal, and the sizes θ, as parts of the
#: last step.
_SHAPES = np.array([0.6, 0.8, 1.0, 1.25, 1.5, 2.0, 2.5])
_SIZES = 2.0 ** np.arange(-10.0, 1.0, 0.125)
#: The answer is this quantile of what the counts leave open.
_SURE = 0.8
#: A count is clear if it is so many deviations of its noise.
_CLEAR = 2.5
#: Nothing is said of a tail with so many deviations of noise more above a step than the law says.
_MORE = 2.0


def tail_end(
    steps: tuple[float, ...],
    above: np.ndarray,
    noise: float,
    allowed: float,
    total: tuple[float, float],
) -> float:
    """A size that about `allowed` values exceed, and not below a step that is clearly exceeded.

    All counts are used at once: a tail that each of them hides is seen by them together.

    Parameters
    ----------
    steps : tuple of float
        Lower ends of the intervals.
    above : ndarray
        Sums of noisy counts, above each step.
    noise : float
        Deviation of the noise in one count.
    allowed : float
        See above.
    total : (float, float)
        How many values there are at least and at most, those below the first step among them.

    Examples
    --------
    >>> steps = tuple(2.0**k for k in range(-5, 1))
    >>> above = 1000.0 * np.exp(-((np.array(steps) / 0.2) ** 2))
    >>> round(tail_end(steps, above, 30.0, 1.0, (900.0, 1100.0)), 2)
    0.55
    """
    noises = noise * np.sqrt(np.arange(len(steps), 0, -1))
    clear = above > np.maximum(_CLEAR * noises, allowed)
    seen = steps[max(int(np.argmin(np.append(clear, False))) - 1, 0)]
    counts = above - np.append(above[1:], 0.0)
    shapes, sizes = (a.ravel() for a in np.meshgrid(_SHAPES, _SIZES * steps[-1]))
    parts = np.exp(-((np.array(steps)[:, None] / sizes) ** shapes))
    parts[:-1] -= parts[1:]
    size = np.sum(parts**2, axis=0)
    best = np.divide(counts @ parts, size, out=np.zeros(len(sizes)), where=size > 0.0)
    best = np.clip(best, *total)
    off = np.sum((counts[:, None] - best * parts) ** 2, axis=0) / noise**2
    weights = np.exp(-0.5 * (off - off.min()))
    likely = np.cumsum((best * parts)[::-1, off.argmin()])[::-1]
    if np.any((above - likely > _MORE * noises) & (np.array(steps) >= seen)):
        return steps[-1]
    ends = sizes * np.log(np.maximum(best / allowed, 1.0)) ** (1.0 / shapes)
    order = np.argsort(ends)
    reached = np.searchsorted(np.cumsum(weights[order]), _SURE * weights.sum())
    return max(float(ends[order][min(int(reached), len(ends) - 1)]), seen)
