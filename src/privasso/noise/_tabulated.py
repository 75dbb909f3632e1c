"""A noise profile given by values at a few scales."""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache
from typing import Any

import numpy as np

from privasso._validation import real_array
from privasso.noise._design import FloatArray, NoiseDesign

#: Most nodes a table may have; a file with more is taken for corrupt or hostile.
MAX_NODES = 10_000
#: Nodes must be further apart than this, or slopes lose their digits.
_CLOSEST = 1e-9
#: Larger logarithms are refused: no data have such scales.
_LARGEST = 1e4


@dataclass(frozen=True, repr=False)
class Tabulated(NoiseDesign):
    """log σ_η²(v) interpolated between nodes in log v, up to the factor that sigma fixes.

    The curve through the nodes is the natural cubic spline, which is smooth, so that averages over
    the scales converge fast; where neighbouring values differ much, it may overshoot them. Beyond
    the ends the profile continues as the power of v that it has there, so that every column has a
    sensible variance. A column with v = 0 gets the limit: no noise where that power is positive,
    and an error where it is negative.

    Parameters
    ----------
    sigma : float
        Root of the mean variance, zero or more.
    log_v : array_like of shape (K,)
        Nodes: natural logarithms of squared scales, increasing.
    log_profile_at : array_like of shape (K,)
        Logarithm of the profile at the nodes.

    Examples
    --------
    Two nodes make a power law, here σ_η² ∝ √v:

    >>> import numpy as np
    >>> from privasso import Tabulated
    >>> design = Tabulated(1.0, np.log([1.0, 100.0]), np.log([1.0, 10.0]))
    >>> design
    Tabulated(sigma=1.0, <2 nodes, v from 1 to 100>)
    >>> design.variances([1.0, 4.0, 9.0]).round(6)
    array([0.5, 1. , 1.5])
    """

    log_v: tuple[float, ...]
    log_profile_at: tuple[float, ...]

    def __post_init__(self) -> None:
        super().__post_init__()
        nodes = real_array("log_v", self.log_v, ndim=1)
        values = real_array("log_profile_at", self.log_profile_at, shape=nodes.shape)
        if nodes.size > MAX_NODES:
            raise ValueError(f"log_v must have at most {MAX_NODES} nodes, not {nodes.size}")
        if nodes.size > 1 and np.min(np.diff(nodes)) < _CLOSEST:
            raise ValueError("log_v must increase, by more than rounding, from node to node")
        if np.max(np.abs(nodes)) > _LARGEST or np.max(np.abs(values)) > _LARGEST:
            raise ValueError(
                f"log_v and log_profile_at hold logarithms, at most {_LARGEST:g} in size; "
                "were the numbers themselves passed?"
            )
        # Tuples make the design hashable, which keeps its quadrature from being built twice.
        object.__setattr__(self, "log_v", tuple(nodes.tolist()))
        object.__setattr__(self, "log_profile_at", tuple(values.tolist()))

    def in_words(self) -> str:
        """Say that the variance follows a table."""
        return "variance a function of v given by a table"

    def log_profile(self, v: FloatArray) -> FloatArray:
        """Return the interpolated logarithm."""
        nodes, values, slopes, curve = _interpolant(self.log_v, self.log_profile_at)
        v = np.asarray(v, dtype=np.float64)
        zero = v == 0.0
        if zero.any() and slopes[0] < 0.0:
            raise ValueError(
                "v has a zero, which this table, rising towards small v, would give infinite "
                "variance; drop the zero columns"
            )
        with np.errstate(divide="ignore"):
            x = np.log(v)
        inside = np.clip(x, nodes[0], nodes[-1])
        out = values[0] + np.zeros_like(x) if curve is None else curve(inside)
        with np.errstate(invalid="ignore"):
            below = slopes[0] * np.minimum(x - nodes[0], 0.0) if slopes[0] != 0.0 else 0.0
            above = slopes[1] * np.maximum(x - nodes[-1], 0.0)
        return out + below + above

    def __repr__(self) -> str:
        low, high = np.exp(self.log_v[0]), np.exp(self.log_v[-1])
        count = len(self.log_v)
        span = f"v from {low:g} to {high:g}" if count > 1 else f"v = {low:g}"
        nodes = "nodes" if count > 1 else "node"
        return f"Tabulated(sigma={self.sigma!r}, <{count} {nodes}, {span}>)"


@lru_cache(maxsize=64)
def _interpolant(
    log_v: tuple[float, ...], log_profile_at: tuple[float, ...]
) -> tuple[FloatArray, FloatArray, FloatArray, Any]:
    """Nodes, values, slopes at both ends, and the curve between (None for a single node)."""
    from scipy.interpolate import CubicSpline  # slow to import, and seldom needed

    nodes, values = np.array(log_v), np.array(log_profile_at)
    if nodes.size == 1:
        return nodes, values, np.zeros(2), None
    curve = CubicSpline(nodes, values, bc_type="natural")
    slopes = curve.derivative()(nodes[[0, -1]])
    return nodes, values, slopes, curve
