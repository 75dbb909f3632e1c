"""Whether it pays to shrink the largest rows of a release, from the covariates alone."""

from __future__ import annotations

import numpy as np

from privasso._blas import one_thread
from privasso._tuned import SHRINK_GAIN, SHRINK_PRODUCTS
from privasso.operators import Covariates
from privasso.planning._release_shape import ReleaseShape, release_shape, row_sample

_JITTER = 1e-10


def best_shrink(rows: Covariates, bound: float, label_deviation: float) -> float:
    """Return the part of the rows to shrink: 0.75 if that explains more, else 0.

    Compared is the expected error of the best linear guess of coefficients x ~ N(0, τ²/N) of
    standardised columns from labels with deviation τ around their predictions.

    `bound`: largest size of a row in units of the noise. `label_deviation`: τ, in the same unit as
    the range of the labels.
    """
    if not rows.live.any():
        return 0.0
    part = row_sample(rows)
    copies = rows.shape[0] / part.shape[0]
    errors = [
        _expected_error(part, release_shape(part, shrink), bound, label_deviation, copies)
        for shrink in (0.0, SHRINK_PRODUCTS)
    ]
    return SHRINK_PRODUCTS if errors[0] - errors[1] > SHRINK_GAIN else 0.0


def _expected_error(
    rows: Covariates, shape: ReleaseShape, bound: float, label_deviation: float, copies: float
) -> float:
    """Mean squared error of the best linear guess per row, in units of τ²."""
    n, scale = shape.covariance.size, np.sqrt(rows.squares[rows.live] / rows.total)
    units = np.outer(scale, scale)
    weights = np.ones(rows.shape[0]) if rows.weights is None else rows.weights
    weights = np.minimum(weights, 1.0 / np.sqrt(shape.squares))
    G = copies * rows.moments(weights) / units
    V = copies * rows.moments(weights**2) / units
    V += shape.covariance.matrix() / (units * (bound * label_deviation) ** 2)
    K = G @ G / n + V
    K[np.diag_indices(n)] += _JITTER * np.trace(K) / n
    with one_thread():
        left = np.eye(n) / n - G @ np.linalg.solve(K, G) / n**2
    return float(np.sum(rows.moments(rows.weights) / units * left) / rows.total)
