"""The columns a design is searched on: few enough to be quick, faithful enough to be right."""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache

import numpy as np
from numpy.typing import NDArray

from privasso.noise import Isotropic
from privasso.scales import Constant, Empirical, ScaleLaw
from privasso.theory._nodes import Tail, quadrature

FloatArray = NDArray[np.float64]

#: Nodes of a law without small columns; enough for 1e-5 in E and OnAveKL, far below what matters
#: to the place of an optimum. What is reported comes from `state_evolution`.
_NODES = 48
#: More columns than this are gathered in bins of equal width in log v...
_MANY = 160
#: ...except for the smallest and the largest, which may decide by themselves.
_ENDS = 16
#: Nodes of the error of a scale, and their range in standard deviations.
_BLUR = (19, 7.0)


@dataclass(frozen=True, eq=False)
class Columns:
    """Squared scales v with weights w that sum to 1, and log v̂, the scales that the noise sees."""

    v: FloatArray
    w: FloatArray
    log_seen: FloatArray

    def __init__(self, v: FloatArray, w: FloatArray, log_seen: FloatArray | None = None) -> None:
        object.__setattr__(self, "v", v)
        object.__setattr__(self, "w", w)
        object.__setattr__(self, "log_seen", np.log(v) if log_seen is None else log_seen)


@lru_cache(maxsize=32)
def search_columns(scales: ScaleLaw, n_features: int | None, tau: float = 0.0) -> Columns:
    """Columns to search a design on, for so many features or for the limit of many.

    With tau the noise sees v̂ = v e^(τZ), Z standard normal, in place of v.
    """
    columns = _columns(scales, n_features)
    if tau == 0.0:
        return columns
    v, w, seen = blurred(columns.v, columns.w, tau, *_BLUR)
    return Columns(v, w, np.log(seen))


def blurred(
    v: FloatArray, w: FloatArray, tau: float, n: int, reach: float = 9.0
) -> tuple[FloatArray, FloatArray, FloatArray]:
    """Return v, weights and v̂ = v e^(τz) for every pair of a column and a node z of n.

    The nodes are those of the trapezoidal rule over ±reach, which converges exponentially and,
    unlike Gauss–Hermite, resolves what few columns far out in Z do.

    Examples
    --------
    >>> import numpy as np
    >>> v, w, seen = blurred(np.array([1.0, 4.0]), np.array([0.5, 0.5]), 0.3, 31)
    >>> v.size, round(float(w @ (np.log(seen / v)) ** 2), 12)
    (62, 0.09)
    """
    z = np.linspace(-reach, reach, n)
    weight: FloatArray = np.exp(-0.5 * z * z)
    weight = weight / float(np.sum(weight))
    return np.repeat(v, n), np.outer(w, weight).ravel(), np.outer(v, np.exp(tau * z)).ravel()


def _columns(scales: ScaleLaw, n_features: int | None) -> Columns:
    if n_features is not None:
        v = scales.quantiles(n_features) ** 2
        return _gathered(v, np.full(v.size, 1.0 / v.size))
    if isinstance(scales, (Empirical, Constant)):
        return _gathered(*scales.quadrature(1))
    if scales.quantile([0.0])[0] == 0.0 and np.isfinite(scales.quantile([1.0])[0]):
        # Columns down to v = 0 and a density there: small columns may carry much of the noise.
        nodes = quadrature(scales, Isotropic(1.0), 0, Tail.SLOW)
        return _sorted(nodes.v, nodes.w)
    return _sorted(*scales.quadrature(_NODES))


def _sorted(v: FloatArray, w: FloatArray) -> Columns:
    order = np.argsort(v)
    return Columns(v[order], w[order])


def _gathered(v: FloatArray, w: FloatArray) -> Columns:
    order = np.argsort(v)
    v, w = v[order], w[order]
    if v.size <= _MANY:
        return Columns(v, w)
    x = np.log(v)
    middle = slice(_ENDS, v.size - _ENDS)
    edges = np.linspace(x[_ENDS], x[-_ENDS - 1], _MANY - 2 * _ENDS + 1)
    bins = np.clip(np.searchsorted(edges, x[middle], side="right") - 1, 0, edges.size - 2)
    weight: FloatArray = np.bincount(bins, w[middle]).astype(np.float64)
    mean = np.bincount(bins, w[middle] * x[middle])
    mean, weight = mean[weight > 0.0] / weight[weight > 0.0], weight[weight > 0.0]
    return Columns(
        np.concatenate([v[:_ENDS], np.exp(mean), v[-_ENDS:]]),
        np.concatenate([w[:_ENDS], weight, w[-_ENDS:]]),
    )
