"""Shapes of noise over correlated columns: the size of a row in units of one, and the best one."""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import NDArray

from privasso._blas import one_thread
from privasso.model import GivenCovariance
from privasso.noise import Covariance, Factored, MatrixPower, NoiseDesign

FloatArray = NDArray[np.float64]
Shape = NoiseDesign | MatrixPower | Covariance


def row_size(shape: Shape, C: GivenCovariance) -> float:
    """Root of tr(CΣ⁻¹)/N at level 1: the root mean square of ‖f‖_{Σ⁻¹} over rows."""
    if isinstance(shape, MatrixPower):
        with one_thread():
            d = np.linalg.eigvalsh(C.covariance)
        d = d[d > 1e-10 * d[-1]]
        mean = float(np.sum(d**shape.gamma)) / C.n_columns
        return math.sqrt(mean * float(np.sum(d ** (1.0 - shape.gamma))) / C.n_columns)
    if isinstance(shape, NoiseDesign):
        return math.sqrt(float(np.mean(C.diagonal / shape.variances(C.diagonal))))
    white = shape.whiten(C.root)
    return math.sqrt(float(np.sum(white * white)) / C.n_columns)


def best_shape(W: FloatArray, C: FloatArray) -> Factored:
    """Σ ∝ W^(−½)(W^½CW^½)^½W^(−½), of mean variance 1: least tr(WΣ) at a given tr(CΣ⁻¹)."""
    with one_thread():
        d, Q = np.linalg.eigh(W)
        root, inverse = (Q * np.sqrt(d)) @ Q.T, (Q / np.sqrt(d)) @ Q.T
        d, Q = np.linalg.eigh(root @ C @ root)
        half = inverse @ (Q * np.maximum(d, 1e-12 * d[-1]) ** 0.25)
    return Factored(half * math.sqrt(W.shape[0] / float(np.sum(half * half))))


def shape_gap(shape: Covariance, W: FloatArray, C: GivenCovariance) -> float:
    """tr(WΣ)·tr(CΣ⁻¹)/T² − 1, which is zero for the best shape alone."""
    white = shape.whiten(C.root)
    with one_thread():
        # T is the sum of the singular values of W^½C^½, and any roots of W and C will do.
        T = float(np.sum(np.linalg.svd(np.linalg.cholesky(W).T @ C.root, compute_uv=False)))
    return shape.trace(W) * float(np.sum(white * white)) / T**2 - 1.0
