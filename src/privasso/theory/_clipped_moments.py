"""Averages over residuals that are clipped."""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import NDArray
from scipy.special import ndtr

FloatArray = NDArray[np.float64]


def clipped_moments(
    kappa: float, E: FloatArray | float, V: FloatArray | float
) -> tuple[FloatArray, FloatArray]:
    """Mean slope and mean square of clipped residuals of Gaussian labels.

    A residual r ~ N(0, E) of a row that is left out of the fit becomes ψ = clip(r/(1+V), ±κ) once
    the row is in. With a = κ(1+V)/√E and p = 2Φ(a) − 1,

        q = E[ψ'] = p/(1+V),   E[ψ²] = E/(1+V)²·(p − 2aφ(a)) + 2κ²(1 − Φ(a)).

    Parameters
    ----------
    kappa : float
        κ.
    E : array_like
        Variance of a residual of a row that is left out.
    V : array_like
        How much less of it is left once the row is in.

    Examples
    --------
    >>> q, square = clipped_moments(100.0, 4.0, 1.0)  # nothing is clipped
    >>> float(q), float(square)
    (0.5, 1.0)
    """
    shrink = 1.0 + np.asarray(V, dtype=np.float64)
    E = np.asarray(E, dtype=np.float64)
    edge = kappa * shrink / np.sqrt(E)
    inside = 2.0 * ndtr(edge) - 1.0
    density = np.exp(-0.5 * edge**2) / math.sqrt(2.0 * math.pi)
    square = E / shrink**2 * (inside - 2.0 * edge * density) + 2.0 * kappa**2 * ndtr(-edge)
    return inside / shrink, square
