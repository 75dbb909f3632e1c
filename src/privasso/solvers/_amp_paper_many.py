"""Algorithm 1 of Tanzawa & Sakata (2026), to the letter, on many right-hand sides at once.

The iteration of `_amp_paper` with one column of X per pair (λ, η) on one F, so that its three
products are products of matrices. A column leaves the batch when it has converged or blown up.
The last columns, which take by far the most iterations, run one by one in a compiled loop
(`_amp_paper_kernels`).

A run starts from random numbers, so its first iterations need few digits. They are in single
precision, which takes half the time. A run that converges or cycles in single precision goes on in
double precision, and counts as converged or cycling only if it does so there too. A run that blows
up in single precision, or still moves at the last iteration, is not repeated.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

import numpy as np

from privasso._blas import product
from privasso._validation import generator
from privasso.solvers._amp_paper_kernels import (
    BLOWN_UP,
    CONVERGED,
    CYCLING,
    LIMIT,
    follow,
    threshold,
)
from privasso.solvers._solution import ComparesFields

#: A run has blown up if s_θ exceeds this number and 1000 M. At a fixed point with k < M active
#: columns s_θ is k/(M − k) < M.
_LOST = 1e6
#: The batch ends when no more than _FEW columns are left, or after _BATCHED iterations.
_FEW, _BATCHED = 32, 64


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
