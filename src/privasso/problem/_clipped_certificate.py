"""Proof of how far a point is from the minimiser of a `ClippedProblem`.

P is strongly convex: with g any subgradient of P at x, and x̂ the minimiser,

    ‖x − x̂‖_Q ≤ ‖g‖_{Q⁻¹},    P(x) − P(x̂) ≤ ½‖g‖²_{Q⁻¹}.

The second is the duality gap. The dual of min P is

    max_θ −Σ_μ w_μ ℓ*(−θ_μ) − min_{|s_i| ≤ λω_i} ½‖Fᵀ(wθ) − η − s‖²_{Q⁻¹},

θ_μ in the range of the slopes (|θ| ≤ κ for Huber), and every θ and every s within its bounds gives
a lower bound of the minimum. With θ = ψ, the pulls at x, and s = λω∂|x| its value is
P(x) − ½‖g‖²_{Q⁻¹}: nothing is lost in a difference of large numbers.

The gradient is computed in twice the working precision, with a bound on the rounding that is left,
entry by entry. The bound is part of `distance` and `gap`.

A sharper bound on the distance to the minimiser, from what the first bound makes certain.

The first bound, ‖x − x̂‖_Q ≤ τ, counts only the curvature of the ridge. But within τ of x

- a row whose residual is further than its share of τ from ±κ keeps its curvature, and
- a column whose condition |gradient| ≤ λω is met with room to spare keeps x̂_i = 0.

So both x and x̂ lie on the remaining columns A, and between them P has at least the curvature
K = F_AᵀDF_A + Q_AA, D the curvature of the rows that is certain. The argument that gave the first
bound now gives ‖x − x̂‖_Q ≤ ‖x − x̂‖_K ≤ ‖g_A‖_{K⁻¹}. With many rows to a unit of ridge that is
smaller by orders of magnitude.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace

import numpy as np

from privasso.operators import Enclosed, two_product, two_sum
from privasso.problem._clipped import ClippedProblem
from privasso.problem._ridge import DualNorm

_UNIT = 2.0**-53


@dataclass(frozen=True, eq=False)
class ClippedCertificate:
    """What is known about a point x.

    - `kkt`: largest entry of the smallest subgradient, each relative to the terms it is the sum of.
    - `kkt_beyond_rounding`: the same without entries that one rounding of x explains.
    - `gap`: P(x) minus a lower bound of the minimum, rounding included.
    - `distance`: upper bound of ‖x − x̂‖_Q, rounding included.
    - `residual` (N,): the subgradient of P at x whose entries are smallest.
    - `rounding` (N,): bound on the rounding error of each entry of `residual` and `gradient`.
    - `gradient` (N,): gradient of the smooth part.
    - `fitted` (M,): Fx.
    """

    kkt: float
    kkt_beyond_rounding: float
    gap: float
    distance: float
    residual: np.ndarray = field(repr=False)
    rounding: np.ndarray = field(repr=False)
    gradient: np.ndarray = field(repr=False)
    fitted: Enclosed = field(repr=False)

    def proves(self, tol: float) -> bool:
        """Whether x is optimal to `tol`, or to the rounding of x if that is coarser."""
        return self.kkt_beyond_rounding <= tol


def certify_clipped(
    problem: ClippedProblem, x: np.ndarray, fitted: Enclosed | None = None
) -> ClippedCertificate:
    """Certify x; reads F once for Fx, if no enclosure `fitted` of it is given, and once for Fᵀψ.

    Where Q is a full matrix, the subgradient taken is the one with the smallest entries, which is
    not always the one of smallest norm; the bound is then larger than it need be, never smaller.
    """
    if fitted is None:
        fitted = problem.op.matvec_enclosed(x)
    psi = problem.loss.pull_enclosed(problem.y, fitted)
    if problem.weights is not None:
        psi = _scaled(problem.weights, psi)
    pulled = problem.op.rmatvec_enclosed(psi)
    ridged = problem.ridge.matvec_enclosed(x)
    if problem.penalty_weights is None:
        thresholds, below = problem.thresholds, np.zeros_like(x)
    else:
        thresholds, below = two_product(np.full_like(x, problem.lam), problem.penalty_weights)

    t, low = two_sum(ridged.value, -pulled.value)
    t, more = two_sum(t, problem.eta)
    low = (low + more) + (ridged.low - pulled.low)
    lost = np.abs(low) + np.abs(more) + np.abs(ridged.low) + np.abs(pulled.low)
    side = np.where(x != 0, np.sign(x), -np.sign(t + low))
    total, more = two_sum(t, thresholds * side)
    residual = total + ((more + low) + below * side)
    # At a zero of x the penalty takes up to λω off the gradient, and never changes its sign.
    residual = np.where((x == 0) & (residual * side >= 0), 0.0, residual)
    lost += np.abs(more) + np.abs(below)
    rounding = pulled.error + ridged.error + 8 * _UNIT * (lost + np.abs(residual)) + 2.0**-1060

    distance = problem.ridge.dual_norm(residual, rounding)
    size = np.abs(residual)
    scale = problem.scale(ridged.value, float(np.linalg.norm(psi.value)))
    relative = np.divide(size, scale, out=np.zeros_like(size), where=size > 0)
    beyond = size > problem.rounding_floor(x)
    return ClippedCertificate(
        kkt=float(relative.max()),
        kkt_beyond_rounding=float(relative[beyond].max(initial=0.0)),
        gap=0.5 * distance**2 * (1 + 4 * _UNIT),
        distance=distance,
        residual=residual,
        rounding=rounding,
        gradient=t + low,
        fitted=fitted,
    )


def _scaled(weights: np.ndarray, v: Enclosed) -> Enclosed:
    """The products w·v, exact but for the last digit of their low parts."""
    high, rest = two_product(weights, v.value)
    lower = weights * v.low
    high, low = two_sum(high, rest + lower)
    lost = 4 * _UNIT * (np.abs(rest) + np.abs(lower))
    return Enclosed(high, low, weights * v.error * (1 + 4 * _UNIT) + lost + 2.0**-1060)


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
