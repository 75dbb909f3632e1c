"""Clipped residuals: one point on given columns for a search, and averages over residuals."""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np
from scipy.special import ndtr

from privasso.model import Model
from privasso.theory._nodes import Nodes
from privasso.theory._root import FOUND, fixed_point
from privasso.theory._system import FloatArray, values


class ClippedPoint(NamedTuple):
    """Error and sparsity on given columns, and a start for the next point nearby."""

    E: float
    rho_hat: float
    start: tuple[float, float]


def clipped_point(
    model: Model,
    lam: float,
    kappa: float,
    v: FloatArray,
    w: FloatArray,
    variances: FloatArray,
    ridge: FloatArray,
    start: tuple[float, float] | None = None,
) -> ClippedPoint | None:
    """The fixed point on given columns, fast enough for a search; None where there is none.

    It is None, too, where double precision does not reach it. The scales of the model are not used:
    v, w, variances and ridge are squared scales, weights that sum to 1, noise variances and ridge.
    `start` is that of a point nearby.
    """
    s = Nodes(v, w, variances).system(model, lam, 1.0, kappa, ridge)
    with np.errstate(all="ignore"):
        status, x, y = fixed_point(s, *(start or (math.nan, math.nan)), False)
        if status != FOUND:
            return None
        E, _, rho_hat, _, _ = values(s, x, y)
    return ClippedPoint(E, rho_hat, (x, y))


def clipped_moments(
    kappa: float, E: FloatArray | float, V: FloatArray | float
) -> tuple[FloatArray, FloatArray]:
    """Mean slope and mean square of clipped residuals of Gaussian labels.

    A residual r ~ N(0, E) of a row that is left out of the fit becomes ψ = clip(r/(1+V), ±κ) once
    the row is in. With a = κ(1+V)/√E and p = 2Φ(a) − 1,

        q = E[ψ'] = p/(1+V),   E[ψ²] = E/(1+V)²·(p − 2aφ(a)) + 2κ²(1 − Φ(a)).
    """
    shrink = 1.0 + np.asarray(V, dtype=np.float64)
    E = np.asarray(E, dtype=np.float64)
    edge = kappa * shrink / np.sqrt(E)
    inside = 2.0 * ndtr(edge) - 1.0
    density = np.exp(-0.5 * edge**2) / math.sqrt(2.0 * math.pi)
    square = E / shrink**2 * (inside - 2.0 * edge * density) + 2.0 * kappa**2 * ndtr(-edge)
    return inside / shrink, square
