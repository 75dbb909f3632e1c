"""A few columns that stand for all of them while a design is searched."""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache

import numpy as np
from numpy.typing import NDArray

from privasso.scales import Constant, Empirical, ScaleLaw
from privasso.theory import with_scale_error

FloatArray = NDArray[np.float64]

#: Nodes of a law without small columns: enough for 1e-5 in E and OnAveKL, which moves an optimum by
#: far less than matters. The numbers that are reported come from `state_evolution`.
_NODES = 48
#: Nodes of a law with scales down to zero.
_TAIL_NODES = 128
#: More columns than this are merged in bins of equal width in log v...
_MANY = 160
#: ...except for so many of the smallest and of the largest, each of which may matter by itself.
_ENDS = 16
#: Nodes of the error of a scale, and their range in standard deviations.
_ERROR_NODES = (19, 7.0)


@dataclass(frozen=True, eq=False)
class SearchColumns:
    """Squared scales v with weights w that sum to 1, and log v̂, the scales that the noise sees."""

    v: FloatArray
    w: FloatArray
    log_seen: FloatArray

    def __init__(self, v: FloatArray, w: FloatArray, log_seen: FloatArray | None = None) -> None:
        object.__setattr__(self, "v", v)
        object.__setattr__(self, "w", w)
        object.__setattr__(self, "log_seen", np.log(v) if log_seen is None else log_seen)


@lru_cache(maxsize=32)
def search_columns(
    scales: ScaleLaw, n_features: int | None, scale_error: float = 0.0
) -> SearchColumns:
    """Columns to search a design on, for so many features or for the limit of many.

    With an error τ of the scales the noise sees v̂ = v e^(τZ), Z standard normal, in place of v.
    """
    columns = _columns(scales, n_features)
    if scale_error == 0.0:
        return columns
    v, w, seen = with_scale_error(columns.v, columns.w, scale_error, *_ERROR_NODES)
    return SearchColumns(v, w, np.log(seen))


def _columns(scales: ScaleLaw, n_features: int | None) -> SearchColumns:
    if n_features is not None:
        v = scales.quantiles(n_features) ** 2
        return _merged(v, np.full(v.size, 1.0 / v.size))
    if isinstance(scales, (Empirical, Constant)):
        return _merged(*scales.quadrature(1))
    if scales.quantile([0.0])[0] == 0.0 and np.isfinite(scales.quantile([1.0])[0]):
        # There are columns down to v = 0, and they may carry much of the noise.
        return _sorted(*scales.tail_quadrature(_TAIL_NODES))
    return _sorted(*scales.quadrature(_NODES))


def _sorted(v: FloatArray, w: FloatArray) -> SearchColumns:
    order = np.argsort(v)
    return SearchColumns(v[order], w[order])


def _merged(v: FloatArray, w: FloatArray) -> SearchColumns:
    order = np.argsort(v)
    v, w = v[order], w[order]
    if v.size <= _MANY:
        return SearchColumns(v, w)
    x = np.log(v)
    middle = slice(_ENDS, v.size - _ENDS)
    edges = np.linspace(x[_ENDS], x[-_ENDS - 1], _MANY - 2 * _ENDS + 1)
    bins = np.clip(np.searchsorted(edges, x[middle], side="right") - 1, 0, edges.size - 2)
    weight: FloatArray = np.bincount(bins, w[middle]).astype(np.float64)
    mean = np.bincount(bins, w[middle] * x[middle])
    mean, weight = mean[weight > 0.0] / weight[weight > 0.0], weight[weight > 0.0]
    return SearchColumns(
        np.concatenate([v[:_ENDS], np.exp(mean), v[-_ENDS:]]),
        np.concatenate([w[:_ENDS], weight, w[-_ENDS:]]),
    )
