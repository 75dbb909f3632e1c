"""The probability of a set of columns that is chosen with Gumbel noise.

With scores q_i, noise of scale s and w_i = e^(q_i/s), e^(−(q_i + sG_i)/s) is exponential with the
rate w_i. The k largest noisy scores are a set S if all exponential numbers in S are smaller than
the least outside, which has the rate W = Σ_{j∉S} w_j:

    P(S) = ∫₀^∞ W e^(−Wt) Π_{i∈S} (1 − e^(−w_i t)) dt.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike
from scipy.special import logsumexp

from privasso._validation import positive_float, real_array

#: The integral over log(Wt): its range, and the step of the trapezoidal rule, which converges
#: exponentially for such integrands.
_LEAST, _MOST, _STEP = -60.0, 6.0, 1.0 / 64.0


def log_set_probability(scores: ArrayLike, scale: float, chosen: ArrayLike) -> float:
    """Return log P(S) for the set S of the k largest of q_i + s·G_i.

    Parameters
    ----------
    scores : array_like of shape (N,)
        q.
    scale : float
        s.
    chosen : array_like of int, shape (k,)
        S, not all of the columns.

    Examples
    --------
    >>> from privasso.theory import log_set_probability
    >>> round(float(np.exp(log_set_probability([0.0, 1.0, 0.0], 1.0, [1]))), 6)
    0.576117
    >>> round(float(np.e / (np.e + 2.0)), 6)
    0.576117
    """
    logs = real_array("scores", scores, ndim=1) / positive_float("scale", scale)
    inside = np.zeros(logs.size, dtype=bool)
    inside[np.asarray(chosen, dtype=np.int64)] = True
    if inside.all():
        return 0.0
    rates = logs[inside] - float(np.asarray(logsumexp(logs[~inside])))
    # Sets of likely columns end where their slowest is; unlikely ones need small times, too.
    least = _LEAST - max(float(np.max(rates, initial=0.0)), 0.0)
    z = np.arange(least, _MOST, _STEP)
    with np.errstate(divide="ignore", over="ignore"):
        terms = np.log(-np.expm1(-np.exp(rates[:, None] + z))).sum(axis=0)
    return float(logsumexp(terms + z - np.exp(z)) + np.log(_STEP))
