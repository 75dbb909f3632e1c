"""Columns that are chosen with Gumbel noise: the chance of each, and the probability of a set."""

from __future__ import annotations

from functools import lru_cache

import numpy as np
from numpy.typing import ArrayLike
from scipy.optimize import root_scalar
from scipy.special import logsumexp

from privasso._validation import nonnegative_float, positive_float, real_array
from privasso.theory._system import FloatArray

#: Z is integrated over this range, on either side of the kink of |m + τZ|, with at least and at
#: most so many points, and with so many in what Gumbel noise of one scale blurs.
_DEVIATIONS, _FEWEST, _MOST_POINTS, _IN_SCALE = 8.0, 32, 512, 2.0
#: The integral over log(Wt): its range, and the step of the trapezoidal rule, which converges
#: exponentially for such integrands.
_LEAST, _MOST, _STEP = -60.0, 6.0, 1.0 / 64.0


def selection_chances(
    strengths: ArrayLike, numbers: ArrayLike, count: float, deviation: float, gumbel: float
) -> FloatArray:
    """Return the chance that a column of each strength is among the k = count chosen.

    The association of a column with M rows is nearly N(m, τ²), m = 0 for a column without a
    coefficient. Gumbel noise of scale g is added to its absolute value. With many columns the k-th
    largest value θ hardly varies: with n_i columns of strength m_i it solves

        Σ_i n_i P(|m_i + τZ| + gG > θ) = k,    P(G > x) = 1 − exp(−e^(−x)).
    """
    m = real_array("strengths", strengths, ndim=1)
    n = real_array("numbers", numbers, shape=(m.size,))
    tau, g = nonnegative_float("deviation", deviation), positive_float("gumbel", gumbel)
    total = float(n.sum())
    if not 0.0 < count < total:
        raise ValueError(f"count must be between 0 and the number of columns, {total:g}")
    z, weights = _normal(m, tau, _DEVIATIONS * _IN_SCALE * tau / g)
    sizes = np.abs(m[:, None] + tau * z) / g

    def chances(theta: float) -> FloatArray:
        found = -np.expm1(-np.exp(np.minimum(sizes - theta / g, 50.0)))
        return np.sum(found * weights, axis=1)

    def excess(theta: float) -> float:
        return float(np.log(n @ chances(theta)) - np.log(count))

    low = -g * (5.0 + np.log(total))
    high = float(np.max(np.abs(m))) + _DEVIATIONS * tau + g * (40.0 + np.log(total))
    return chances(root_scalar(excess, bracket=(low, high), xtol=1e-6 * g).root)


def _normal(m: FloatArray, tau: float, points: float) -> tuple[FloatArray, FloatArray]:
    """Points and weights of a normal Z for functions of each |m_i + τZ| that vary over `points`.

    The Gauss–Legendre rule is used on both sides of Z = −m_i/τ, where such a function has a kink.
    """
    wanted = min(max(points, _FEWEST), _MOST_POINTS)
    x, w = _legendre(1 << int(np.ceil(np.log2(wanted))))
    kink = np.clip(-m / tau if tau > 0.0 else np.zeros_like(m), -_DEVIATIONS, _DEVIATIONS)[:, None]
    below, above = 0.5 * (kink + _DEVIATIONS), 0.5 * (_DEVIATIONS - kink)
    z = np.hstack([below * (x + 1.0) - _DEVIATIONS, _DEVIATIONS - above * (x + 1.0)])
    weights = np.hstack([below * w, above * w]) * np.exp(-0.5 * z**2)
    return z, weights / weights.sum(axis=1, keepdims=True)


@lru_cache(maxsize=8)
def _legendre(n: int) -> tuple[FloatArray, FloatArray]:
    return np.polynomial.legendre.leggauss(n)


def log_set_probability(scores: ArrayLike, scale: float, chosen: ArrayLike) -> float:
    """Return log P(S) for the set S, not all of the columns, of the k largest of q_i + s·G_i.

    With w_i = e^(q_i/s), e^(−(q_i + sG_i)/s) is exponential with the rate w_i. S is chosen if all
    exponential numbers in it are smaller than the least outside, of rate W = Σ_{j∉S} w_j:

        P(S) = ∫₀^∞ W e^(−Wt) Π_{i∈S} (1 − e^(−w_i t)) dt.
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
