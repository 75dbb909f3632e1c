"""Certificates of many problems that share F, compiled: those of `certify`, one per row."""

from __future__ import annotations

from functools import partial

import numpy as np
from numba import njit

from privasso._threads import chunks, run
from privasso.problem._certificate import _CANCELLATION_LIMIT, _EPS, Certificate

#: How much longer a step is made that was computed with products in single precision.
_LONGER = 1e-4


def certify_rows(
    norms: np.ndarray,
    B: np.ndarray,
    lams: np.ndarray,
    X: np.ndarray,
    W: np.ndarray,
    C: np.ndarray,
    directions: tuple[np.ndarray, np.ndarray],
) -> list[Certificate]:
    """Certify the rows of X, given the rows w = Fx, c = b − Fᵀw, δ and Fᵀδ of each problem.

    The gap is infinite if its δ does not lead into the feasible set. Products Fᵀδ in single
    precision have relative errors of about 10⁻⁶; a step that is longer by 10⁻⁴ makes up for them
    on the support, and elsewhere a step as short as these moves the conditions by less than
    rounding does.

    `norms` are those of the columns of F.
    """
    out = np.empty((len(X), 3))
    longer = 1.0 + _LONGER if directions[1].dtype == np.float32 else 1.0
    args = norms, B, lams, X, W, C, *directions, longer, out
    run([partial(evidence, *args, lo, hi) for lo, hi in chunks(len(X), X.size, align=1)])
    return [Certificate(*row) for row in out.tolist()]


@njit(nogil=True, cache=True)
def evidence(norms, B, lams, X, W, C, D, Q, longer, out, lo, hi):  # pragma: no cover
    """Rows lo..hi of the three numbers of a certificate."""
    for k in range(lo, hi):
        b, x, w, c, delta, q, lam = B[k], X[k], W[k], C[k], D[k], Q[k], lams[k]
        length, along, square, total = 0.0, 0.0, 0.0, 0.0
        for i in range(w.size):
            length += w[i] * w[i]
            along += w[i] * delta[i]
            square += np.float64(delta[i]) * delta[i]
        length = np.sqrt(length)
        for i in range(x.size):
            total += abs(x[i]) * norms[i]
        kkt, beyond, base, inside = 0.0, 0.0, 0.0, True
        for i in range(x.size):
            size = abs(c[i])
            violation = abs(c[i] - np.sign(x[i]) * lam) if x[i] != 0.0 else max(size - lam, 0.0)
            kkt = max(kkt, violation)
            rounding = 16 * _EPS * (abs(b[i]) + norms[i] * length)
            cancellation = min(_EPS * total * norms[i], _CANCELLATION_LIMIT * lam)
            if violation > rounding and violation > cancellation:
                beyond = max(beyond, violation)
            base += lam * abs(x[i]) - c[i] * x[i]
            inside &= size <= lam
        t = 0.0 if inside else _step(c, q, lam, longer)
        gap = base + t * along + 0.5 * t * t * square
        if not np.isfinite(base):  # comparisons with NaN are false: nothing above has a meaning
            kkt, beyond = np.inf, np.inf
        out[k] = kkt / lam, beyond / lam, max(gap, 0.0) if np.isfinite(gap) else np.inf


@njit(nogil=True, cache=True)
def _step(c, q, lam, longer):  # pragma: no cover
    """The smallest t ≥ 0 with ‖c − t q‖_∞ ≤ λ, times `longer`; infinite if that is not feasible."""
    lo, hi = 0.0, np.inf
    for i in range(c.size):
        if q[i] == 0.0:
            if abs(c[i]) > lam:
                return np.inf
            continue
        towards = lam if q[i] > 0.0 else -lam
        lo = max(lo, (c[i] - towards) / q[i])
        hi = min(hi, (c[i] + towards) / q[i])
    return longer * lo if longer * lo <= hi else np.inf
