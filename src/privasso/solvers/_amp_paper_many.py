"""Algorithm 1 of Tanzawa & Sakata (2026), to the letter, on many right-hand sides at once.

The iteration of `_amp_paper` with one column of X per pair (λ, η) on one F, so that its three
products are products of matrices. A column leaves the batch when it has converged or blown up.
The last columns, which take by far the most iterations, run one by one in a compiled loop.

A run starts from random numbers, so its first iterations need few digits. They are in single
precision, which takes half the time. A run that converges or cycles in single precision goes on in
double precision, and counts as converged or cycling only if it does so there too. A run that blows
up in single precision, or still moves at the last iteration, is not repeated.

That loop, `follow`, does no needless work:

- only coefficients that are not zero enter Fx and (F∘F)s, and a column is read once per iteration:
  as soon as its u_i is known, so are the new x_i and s_i, which enter the next Fx and (F∘F)s while
  the column is in cache;
- with x_i = 0 the field is u_i = F_iᵀg − η_i, so |u_i − u_i'| ≤ ‖F_i‖‖g − g'‖: while g is close to
  its value when all of u was computed, most columns cannot have crossed the threshold and are
  not read;
- a run that comes back to an earlier state (x, s, g), up to rounding, is in a cycle and never
  converges. If the support keeps changing, it mostly does so in a cycle of two to about ten
  iterations.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

import numpy as np
from numba import njit

from privasso._blas import product
from privasso._validation import generator
from privasso.solvers import _tuned as tuned
from privasso.solvers._solution import ComparesFields

_FAST = {"reassoc", "contract", "nsz"}

LIMIT, CONVERGED, BLOWN_UP, CYCLING = 0, 1, 2, 3


@njit(nogil=True, cache=True)
def threshold(Q, eta, squares, s_theta, lam, X, S, moved, size, response):  # pragma: no cover
    """Turn X and S into the next iterates, given Q = FᵀG.

    For each right-hand side, `moved` and `size` become the squared lengths of the step and of x,
    with coefficients weighted by column norms, and `response` the sum of ‖F_i‖² s_i.
    """
    n, n_rhs = Q.shape
    for i in range(n):
        q = squares[i]
        for k in range(n_rhs):
            scale = 1.0 + s_theta[k]
            u = Q[i, k] + X[i, k] * q / scale - eta[i, k]
            new_x, new_s = 0.0, 0.0
            if q > 0.0 and abs(u) > lam[k]:
                new_s = scale / q
                new_x = (u - lam[k] if u > 0.0 else u + lam[k]) * new_s
            moved[k] += q * (new_x - X[i, k]) ** 2
            size[k] += q * new_x * new_x
            response[k] += q * new_s
            X[i, k] = new_x
            S[i, k] = new_s


@njit(nogil=True, cache=True, fastmath=_FAST)
def follow(FT, squares, y, lam, eta, x, s, g, first, max_iter, tol, same, lost):  # pragma: no cover
    """Iterate from iteration `first` on, changing x, s and g in place; returns (end, iterations).

    The arithmetic has the precision of F. Two states count as the same if they differ by no more
    than `same`, relatively, which should be well above rounding.
    """
    n, m = FT.shape
    number = FT.dtype.type  # sums over rows stay in the precision of F, or they would be slow
    rows, n_rows = np.arange(n), n
    centre, reach = np.zeros(m, FT.dtype), -1.0
    fitted, corrected, s_theta = np.zeros(m, FT.dtype), np.zeros(m, FT.dtype), 0.0
    for i in range(n):
        s_theta += squares[i] * s[i] / m
        _add(FT[i], x[i], s[i], fitted, corrected)
    mark_x, mark_s, mark_g, due = x.copy(), s.copy(), g.copy(), 0
    sizes = np.zeros(max_iter + 1)
    for iteration in range(first, max_iter + 1):
        scale = 1.0 + s_theta
        step, distance = 0.0, 0.0
        for mu in range(m):
            new_g = number((y[mu] - fitted[mu] + g[mu] * corrected[mu]) / scale)
            step += (new_g - g[mu]) ** 2
            distance += (new_g - centre[mu]) ** 2
            g[mu] = new_g
        everything = not distance <= reach * reach
        if everything:
            for i in range(n):
                rows[i] = i
            n_rows, reach = n, tuned.PAPER_REACH * np.sqrt(step)
            centre[:] = g
        fitted[:] = 0.0
        corrected[:] = 0.0
        kept, size, change, response = 0, 0.0, 0.0, 0.0
        for k in range(n_rows):
            i = rows[k]
            q, f = squares[i], FT[i]
            product = number(0.0)
            for mu in range(m):
                product += f[mu] * g[mu]
            u = product + x[i] * q / scale - eta[i]
            new_x, new_s = 0.0, 0.0
            if q > 0.0 and abs(u) > lam:
                new_s = scale / q
                new_x = (u - lam if u > 0.0 else u + lam) * new_s
                _add(f, number(new_x), number(new_s), fitted, corrected)
            # The bound on u holds only while x_i = 0: columns with other coefficients stay in.
            if everything and (x[i] != 0.0 or abs(u) + np.sqrt(q) * reach >= lam):
                rows[kept] = i
                kept += 1
            size += q * new_x * new_x
            change += q * (new_x - x[i]) ** 2
            response += q * new_s
            x[i] = number(new_x)
            s[i] = number(new_s)
        if everything:
            n_rows = kept
        runaway, s_theta = not s_theta <= lost, response / m
        if runaway or not np.isfinite(size):
            return BLOWN_UP, iteration
        if change <= tol * tol * size:
            return CONVERGED, iteration
        if iteration == due:
            if _near(x, mark_x, same) and _near(s, mark_s, same) and _near(g, mark_g, same):
                return CYCLING, iteration
            due = 0
        # If x had the same size p iterations ago, compare the states p iterations from now.
        sizes[iteration] = size
        if due <= iteration:
            for k in range(iteration - 1, first - 1, -1):
                if abs(sizes[k] - size) <= same * size:
                    due = 2 * iteration - k
                    mark_x[:] = x
                    mark_s[:] = s
                    mark_g[:] = g
                    break
    return LIMIT, max_iter


@njit(nogil=True, cache=True, fastmath=_FAST)
def _add(f, x, s, fitted, corrected):  # pragma: no cover
    """Add one column's part of Fx and (F∘F)s."""
    for mu in range(f.size):
        fitted[mu] += x * f[mu]
        corrected[mu] += s * f[mu] * f[mu]


