"""Algorithm 1 of Tanzawa & Sakata (2026), to the letter, for reproduction.

Random start, x ~ N(0, 1) and s ~ U[0, 1], and the Onsager term g ∘ ((F∘F)s) beside the scalar
s_θ = vᵀs/N. A fixed point then has g_μ = (y − Fx)_μ / (1 + s_θ − ((F∘F)s)_μ), which is not the
residual: **it solves the LASSO only up to O(N^−½)**, a relative KKT violation of 1–3 % at
N = 1000…4000. `_amp` is the exact form. This one also needs F∘F, a second matrix of the size
of F, and y itself: with the vector Onsager term it cannot be written in b = Fᵀy − η alone.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from privasso._clock import Clock
from privasso._validation import generator, integer
from privasso.operators import Operator, as_operator
from privasso.problem import LabelledProblem, Problem, certify_point
from privasso.solvers._algorithm import Algorithm, Outcome, checked_damping, register
from privasso.solvers._iteration import AmpState, End, iterate, movement, soft
from privasso.solvers._solution import Status


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
        x = run.state.x
        if run.ray is not None:
            return Outcome.unbounded(problem, run.ray, run.steps)
        if run.end is End.DIVERGED:
            return Outcome(x, Status.DIVERGED, run.steps)
        if run.end is End.TIME_LIMIT:
            return Outcome.at_limit(problem, x, run.steps)
        certificate = certify_point(problem, x)
        status = Status.FIXED_POINT if run.end is End.FIXED_POINT else Status.MAX_ITER
        if certificate.proves(tol):
            status = Status.CONVERGED
        return Outcome(x, status, run.steps, certificate)

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
