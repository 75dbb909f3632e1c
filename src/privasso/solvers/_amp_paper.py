"""Algorithm 1 of Tanzawa & Sakata (2026), to the letter, for reproduction.

Random start, x ~ N(0, 1) and s ~ U[0, 1], and the Onsager term g ∘ ((F∘F)s) beside the scalar
s_θ = vᵀs/N. A fixed point then has g_μ = (y − Fx)_μ / (1 + s_θ − ((F∘F)s)_μ), which is not the
residual: **it solves the LASSO only up to O(N^−½)**, a relative KKT violation of 1–3 % at
N = 1000…4000. `_amp` is the exact form. This one also needs F∘F, a second matrix of the size
of F, and y itself: with the vector Onsager term it cannot be written in b = Fᵀy − η alone.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import ClassVar

import numpy as np
from numba import njit

from privasso._clock import Clock
from privasso._validation import generator, integer
from privasso.operators import Operator, as_operator
from privasso.problem import LabelledProblem, Problem
from privasso.solvers import _tuned as tuned
from privasso.solvers._algorithm import Algorithm, Outcome, checked_damping, register
from privasso.solvers._iteration import AmpState, End, iterate, movement, outcome_of, soft
from privasso.solvers._solution import ComparesFields, Status


@dataclass(frozen=True, eq=False, kw_only=True)
class PaperState(AmpState):
    """The state of Algorithm 1: that of AMP, the variances s (N,) and the matrix F∘F."""

    s: np.ndarray
    squared: Operator


@register
@dataclass(frozen=True)
class AmpPaper(Algorithm):
    """Algorithm 1 of the paper, whose fixed point is close to the minimiser but not equal to it.

    It ends in `Status.FIXED_POINT`, and in CONVERGED only if the fixed point meets the tolerance on
    the KKT violation as any other solution must (it does if every coefficient is zero, say).

    Parameters
    ----------
    damping : float
        Weight in [0, 1) on the old value; the paper uses none.
    rng : None, int or numpy.random.Generator
        For the random start.
    max_iter : int
        Limit of iterations.

    Examples
    --------
    >>> import privasso as pv
    >>> s = pv.Model(alpha=1.0).sample(n_features=200, rng=0)
    >>> found = pv.solve(s.F, s.y, 0.5, method=AmpPaper(rng=0))
    >>> found.status.name, 1e-3 < found.kkt < 0.2
    ('FIXED_POINT', True)
    """

    name: ClassVar[str] = "amp-paper"
    advice: ClassVar[Mapping[Status, str]] = {
        Status.FIXED_POINT: (
            "Algorithm 1 of the paper solves the problem only to O(N^-1/2); "
            "method='amp' finds the minimiser."
        ),
        Status.MAX_ITER: (
            "In Algorithm 1 a coefficient at the threshold often keeps going to zero and back: "
            "use method='amp', or accept a larger tol."
        ),
        Status.DIVERGED: (
            "Algorithm 1 is made for independent columns and lambda well above its critical value. "
            "Use method='cd' or 'auto'."
        ),
    }

    damping: float = 0.0
    rng: int | np.random.Generator | None = None
    max_iter: int = 1000

    def __post_init__(self) -> None:
        object.__setattr__(self, "damping", checked_damping(self.damping))
        object.__setattr__(self, "max_iter", integer("max_iter", self.max_iter, minimum=1))

    def minimise(self, problem: Problem, tol: float, clock: Clock) -> Outcome:
        """Iterate until the relative change is below a tenth of `tol`, and certify the result."""
        run = iterate(self, problem, tol=tol, max_iter=self.max_iter, clock=clock)
        settled = run.end is End.FIXED_POINT
        return outcome_of(problem, run, tol, Status.FIXED_POINT if settled else Status.MAX_ITER)

    def init(self, problem: Problem) -> PaperState:
        """Draw the start and form F∘F."""
        _labels(problem)
        m, n = problem.shape
        rng = generator(self.rng)
        x, s = rng.standard_normal(n), rng.uniform(size=n)
        squared = as_operator(problem.op.toarray() ** 2)
        s_theta = float(problem.squares @ s) / m
        return PaperState(x, np.zeros(m), s_theta, problem.b, x, s=s, squared=squared)

    def step(
        self, problem: Problem, state: PaperState, take: np.ndarray | None = None
    ) -> PaperState:
        """One iteration: three products with matrices of the size of F."""
        y, eta = _labels(problem)
        m, squares = problem.shape[0], problem.squares
        problem.op.count(state.squared.matvec_cost(state.s))
        theta = problem.op.matvec(state.mixed) - state.g * state.squared.matvec(state.s)
        g = (y - theta) / (1.0 + state.s_theta)
        u = problem.op.rmatvec(g) + state.mixed * squares / (1.0 + state.s_theta) - eta
        scale = (1.0 + state.s_theta) / np.where(squares > 0, squares, np.inf)
        x = soft(u, problem.lam) * scale
        change, turnover = movement(problem, state.mixed, x)
        mixed = self.damping * state.mixed + (1.0 - self.damping) * x
        s = self.damping * state.s + (1.0 - self.damping) * scale * (np.abs(u) > problem.lam)
        s_theta = float(squares @ s) / m
        return PaperState(x, g, s_theta, u, mixed, change, turnover, s=s, squared=state.squared)


def _labels(problem: Problem) -> tuple[np.ndarray, np.ndarray]:
    if not isinstance(problem, LabelledProblem):
        raise ValueError(
            "method 'amp-paper' needs y and eta, not only b = F.T @ y - eta; "
            "call solve(F, y, lam, eta, method='amp-paper')"
        )
    return problem.y, problem.eta


_FAST = {"reassoc", "contract", "nsz"}

LIMIT, CONVERGED, BLOWN_UP, CYCLING = 0, 1, 2, 3

#: A floating type, and the relative differences that count as converged and as rounding.
_SINGLE = (np.float32, 1e-5, 1e-6)
_ROUNDING = 1e-12


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
    m, n_rhs = F.shape[0], lams.size
    X, S = (np.array(part.T, dtype=np.float64, order="C") for part in start)
    G = np.zeros((n_rhs, m))
    ends, n_iter = np.full(n_rhs, CONVERGED), np.zeros(n_rhs, dtype=np.int64)
    lost = max(tuned.PAPER_LOST, 1e3 * m)
    for kind, accuracy, same in (*([_SINGLE] if single else []), (np.float64, tol, _ROUNDING)):
        FT, labels = np.ascontiguousarray(F.T, dtype=kind), y.astype(kind)
        squares = (FT * FT).sum(axis=1)
        for k in np.flatnonzero((ends == CONVERGED) | (ends == CYCLING)).tolist():
            x, s, g = (part[k].astype(kind) for part in (X, S, G))
            ends[k], n_iter[k] = follow(
                FT, squares, labels, float(lams[k]), etas[:, k].astype(kind), x, s, g,
                int(n_iter[k]) + 1, max_iter, accuracy, same, lost,
            )  # fmt: skip
            X[k], S[k], G[k] = x, s, g
    converged, blown_up, cycling = (ends == end for end in (CONVERGED, BLOWN_UP, CYCLING))
    return PaperRuns(X.T, S.T, converged, blown_up, cycling, n_iter)
