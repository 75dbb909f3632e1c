"""K LASSOs with the same Gram matrix: ½xᵀCx − b_kᵀx + λ‖x‖₁, solved from a start nearby."""

from __future__ import annotations

from functools import partial

import numpy as np
from numpy.typing import ArrayLike

from privasso._blas import one_thread
from privasso._clock import Clock
from privasso._threads import n_threads, run
from privasso._validation import positive_float, real_array
from privasso.solvers._gram import GramResult, Subproblem

#: Factor from one λ to the next on the way down to the one that is asked for.
_DESCENT = 0.6
#: Accuracy, relative to λ, that is enough on the way.
_ROUGHLY = 0.1


class GramLasso:
    """The minimisers of ½xᵀCx − b_kᵀx + λ‖x‖₁ for one C and many b_k.

    `C` (N, N): symmetric, positive semidefinite, with a positive diagonal. `rank`: its rank; N if
    not given.
    """

    def __init__(self, C: ArrayLike, rank: int | None = None) -> None:
        C = real_array("C", C, ndim=2)
        d = np.diag(C)
        if C.shape[0] != C.shape[1] or not np.min(d) > 0.0:
            raise ValueError("C must be square with a positive diagonal")
        self.norms = np.sqrt(d)
        self._H = C / self.norms
        self._H /= self.norms[:, None]
        self._rank = C.shape[0] if rank is None else rank

    def minimise(
        self,
        B: np.ndarray,
        lam: float,
        start: np.ndarray | None = None,
        *,
        tol: float = 1e-6,
    ) -> tuple[np.ndarray, np.ndarray]:
        """Solve for the columns of B until no optimality condition is violated by more than tol·λ.

        B, `start` (points close to the minimisers) and the result are of shape (N, K). Without
        `start`, λ is followed down to its value. The second result is False where the objective
        falls for ever, which needs a singular C, or the iteration gave up.
        """
        lam, tol = positive_float("lam", lam), positive_float("tol", tol)
        X = np.zeros(B.shape) if start is None else start.copy()
        solved = np.zeros(B.shape[1], dtype=bool)
        parts = min(n_threads(), B.shape[1])

        def work(part: int) -> None:
            for k in range(part, B.shape[1], parts):
                X[:, k], solved[k] = self._one(B[:, k], lam, X[:, k], tol, start is not None)

        with one_thread():
            run([partial(work, part) for part in range(parts)])
        return X, solved

    def _one(
        self, b: np.ndarray, lam: float, x: np.ndarray, tol: float, near: bool
    ) -> tuple[np.ndarray, bool]:
        b, z, clock = b / self.norms, x * self.norms, Clock(None)
        weights = lam / self.norms
        if near:
            # A few rounds from the start; if they fail, λ is followed down from above instead.
            found = self._subproblem(b, weights).minimise(z, tol, clock=clock, roughly=True)
            if self._violation(b, weights, found.z) <= tol:
                return found.z / self.norms, True
            z = np.zeros_like(z)
        top = float(np.max(np.abs(b) / weights))
        steps = max(0, int(np.ceil(np.log(max(top, 1.0)) / -np.log(_DESCENT))))
        for k in range(1, steps):
            z = self._subproblem(b, weights * top * _DESCENT**k).minimise(
                z, _ROUGHLY, clock=clock, roughly=True
            ).z  # fmt: skip
        result = self._subproblem(b, weights).minimise(z, tol, clock=clock)
        return result.z / self.norms, self._accepted(b, weights, result, tol)

    def _subproblem(self, b: np.ndarray, weights: np.ndarray) -> Subproblem:
        return Subproblem(self._H, b, weights, self._rank)

    def _violation(self, b: np.ndarray, weights: np.ndarray, z: np.ndarray) -> float:
        r = b - self._H @ z
        miss = np.where(z != 0.0, np.abs(r - weights * np.sign(z)), np.abs(r) - weights)
        return float(np.max(miss / weights))

    def _accepted(self, b: np.ndarray, weights: np.ndarray, result: GramResult, tol: float) -> bool:
        return not result.falling and self._violation(b, weights, result.z) <= 10.0 * tol
