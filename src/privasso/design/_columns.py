"""Columns that stand for all of them while a design is searched."""

from __future__ import annotations

from functools import lru_cache
from typing import NamedTuple

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


class SearchColumns(NamedTuple):
    """Squared scales v, weights w that sum to 1, and log v̂ of the scales that the noise sees."""

    v: FloatArray
    w: FloatArray
    log_seen: FloatArray


@lru_cache(maxsize=32)
def search_columns(
    scales: ScaleLaw, n_features: int | None, scale_error: float = 0.0
) -> SearchColumns:
    """Columns to search a design on, for so many features or for the limit of many.

    With an error τ of the scales the noise sees v̂ = v e^(τZ), Z standard normal, in place of v.
    """
    v, w = _columns(scales, n_features)
    order = np.argsort(v)
    v, w = v[order], w[order]
    if scale_error == 0.0:
        return SearchColumns(v, w, np.log(v))
    v, w, seen = with_scale_error(v, w, scale_error, *_ERROR_NODES)
    return SearchColumns(v, w, np.log(seen))


def _columns(scales: ScaleLaw, n_features: int | None) -> tuple[FloatArray, FloatArray]:
    if n_features is not None:
        v = scales.quantiles(n_features) ** 2
        return _merged(v, np.full(v.size, 1.0 / v.size))
    if isinstance(scales, (Empirical, Constant)):
        return _merged(*scales.quadrature(1))
    if scales.quantile([0.0])[0] == 0.0 and np.isfinite(scales.quantile([1.0])[0]):
        # There are columns down to v = 0, and they may carry much of the noise.
        return scales.tail_quadrature(_TAIL_NODES)
    return scales.quadrature(_NODES)


def _merged(v: FloatArray, w: FloatArray) -> tuple[FloatArray, FloatArray]:
    """Columns in increasing order of v, merged in bins if there are many."""
    if v.size <= _MANY:
        return v, w
    x = np.log(v)
    middle = slice(_ENDS, v.size - _ENDS)
    edges = np.linspace(x[_ENDS], x[-_ENDS - 1], _MANY - 2 * _ENDS + 1)
    bins = np.clip(np.searchsorted(edges, x[middle], side="right") - 1, 0, edges.size - 2)
    weight: FloatArray = np.bincount(bins, w[middle]).astype(np.float64)
    mean = np.bincount(bins, w[middle] * x[middle])
    mean, weight = mean[weight > 0.0] / weight[weight > 0.0], weight[weight > 0.0]
    return (
        np.concatenate([v[:_ENDS], np.exp(mean), v[-_ENDS:]]),
        np.concatenate([w[:_ENDS], weight, w[-_ENDS:]]),
    )
