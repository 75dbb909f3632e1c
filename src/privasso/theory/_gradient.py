"""Error, leakage and sparsity at one point on given columns, fast enough for a search.

The leakage is the OnAveKL of the whole vector, or the advantage of the best membership attack. Both
are functions of the component-wise divergence P and of V.

A fixed point is a root of F₁ = R(e, u) + σ_ξ²u² − e and F₂ = 1 − ρ̂(e, u)/α − u, u = 1/(1+V). For
any function Φ of the fixed point and of a parameter x (a variance of the noise, or λ), implicit
differentiation gives

    dΦ/dx = Φ_x − a·F_x,    Jᵀa = (Φ_e, Φ_u),   J = ∂F/∂(e, u),

so one solve of a 2×2 system for each Φ, and one pass over the columns, give all derivatives.
"""

from __future__ import annotations

import math
from typing import Literal, NamedTuple, TypeAlias

import numpy as np
from scipy.special import ndtr

from privasso.model import Model
from privasso.theory._attack import advantages
from privasso.theory._nodes import Nodes
from privasso.theory._onavekl import NEGLIGIBLE, layer
from privasso.theory._root import FOUND, fixed_point
from privasso.theory._system import FloatArray, channel, column_averages, kernel, values

Leakage: TypeAlias = Literal["onavekl", "advantage"]

#: Relative step of the differences.
_STEP = 1e-5


class PointGradients(NamedTuple):
    """E and leakage (zero if not asked for) at one point, and derivatives of their logarithms.

    The derivatives are in log λ, and in the logarithm of each variance. `start` is where a search
    for a point nearby may start.
    """

    E: float
    leakage: float
    E_by_lam: float
    leakage_by_lam: float
    E_by_variances: FloatArray
    leakage_by_variances: FloatArray
    start: tuple[float, float]


def point_gradients(
    model: Model,
    lam: float,
    variances: FloatArray,
    v: FloatArray,
    w: FloatArray,
    *,
    leakage: Leakage | None = "onavekl",
    start: tuple[float, float] | None = None,
) -> PointGradients | None:
    """Predict E and leakage on given columns with noise of given variances, with derivatives.

    v, w and variances are squared scales, weights that sum to 1 and noise variances of the columns;
    the scales of the model are not used. The leakage takes most of the time. `start` is that of a
    point nearby. The answer is None where no estimator exists, or where double precision does not
    reach the fixed point; numbers too large for a float are inf or NaN.
    """
    s = Nodes(v, w, variances).system(model, lam)
    with np.errstate(all="ignore"):
        status, x, y = fixed_point(s, *(start or (math.nan, math.nan)), False)
        if status != FOUND:
            return None
        *_, e, u = values(s, x, y)
    E_by, K_by = np.empty(v.size), np.empty(v.size)
    V = 1.0 / u - 1.0
    # K = P(1 + u⁻²)/2 + (1 − u)²/u, as a function of P and u.
    linear = (0.5 * (1.0 + u**-2), -(u**-3), V * V * u, -2.0 * V - V * V)
    E, K, E_lam, K_lam = _gradients(s, e, u, leakage is not None, *linear, E_by, K_by)
    if leakage == "advantage" and math.isfinite(K):
        P = (K - linear[2]) / linear[0]
        value, by_P, by_V = _advantage(P, V)
        # Linear in P, with the same value and slopes here.
        linear = (by_P, 0.0, value - by_P * P, -by_V / u**2)
        E, K, E_lam, K_lam = _gradients(s, e, u, True, *linear, E_by, K_by)
    return PointGradients(E, K, E_lam, K_lam, E_by, K_by, (x, y))


def _advantage(P: float, V: float) -> tuple[float, float, float]:
    """The advantage of the best attack, and its slopes in P and V, by differences."""
    h_P, h_V = _STEP * P + 1e-30, _STEP * (1.0 + V)
    at_P = np.array([P, P + h_P, P - h_P, P, P])
    at_V = np.array([V, V, V, V + h_V, V - h_V])
    # The formulas hold for V just below zero too.
    values = advantages(at_V, at_P * (1.0 + at_V) ** 2)
    by_P, by_V = (values[1] - values[2]) / (2.0 * h_P), (values[3] - values[4]) / (2.0 * h_V)
    return float(values[0]), float(by_P), float(by_V)