@njit(nogil=True, cache=True, fastmath=_FAST)
def _near(a, b, same):  # pragma: no cover
    difference, size = 0.0, 0.0
    for i in range(a.size):
        difference += (a[i] - b[i]) ** 2
        size += a[i] ** 2
    return difference <= same * same * size


@dataclass(frozen=True)
class _Precision:
    """A floating type, and the relative differences that count as converged and as rounding."""

    kind: type
    tol: float
    same: float


#: Marks a run that has not ended yet.
_OPEN = -1
_SINGLE = _Precision(np.float32, 1e-5, 1e-6)
_SAME_IN_DOUBLE = 1e-12


@dataclass(frozen=True, eq=False)
class PaperRuns(ComparesFields):
    """How the K runs of Algorithm 1 ended.

    - `x` (N, K): the last iterates.
    - `s` (N, K): the last variances s.
    - `converged` (K,): the relative change of x came below the tolerance: x is a fixed point of
      Algorithm 1, which is not the minimiser.
    - `blown_up` (K,): s_θ became huge or overflowed.
    - `cycling` (K,): the run repeats an exact cycle. A run that neither converged nor blew up nor
      cycles still moved at the last iteration.
    """

    x: np.ndarray
    s: np.ndarray
    converged: np.ndarray
    blown_up: np.ndarray
    cycling: np.ndarray
    n_iter: np.ndarray


def paper_starts(n: int, rngs: Iterable[object]) -> tuple[np.ndarray, np.ndarray]:
    """Draw the paper's start, x ~ N(0, 1) and s ~ U[0, 1], for each of several runs.

    Column k of both comes from the k-th of `rngs`, drawn in the same order as in `AmpPaper`.
    """
    generators = [generator(rng) for rng in rngs]
    x = np.stack([rng.standard_normal(n) for rng in generators], axis=1)
    return x, np.stack([rng.uniform(size=n) for rng in generators], axis=1)


