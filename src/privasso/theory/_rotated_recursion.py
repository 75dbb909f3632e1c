"""State evolution of vector AMP (VAMP), for F = A diag(s) with AᵀA of any spectrum.

In θ = s∘x the problem is ½‖y − Aθ‖² + Σ (λ|θ_i| + η_iθ_i)/s_i, and A is invariant under rotations
from the right. VAMP alternates between two estimates of θ⁰. The first thresholds a field of
precision γ₁ and error variance τ₁, the same for all columns. The second is the ridge estimate
around a point of precision γ₂ and error variance τ₂. With the averages over the columns

    ω₁ = E (θ̂ − θ⁰)²   and   ρ̂ = P(θ̂ ≠ 0),

and, over the eigenvalues d of AᵀA, q = d/(d+γ₂), p = 1 − q, r = E q, one iteration is

    γ₂ = γ₁(1−ρ̂)/ρ̂,   τ₂ = (ω₁ − ρ̂²τ₁)/(1−ρ̂)²,
    γ₁⁺ = γ₂r/(1−r),    τ₁⁺ = (σ_ξ² E[dp²]/γ₂² + τ₂ Var q)/r².

The averages over the columns are those of `_recursion` at α = 1, e = τ₁γ₁² and u = γ₁: independent
columns have γ₁ = α/(1+V) and τ₁ = E/α. At a fixed point r = ρ̂, and with R = γ₁²ω₁

    γ₁ = Γ = γ₂ρ̂/(1−ρ̂),    e = (σ_ξ² E[dp²] + R·Var(q)/ρ̂²) / E[p²].

Everything is a function of ℓ = log γ₂, which tends to −∞ at the edge of stability.
"""

from __future__ import annotations

import math

import numpy as np
from numba import njit

from privasso.theory._recursion import averages

#: ρ̂ below which no coefficient is active, and above which none is zero.
FEWEST = 1e-13


@njit(nogil=True, cache=True, error_model="numpy")
def eigenvalue_averages(ell, d, w):  # pragma: no cover
    """r, E[dp²], Var(q)/r², E[p²] and their derivatives by ℓ, with a mass 1 − Σw at d = 0.

    p and q depend on ℓ by dp/dℓ = pq. Sums of q are divided by r, which may be very small.
    """
    gamma = math.exp(ell)
    r = 0.0
    mass = 0.0
    for k in range(d.size):
        r += w[k] * d[k] / (d[k] + gamma)
        mass += w[k]
    zero = max(1.0 - mass, 0.0)
    r_l, noise, noise_l, spread, spread_l = 0.0, 0.0, 0.0, zero, 0.0
    square, square_l = zero, 0.0
    for k in range(d.size):
        q = d[k] / (d[k] + gamma)
        p = gamma / (d[k] + gamma)
        r_l -= w[k] * p * q
        noise += w[k] * d[k] * p * p
        noise_l += 2.0 * w[k] * d[k] * p * p * q
        spread += w[k] * (q / r - 1.0) ** 2
        square += w[k] * p * p
        square_l += 2.0 * w[k] * p * p * q
    for k in range(d.size):
        q = d[k] / (d[k] + gamma)
        slope = -(gamma / (d[k] + gamma) + r_l / r) * q / r
        spread_l += 2.0 * w[k] * (q / r - 1.0) * slope
    return r, noise, spread, square, r_l, noise_l, spread_l, square_l


@njit(nogil=True, cache=True, error_model="numpy")
def precision(ell, r):  # pragma: no cover
    """Γ = γ₂r/(1−r)."""
    return math.exp(ell) * r / (1.0 - r)


@njit(nogil=True, cache=True, error_model="numpy")
def start(rho, xi2, v, w, d, dw):  # pragma: no cover
    """(γ₁, τ₁) of the field Aᵀy/E[d], with which VAMP and AMP start: γ₂ = ∞ and θ = 0."""
    mean = 0.0
    for k in range(d.size):
        mean += dw[k] * d[k]
    spread, mass = 0.0, 0.0
    for k in range(d.size):
        spread += dw[k] * (d[k] / mean - 1.0) ** 2
        mass += dw[k]
    spread += max(1.0 - mass, 0.0)
    signal = 0.0
    for i in range(v.size):
        signal += rho * w[i] * v[i]
    return mean, xi2 / mean + signal * spread


@njit(nogil=True, cache=True, error_model="numpy")
def half_step(gamma1, tau1, rho_hat, omega, xi2, d, dw):  # pragma: no cover
    """(γ₁, τ₁) of the next field, from the present one and the averages over the columns."""
    ell = math.log(gamma1) + math.log1p(-rho_hat) - math.log(rho_hat)
    tau2 = max(omega - rho_hat * rho_hat * tau1, 0.0) / (1.0 - rho_hat) ** 2
    r, noise, spread, _, _, _, _, _ = eigenvalue_averages(ell, d, dw)
    gamma2 = math.exp(ell)
    return precision(ell, r), xi2 * noise / (gamma2 * r) ** 2 + tau2 * spread


@njit(nogil=True, cache=True, error_model="numpy")
def iterate_rotated(rho, xi2, lam, v, w, variances, d, dw, limit, tol, ceiling):  # pragma: no cover
    """Rows (E, V, ρ̂) of VAMP's thresholded estimates, after a row for θ = 0.

    E = ω₁ + σ_ξ² and V = ρ̂/γ₁. It ends when it converges or diverges, or has so many rows.
    """
    rows = np.zeros((limit, 3))
    gamma1, tau1 = start(rho, xi2, v, w, d, dw)
    E, V = xi2, 0.0
    for i in range(v.size):
        E += rho * w[i] * v[i]
    rows[0, 0] = E
    for k in range(1, limit):
        R, rho_hat, _, _, _, _ = averages(
            tau1 * gamma1 * gamma1, gamma1, 1.0, rho, 0.0, lam, 1.0, v, w, variances
        )
        omega = R / (gamma1 * gamma1)
        rows[k, 0] = omega + xi2
        rows[k, 1] = rho_hat / gamma1
        rows[k, 2] = rho_hat
        settled = abs(omega + xi2 - E) <= tol * E and abs(rows[k, 1] - V) <= tol * V
        E, V = rows[k, 0], rows[k, 1]
        idle = rho_hat < FEWEST
        if settled or idle or not ceiling > E or not ceiling > V:
            return rows[: k + 1]
        rho_hat = min(rho_hat, 1.0 - FEWEST)
        gamma1, tau1 = half_step(gamma1, tau1, rho_hat, omega, xi2, d, dw)
    return rows