@kernel
def _gradients(
    s, e, u, leak, growth, growth_u, rest, rest_u, error_by, leak_by
):  # pragma: no cover
    """E and K = P·growth + rest at a fixed point, with derivatives of their logarithms.

    `growth` and `rest` are functions of u, given here with their derivatives. Returns
    (E, K, ∂log E/∂log λ, ∂log K/∂log λ); ∂log E/∂log σ_i² and ∂log K/∂log σ_i² are written to
    `error_by` and `leak_by`. Without `leak`, K and its derivatives are zero.
    """
    n = s.v.size
    alpha, rho, lam = s.alpha, s.rho, s.lam
    _, _, _, R_e, R_u, S_e, S_u = column_averages(s, e, u)
    R_u += 2.0 * u * s.xi2
    # Partial derivatives of R and ρ̂ (kept in the output for now) in log σ_i² and log λ.
    R_lam, rho_lam = 0.0, 0.0
    P, P_e, P_u, P_lam = 0.0, 0.0, 0.0, 0.0
    P_by = np.zeros(n) if leak else np.zeros(0)
    for i in range(n):
        v = s.v[i]
        av = alpha * v
        var = s.power * s.profile[i]
        signal = (av * u) ** 2
        R_s, rho_s = 0.0, 0.0
        for k in range(2):
            share = s.w[i] * (rho if k == 1 else 1.0 - rho)
            prior = av * e + k * signal
            A = prior + var
            q, slope, _, _, _ = channel(A, lam)
            if q == 0.0:
                continue
            t2 = lam * lam / A
            R_s += share * var * (q - (2.0 * signal * slope / A if k == 1 else 0.0)) / (alpha * av)
            rho_s += share * var * slope / A
            # λ ∂(A g)/∂λ = 2A(t²q − 2tφ), λ ∂q/∂λ = −2tφ.
            R_lam += (
                share
                * (2.0 * A * (t2 * q - 2.0 * slope) + (4.0 * signal * slope if k == 1 else 0.0))
                / (alpha * av)
            )
            rho_lam -= share * 2.0 * slope
            if not leak or var == 0.0:
                continue
            G, G_kappa, G_s = 0.0, 0.0, 0.0
            if share * v * (q + slope) * e > NEGLIGIBLE * P * var:
                sigma = math.sqrt(var)
                G, G_kappa, G_s = layer(lam / sigma, math.sqrt(prior) / sigma, True)
            factor = share * v * e
            P += factor * ((q + G) / var + 2.0 * slope / A)
            curve = slope * (3.0 - t2) / (A * A)  # −∂(2tφ/A)/∂A
            by_prior = factor * ((slope / A + 0.5 * G_s / prior) / var - curve)
            P_e += by_prior * av
            P_u += by_prior * 2.0 * k * signal / u
            P_by[i] += factor * (
                (slope * var / A - 0.5 * (G_kappa + G_s) - q - G) / var - curve * var
            )
            P_lam += factor * ((G_kappa - 2.0 * slope) / var + 2.0 * slope * (1.0 - t2) / A)
        error_by[i], leak_by[i] = R_s, rho_s
    P_e += P / e

    a11, a12, a21, a22 = R_e - 1.0, R_u, -S_e, -S_u - 1.0
    det = a11 * a22 - a12 * a21
    E = e / (u * u)
    # Jᵀa = (Φ_e, Φ_u) for Φ = log E = log e − 2 log u.
    x1 = (a22 / e + 2.0 * a21 / u) / det
    x2 = (-2.0 * a11 / u - a12 / e) / det
    E_lam = -x1 * R_lam + x2 * rho_lam / alpha
    K, K_lam, y1, y2, by_P = 0.0, 0.0, 0.0, 0.0, 0.0
    if leak:
        K = P * growth + rest
        if K > 0.0:
            K_u = growth * P_u + growth_u * P + rest_u
            K_e = growth * P_e
            y1 = (K_e * a22 - K_u * a21) / (det * K)
            y2 = (K_u * a11 - K_e * a12) / (det * K)
            by_P = growth / K
            K_lam = by_P * P_lam - y1 * R_lam + y2 * rho_lam / alpha
    for i in range(n):
        R_s, rho_s = error_by[i], leak_by[i]
        error_by[i] = -x1 * R_s + x2 * rho_s / alpha
        leak_by[i] = -y1 * R_s + y2 * rho_s / alpha
        if leak:
            leak_by[i] += by_P * P_by[i]
    return E, K, E_lam, K_lam


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
    # The difference is ⅔a³φ(0) for small a, where rounding would make it negative.
    third = np.where(edge < 1e-4, 2.0 / 3.0 * edge**3 * density, inside - 2.0 * edge * density)
    square = E / shrink**2 * third + 2.0 * kappa**2 * ndtr(-edge)
    return inside / shrink, square