def amp_paper_many(
    F: np.ndarray,
    y: np.ndarray,
    lams: np.ndarray,
    etas: np.ndarray,
    start: tuple[np.ndarray, np.ndarray],
    *,
    tol: float = 1e-8,
    max_iter: int = 500,
    single: bool = True,
) -> PaperRuns:
    """Run Algorithm 1 on ½‖y − Fx‖² + λ_k‖x‖₁ + η_kᵀx for k = 1…K.

    A run has converged when ‖x⁺ − x‖ ≤ tol·‖x⁺‖, coefficients weighted with the norms of their
    columns, as in `AmpPaper`.

    - `start` (N, K): x and s of each run; the paper draws them with `paper_starts`.
    - `tol`: relative change at which a run counts as converged.
    - `single`: whether to begin in single precision.
    """
    x, s = (np.array(part, dtype=np.float64) for part in start)
    state = _State(x, s, np.zeros((F.shape[0], lams.size)), np.zeros(lams.size, dtype=np.int64))
    ends = np.full(lams.size, _OPEN)
    for precision in (_SINGLE, _Precision(np.float64, tol, _SAME_IN_DOUBLE)):
        if precision is _SINGLE and not single:
            continue
        ends[ends == CONVERGED] = _OPEN
        ends[ends == CYCLING] = _OPEN
        _advance(F, y, lams, etas, state, ends, max_iter, precision)
    return PaperRuns(
        state.x,
        state.s,
        converged=ends == CONVERGED,
        blown_up=ends == BLOWN_UP,
        cycling=ends == CYCLING,
        n_iter=state.n_iter,
    )


@dataclass(frozen=True, eq=False)
class _State:
    """All runs: x and s of shape (N, K), g of shape (M, K), and the iterations taken so far.

    Its arrays are updated in place.
    """

    x: np.ndarray
    s: np.ndarray
    g: np.ndarray
    n_iter: np.ndarray


def _advance(
    F: np.ndarray,
    y: np.ndarray,
    lams: np.ndarray,
    etas: np.ndarray,
    state: _State,
    ends: np.ndarray,
    max_iter: int,
    precision: _Precision,
) -> None:
    """Continue all runs that have not ended, in one precision, until each has."""
    m, kind = F.shape[0], precision.kind
    lost = max(tuned.PAPER_LOST, 1e3 * m)
    rhs = np.flatnonzero(ends == _OPEN)
    F, y, lam = F.astype(kind), y.astype(kind), lams[rhs].astype(kind)
    X, S, G, eta = (A[:, rhs].astype(kind) for A in (state.x, state.s, state.g, etas))
    squared = F * F
    squares = squared.sum(axis=0)
    s_theta = squares @ S / m
    behind = state.n_iter[rhs]
    for _ in range(tuned.PAPER_BATCHED):
        if rhs.size <= tuned.PAPER_FEW:
            break
        G *= product(squared, S)
        G -= product(F, X)
        G += y[:, None]
        G /= 1.0 + s_theta
        moved, size, response = np.zeros((3, rhs.size))
        threshold(product(F.T, G), eta, squares, s_theta, lam, X, S, moved, size, response)
        behind = behind + 1
        runaway = ~np.isfinite(size) | ~(s_theta <= lost)
        settled = moved <= precision.tol**2 * size
        s_theta = (response / m).astype(kind)
        done = runaway | settled | (behind == max_iter)
        if done.any():
            gone = rhs[done]
            ends[gone] = np.select([runaway[done], settled[done]], [BLOWN_UP, CONVERGED], LIMIT)
            state.x[:, gone], state.s[:, gone] = X[:, done], S[:, done]
            state.g[:, gone], state.n_iter[gone] = G[:, done], behind[done]
            keep = ~done
            rhs, lam, s_theta, behind = rhs[keep], lam[keep], s_theta[keep], behind[keep]
            X, S, G, eta = X[:, keep], S[:, keep], G[:, keep], eta[:, keep]

    FT = np.ascontiguousarray(F.T)
    X, S, G, eta = (np.ascontiguousarray(part.T) for part in (X, S, G, eta))
    for j, k in enumerate(rhs.tolist()):
        ends[k], state.n_iter[k] = follow(
            FT, squares, y, float(lam[j]), eta[j], X[j], S[j], G[j],
            int(behind[j]) + 1, max_iter, precision.tol, precision.same, lost,
        )  # fmt: skip
        state.x[:, k], state.s[:, k], state.g[:, k] = X[j], S[j], G[j]
