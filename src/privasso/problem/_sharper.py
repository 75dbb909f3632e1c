"""A sharper bound on the distance to the minimiser, from what the first bound makes certain.

The first bound, ‖x − x̂‖_Q ≤ τ, counts only the curvature of the ridge. But within τ of x

- a row whose residual is further than its share of τ from ±κ keeps its curvature, and
- a column whose condition |gradient| ≤ λω is met with room to spare keeps x̂_i = 0.

So both x and x̂ lie on the remaining columns A, and between them P has at least the curvature
K = F_AᵀDF_A + Q_AA, D the curvature of the rows that is certain. The argument that gave the first
bound now gives ‖x − x̂‖_Q ≤ ‖x − x̂‖_K ≤ ‖g_A‖_{K⁻¹}. With many rows to a unit of ridge that is
smaller by orders of magnitude.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from privasso.problem._clipped import ClippedProblem
from privasso.problem._clipped_certificate import ClippedCertificate
from privasso.problem._dual_norm import DualNorm

_UNIT = 2.0**-53
_SLACK = 1 + 1e-6


def undecided_columns(
    problem: ClippedProblem, x: np.ndarray, certificate: ClippedCertificate
) -> np.ndarray:
    """Which coefficients of the minimiser, or of x, may be other than zero."""
    reach = problem.ridge.reach(problem.squares)
    heaviest = 1.0 if problem.weights is None else float(problem.weights.max())
    # How much the gradient can change per unit of distance, column by column.
    change = problem.loss.curvature_bound * heaviest * np.sqrt(problem.squares) * reach
    change = (change + np.sqrt(problem.ridge.diagonal)) * _SLACK
    largest = np.abs(certificate.gradient) + certificate.rounding + change * certificate.distance
    return (x != 0) | (largest * (1 + 8 * _UNIT) >= problem.thresholds)


def certain_curvature(problem: ClippedProblem, certificate: ClippedCertificate) -> np.ndarray:
    """Curvature that each row has at least, everywhere between x and the minimiser."""
    u = certificate.fitted
    moved = problem.ridge.reach(problem.squares) * certificate.distance * _SLACK
    margin = moved + np.abs(u.low) + u.error + 4 * _UNIT * (np.abs(u.value) + np.abs(problem.y))
    return problem.least_curvature(u.value, margin)


def sharpened(
    certificate: ClippedCertificate, take: np.ndarray, K: np.ndarray, uncertainty: np.ndarray
) -> ClippedCertificate:
    """The certificate with the better of its bound and ‖g_A‖_{K⁻¹}.

    `take`: the columns A, at least those of `undecided_columns`. `K`: F_AᵀDF_A + Q_AA with D at
    most `certain_curvature`. `uncertainty`: bound on the rounding of K, see `DualNorm`.
    """
    try:
        norm = DualNorm(K, uncertainty)
    except ValueError:  # too close to singular: the first bound stands
        return certificate
    distance = norm(certificate.residual[take], certificate.rounding[take])
    if not distance < certificate.distance:
        return certificate
    return replace(certificate, distance=distance, gap=0.5 * distance**2 * (1 + 4 * _UNIT))
