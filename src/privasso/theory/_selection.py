"""The chance that a column is among the k with the largest noisy association.

The association of a column with M rows is nearly Gaussian, N(m, τ²), m = 0 for a column without a
coefficient. Gumbel noise of scale g is added to its absolute value. With many columns the k-th
largest value θ hardly varies. It solves

    Σ_i P(|m_i + τZ| + gG > θ) = k,    P(G > x) = 1 − exp(−e^(−x)),

and each term is the chance of its column.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike
from scipy.optimize import root_scalar

from privasso._validation import nonnegative_float, positive_float, real_array

#: Z is integrated over this range with so many points.
_DEVIATIONS, _POINTS = 8.0, 1601
_Z = np.linspace(-_DEVIATIONS, _DEVIATIONS, _POINTS)
_W = np.exp(-0.5 * _Z**2) / np.exp(-0.5 * _Z**2).sum()


def selection_chances(
    strengths: ArrayLike, numbers: ArrayLike, count: float, deviation: float, gumbel: float
) -> np.ndarray:
    """Return the chance of being chosen for columns of each strength.

    Parameters
    ----------
    strengths : array_like of shape (J,)
        m, the means of the associations.
    numbers : array_like of shape (J,)
        How many columns have each strength; all columns are counted.
    count : float
        k, less than the number of columns.
    deviation : float
        τ.
    gumbel : float
        g.

    Examples
    --------
    Ten strong columns among 1000 others:

    >>> from privasso.theory import selection_chances
    >>> selection_chances([0.0, 150.0], [1000, 10], 12, 25.0, 8.0).round(3).tolist()
    [0.002, 0.991]
    """
    m = real_array("strengths", strengths, ndim=1)
    n = real_array("numbers", numbers, shape=(m.size,))
    tau, g = nonnegative_float("deviation", deviation), positive_float("gumbel", gumbel)
    total = float(n.sum())
    if not 0.0 < count < total:
        raise ValueError(f"count must be between 0 and the number of columns, {total:g}")
    sizes = np.abs(m[:, None] + tau * _Z)

    def chances(theta: float) -> np.ndarray:
        exponent = np.clip((theta - sizes) / g, -50.0, 700.0)
        return -np.expm1(-np.exp(-exponent)) @ _W

    def excess(theta: float) -> float:
        return float(np.log(n @ chances(theta)) - np.log(count))

    low = -g * (5.0 + np.log(total))
    high = float(np.max(np.abs(m))) + _DEVIATIONS * tau + g * (40.0 + np.log(total))
    return chances(root_scalar(excess, bracket=(low, high), xtol=1e-6 * g).root)
