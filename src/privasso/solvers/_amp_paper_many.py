"""Algorithm 1 of Tanzawa & Sakata (2026), to the letter, on many right-hand sides at once.

The iteration of `_amp_paper`, a column of X for each pair (λ, η) on one F, so that its three
products are products of matrices. A column leaves the batch when it has converged or blown up.
The last ones, which take by far the most iterations, are followed one by one (`_amp_paper_tail`).

A run starts from random numbers, and its first iterations need few digits: they are in single
precision, at half the cost. A run that has settled there, or goes round in circles, goes on in
double precision, in which alone it can converge. One that blows up, or is still moving after the
last iteration, has been seen to do so.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

import numpy as np
from numba import njit

from privasso._blas import product
from privasso._validation import generator
from privasso.solvers._amp_paper_tail import BLOWN_UP, CONVERGED, CYCLING, LIMIT, follow

#: s_θ of a fixed point with k < M active columns is k/(M − k) < M. Beyond a thousand times that,
#: and a million, the run has left for good.
_LOST = 1e6
#: The batch ends with so few columns, or after so many iterations.
_FEW, _BATCHED = 32, 64


@dataclass(frozen=True)
class _Precision:
    """Numbers of a kind; what counts as settled in them, and as the same up to rounding."""

    kind: type
    tol: float
    same: float


#: A run that has not ended, beside the ways to end.
_OPEN = -1
_SINGLE = _Precision(np.float32, 1e-5, 1e-6)
_SAME_IN_DOUBLE = 1e-12


@dataclass(frozen=True)
class PaperRuns:
    """How the K runs of Algorithm 1 ended.

    Attributes
    ----------
    x : ndarray, shape (N, K)
        The last iterates.
    s : ndarray, shape (N, K)
        The last variances s.
    converged : ndarray of bool, shape (K,)
        The relative change of x came below the tolerance.
    blown_up : ndarray of bool, shape (K,)
        s_θ ran away or overflowed. A run that neither converged nor blew up flickers: it stayed
        bounded without settling.
    cycling : ndarray of bool, shape (K,)
        The flicker is an exact cycle; the other flickering runs moved until the last iteration.
    n_iter : ndarray of int, shape (K,)
        Iterations taken.
    """

    x: np.ndarray
    s: np.ndarray
    converged: np.ndarray
    blown_up: np.ndarray
    cycling: np.ndarray
    n_iter: np.ndarray


def paper_starts(n: int, rngs: Iterable[object]) -> tuple[np.ndarray, np.ndarray]:
    """Draw the paper's start, x ~ N(0, 1) and s ~ U[0, 1], for each of several runs.

    Column k of both comes from the k-th of `rngs`, in the order in which `solve` draws.

    >>> x, s = paper_starts(3, rngs=[0, 1])
    >>> x.shape, bool(x[0, 1] == np.random.default_rng(1).standard_normal())
    ((3, 2), True)
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
    columns (the size of a step in units of Fx, as in `solve`).

    Parameters
    ----------
    F : ndarray, shape (M, N)
    y : ndarray, shape (M,)
    lams : ndarray, shape (K,)
    etas : ndarray, shape (N, K)
    start : pair of ndarray, shape (N, K)
        x and s of each run; the paper draws them with `paper_starts`.
    tol : float
        Relative change at which a run counts as converged.
    max_iter : int
        Iterations after which a run that still moves is given up.
    single : bool
        Whether to begin in single precision.

    Examples
    --------
    >>> import privasso as pv
    >>> s = pv.Model(alpha=1.0).sample(n_features=200, rng=0)
    >>> etas = pv.Gram(0.05).draw(s.v, rng=1, size=3)
    >>> runs = amp_paper_many(s.F, s.y, np.full(3, 0.5), etas, paper_starts(200, range(3)))
    >>> runs.converged
    array([ True,  True,  True])
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


@dataclass(frozen=True)
class _State:
    """Where the runs are: x, s (N, K), g (M, K) and the iterations behind them."""

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
    """Take all open runs to their ends in one precision."""
    m, kind = F.shape[0], precision.kind
    lost = max(_LOST, 1e3 * m)
    rhs = np.flatnonzero(ends == _OPEN)
    F, y, lam = F.astype(kind), y.astype(kind), lams[rhs].astype(kind)
    X, S, G, eta = (A[:, rhs].astype(kind) for A in (state.x, state.s, state.g, etas))
    squared = F * F
    squares = squared.sum(axis=0)
    s_theta = squares @ S / m
    behind = state.n_iter[rhs]
    for _ in range(_BATCHED):
        if rhs.size <= _FEW:
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


@njit(nogil=True, cache=True)
def threshold(Q, eta, squares, s_theta, lam, X, S, moved, size, response):  # pragma: no cover
    """Turn X and S into the next iterates, given Q = FᵀG.

    For each right-hand side, `moved` and `size` become the squared lengths of the step and of x in
    units of Fx, `response` the sum of ‖F_i‖² s_i.
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
