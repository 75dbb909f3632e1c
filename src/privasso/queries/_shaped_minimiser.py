"""Objective perturbation with noise and ridge of any shape S, as it is computed.

With S = LLᵀ, L lower triangular, the mechanism that the accounting is about returns the exact
minimiser x̂ of

    Σ_μ ℓ_κ(y_μ − g_μᵀx) + λ Σ_i ω_i|x_i| + (Λ/2) xᵀSx + ηᵀx,   η = σLz,  ‖L⁻¹g_μ‖ ≤ R,

z standard normal. L is an exact matrix of floating-point numbers. As for S = I, the distance
between the computed and the exact minimiser is bounded, here in the norm ‖Lᵀ(x − x̂)‖, and noise
well above it is added in integers, to Lᵀx.
"""

from __future__ import annotations

import math
from fractions import Fraction

import numpy as np
from scipy.linalg import solve_triangular

from privasso.problem import ClippedProblem
from privasso.queries._objective_noise import (
    ENOUGH,
    ETA_BITS,
    UNIT,
    Eta,
    ObjectiveNoise,
    covers,
    drawn_eta,
    noisy_output,
    output_exponent,
    without_small,
)
from privasso.queries._rounded_gaussian import BitSource
from privasso.solvers import (
    FixedPoint,
    LongProblem,
    exact_product,
    minimise_long,
    solve_clipped_problem,
)

#: Eigenvalues of S are raised to this part of the largest, so that rounding errors stay small.
SMALLEST_EIGENVALUE = 1e-4
#: Rows are shrunk by this part more than needed: more than rounding of ‖L⁻¹g‖ can amount to.
_SHORTER = 2.0**-30


def shape_factor(S: np.ndarray, floor: float = 0.0) -> np.ndarray:
    """L of a matrix whose eigenvalues are raised to a floor, and to 1e-4 of the largest.

    Where nothing is left of it, because noise hid all columns, L is the identity.
    """
    values, vectors = np.linalg.eigh(S)
    least = max(floor, SMALLEST_EIGENVALUE * float(values[-1]))
    if not least > 0.0:
        return np.eye(len(S))
    raised = (vectors * np.maximum(values, least)) @ vectors.T
    return np.linalg.cholesky(0.5 * (raised + raised.T))


def shrunk_rows(
    G: np.ndarray, y: np.ndarray, L: np.ndarray, radius: float
) -> tuple[np.ndarray, np.ndarray]:
    """Rows with ‖L⁻¹g‖ ≤ R, and their labels; longer rows are shrunk together with theirs."""
    white = solve_triangular(L, G.T, lower=True)
    length = np.sqrt(np.einsum("ij,ij->j", white, white))
    with np.errstate(divide="ignore"):
        factor = np.minimum(1.0, radius * (1.0 - _SHORTER) / length)
    return factor[:, None] * G, factor * y


def shaped_minimiser(
    G: np.ndarray,
    y: np.ndarray,
    lam: float,
    noise: ObjectiveNoise,
    bits: BitSource,
    *,
    L: np.ndarray,
    penalty_weights: np.ndarray,
) -> np.ndarray:
    """Run the mechanism once; as `perturbed_minimiser`, with noise of the covariance σ²LLᵀ.

    Parameters
    ----------
    G, y
        Rows with ‖L⁻¹g‖ ≤ R, which must be certain, and labels scaled with them.
    lam, noise, bits, penalty_weights
        As in `perturbed_minimiser`.
    L : ndarray of shape (N, N)
        Lower triangular, with a condition number of at most about a hundred.
    """
    n = G.shape[1]
    drawn = drawn_eta(noise, n, bits)
    z, S = drawn.normal, L @ L.T
    problem = ClippedProblem(
        G,
        y,
        lam,
        loss=noise.loss,
        ridge=noise.ridge * (0.5 * (S + S.T)),
        eta=noise.sigma * (L @ z),
        penalty_weights=penalty_weights,
    )
    solution = solve_clipped_problem(problem, throw=False)
    exponent = output_exponent(noise, n)
    off = _distance(solution.x, solution.distance, z, L, noise)
    if covers(noise, off, n):
        whole = [int(k) for k in np.rint(np.ldexp(L.T @ solution.x, -exponent)).tolist()]
    else:
        whole, off = _long(G, y, lam * penalty_weights, drawn, L, solution.x)
    turned = noisy_output(noise, whole, off, bits)
    # From here on everything is computed from the noisy integers.
    x = solve_triangular(L, turned, lower=True, trans=1)
    deviation = noise.sigma_out * np.sqrt(np.diag(np.linalg.inv(S)))
    return without_small(x, deviation, penalty_weights)


def _long(
    G: np.ndarray,
    y: np.ndarray,
    thresholds: np.ndarray,
    drawn: Eta,
    L: np.ndarray,
    start: np.ndarray,
) -> tuple[list[int], float]:
    """Lᵀx in steps of its grid, and its distance, in longer numbers than double precision."""
    noise, n = drawn.noise, len(start)
    problem = LongProblem.of_rows(
        G, y, noise.loss, None, noise.ridge, exact_product(L, drawn.exact), thresholds, L
    )
    exponent = output_exponent(noise, n)
    wanted = ENOUGH * noise.shift * noise.sigma_out
    x, distance, _ = minimise_long(problem, FixedPoint.near(start, 64), wanted)
    turned = exact_product(L.T, [Fraction(k, 1 << x.bits) for k in x.whole])
    step = Fraction(2) ** exponent
    return [round(v / step) for v in turned], distance + drawn.step


def _distance(
    x: np.ndarray, distance: float, z: np.ndarray, L: np.ndarray, noise: ObjectiveNoise
) -> float:
    """Bound ‖Lᵀ(x − x̂)‖ and the rounding of Lᵀx.

    An error e of the gradient moves the minimiser by ‖L⁻¹e‖/Λ at most. The rounding of z is in the
    units of L⁻¹e. That of the products Lz, of LLᵀ times x, and of Lᵀx is at most n + 4 units of the
    products of absolute values.
    """
    n = z.size
    unit, size = (n + 4) * UNIT, np.abs(L)
    # ‖L⁻¹‖ is not larger than the Frobenius norm of the inverse.
    inverse = float(np.linalg.norm(np.linalg.inv(L))) * (1.0 + 1e-6)
    of_z = noise.sigma * float(np.linalg.norm(2.0**-ETA_BITS + 4.0 * UNIT * np.abs(z)))
    of_noise = noise.sigma * 2.0 * unit * float(np.linalg.norm(size @ np.abs(z)))
    turned = size.T @ np.abs(x)
    of_ridge = noise.ridge * 3.0 * unit * float(np.linalg.norm(size @ turned))
    moved = (of_z + inverse * (of_noise + of_ridge)) / noise.ridge
    of_output = unit * float(np.linalg.norm(turned))
    return distance / math.sqrt(noise.ridge) * (1.0 + 1e-9) + moved + of_output
