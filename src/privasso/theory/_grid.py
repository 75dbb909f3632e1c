"""Fixed points along a grid on one set of nodes: the compiled loop over the points."""

from __future__ import annotations

import math

from numba import njit

from privasso.theory._edge import runaway
from privasso.theory._onavekl import component_wise
from privasso.theory._root import fixed_point

STABLE, UNSTABLE, INFINITE = 0, 1, 2
#: Rows of the array of results.
STATUS, ERROR, VARIANCE, ACTIVE, DIVERGENCE, SCALED_ERROR, SCALED_RESPONSE = range(7)
N_ROWS = 7
#: Absolute differences below this count as none.
_FLOOR = 1e-14


@njit(nogil=True, cache=True, error_model="numpy")
def solve_level(
    values, first, last, warm, lams, sigmas, ratio, alpha, rho, xi2, v, w, profile
):  # pragma: no cover
    """Write status, E, V, ρ̂, P and the scaled e, u of points first..last into `values`.

    With `warm`, each point starts from the e and u that `values` holds; without it, from its
    predecessor.
    """
    for k in range(first, last):
        lam, sigma2 = lams[k], sigmas[k] ** 2
        out = values[:, k]
        if lam <= ratio * sigmas[k]:
            start = out[SCALED_ERROR] if warm and out[SCALED_ERROR] > 0.0 else sigma2 / alpha
            out[SCALED_ERROR], out[ACTIVE] = runaway(start, alpha, lam, sigma2, v, w, profile)
            out[STATUS], out[SCALED_RESPONSE] = UNSTABLE, 0.0
            out[ERROR], out[VARIANCE], out[DIVERGENCE] = math.inf, math.inf, math.nan
            continue
        e, u = out[SCALED_ERROR], out[SCALED_RESPONSE]
        if not warm:
            e, u = 0.0, 0.0
            if k > first:
                e, u = values[SCALED_ERROR, k - 1], values[SCALED_RESPONSE, k - 1]
        e, u, rho_hat = fixed_point(e, u, alpha, rho, xi2, lam, sigma2, v, w, profile)
        out[STATUS] = STABLE
        out[ERROR] = e / (u * u)
        out[VARIANCE] = rho_hat / (alpha * u)  # 1/u − 1 would lose the digits of a small ρ̂
        out[ACTIVE] = rho_hat
        out[DIVERGENCE] = component_wise(e, u, alpha, rho, lam, sigma2, v, w, profile)
        out[SCALED_ERROR], out[SCALED_RESPONSE] = e, u


@njit(nogil=True, cache=True, error_model="numpy")
def agree(before, after, tolerance, settled):  # pragma: no cover
    """Mark the points at which status, E, V, ρ̂ and P of two quadratures agree."""
    for k in range(before.shape[1]):
        same = True
        for row in range(DIVERGENCE + 1):
            a, b = before[row, k], after[row, k]
            # NaN stands for what does not exist, inf for what diverges; both may agree.
            if not (a == b or (a != a and b != b)):
                same = same and abs(a - b) <= tolerance * abs(b) + _FLOOR
        settled[k] = same
