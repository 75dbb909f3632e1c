"""Vector AMP (VAMP): one factorisation of F, then thresholds and ridge estimates in turn.

Write F = A diag(s) with columns of A of equal norms, θ = s∘x, b̃ = b/s, λ̃ = λ/s. One iteration:

    θ̂₁ = soft(r₁, λ̃/γ₁),                     a = #{θ̂₁ ≠ 0}/N
    r₂ = (θ̂₁ − a r₁)/(1−a),                   γ₂ = γ₁(1−a)/a
    θ̂₂ = (AᵀA + γ₂)⁻¹(b̃ + γ₂r₂),              a' = tr γ₂(AᵀA + γ₂)⁻¹/N
    r₁ ← (θ̂₂ − a' r₂)/(1−a'),                γ₁ ← γ₂(1−a')/a'

With the linear term η in b it is the same, iterate by iterate, as with η in the threshold and Aᵀy
in the ridge estimate. The singular value decomposition of A serves all γ₂. At a fixed point
θ̂₁ = θ̂₂ and γ₁(r₁ − θ̂) = b̃ − AᵀAθ̂, which are the optimality conditions, for any γ₁ and γ₂.

The count a jumps by 1/N whenever a coefficient goes to zero or back, so γ₁ and γ₂ need not settle.
After some iterations one precision is kept for both halves. With damping, what remains is the
Douglas–Rachford splitting, which converges whenever a minimiser exists.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import ClassVar

import numpy as np

from privasso._clock import Clock
from privasso._validation import integer
from privasso.problem import Problem, certify_point, ray_from
from privasso.solvers import _tuned as tuned
from privasso.solvers._algorithm import Algorithm, Outcome, checked_damping, register
from privasso.solvers._growth import grow_working_set
from privasso.solvers._iteration import movement, soft
from privasso.solvers._solution import Status, Step

#: Eigenvalues below this part of the largest count as zero.
_ZERO = 1e-13


@dataclass(frozen=True, eq=False)
class Spectral:
    """AᵀA = W diag(d) Wᵀ with d > 0, and what an iteration needs of b and λ in these units."""

    d: np.ndarray
    W: np.ndarray
    scales: np.ndarray
    inside: np.ndarray
    """Wᵀb̃."""
    outside: np.ndarray
    """b̃ − WWᵀb̃, which only noise can have."""


@dataclass(frozen=True, eq=False)
class VampState:
    """Everything that one iteration passes on to the next.

    - `x` (N,): the thresholded estimate, with exact zeros.
    - `r1`, `gamma1`: the field of the threshold, in units of θ, and its precision.
    - `gamma2`: precision of the ridge estimate.
    - `active`: the fraction a of nonzero coefficients.
    - `change`, `turnover`: as in `AmpState`.
    """

    x: np.ndarray
    r1: np.ndarray
    gamma1: float
    gamma2: float
    active: float
    change: float
    turnover: float
    parts: Spectral

    @property
    def n_active(self) -> int:
        """Number of coefficients that are not zero."""
        return int(np.count_nonzero(self.x))


@register
@dataclass(frozen=True)
class Vamp(Algorithm):
    """Vector AMP, for covariates with any spectrum and eigenvectors without preferred directions.

    It needs the singular value decomposition of F, and so min(M, N)·M·N operations.

    Parameters
    ----------
    damping : float
        Weight in [0, 1) on the old field and precision.
    freeze : bool
        Keep the precisions after 30 iterations, or when the iterates grow, so that the iteration
        converges to the minimiser whenever there is one.
    polish : bool
        Solve exactly on the support once it hardly changes. False iterates until the certificate
        proves the minimiser.
    max_iter : int
        Limit of iterations.

    Examples
    --------
    >>> import privasso as pv
    >>> model = pv.model.RotatedModel(alpha=0.5, spectrum=pv.model.TwoLevel(100.0))
    >>> s = model.sample(n_features=200, rng=0)
    >>> found = pv.solve(s.F, s.y, 0.2, method="vamp")
    >>> found.status.name, found.kkt < 1e-8
    ('CONVERGED', True)
    """

    name: ClassVar[str] = "vamp"
    advice: ClassVar[Mapping[Status, str]] = {
        Status.DIVERGED: (
            "The directions of F are not random enough for vector AMP: use method='cd' or 'auto', "
            "or Vamp(damping=0.5)."
        ),
        Status.MAX_ITER: (
            "Raise max_iter, use Vamp(polish=True), or method='cd'; "
            "critical_lambda(F, eta) tells whether a minimiser exists."
        ),
    }

    damping: float = 0.0
    freeze: bool = True
    polish: bool = True
    max_iter: int = 1000

    def __post_init__(self) -> None:
        object.__setattr__(self, "damping", checked_damping(self.damping))
        object.__setattr__(self, "max_iter", integer("max_iter", self.max_iter, minimum=1))

    def minimise(self, problem: Problem, tol: float, clock: Clock) -> Outcome:
        """Iterate until the support hardly changes or the certificate proves the minimiser."""
        state = self.init(problem)
        first = float(np.linalg.norm(state.x * state.parts.scales)) + 1e-300
        steps: list[Step] = []
        frozen = False
        for iteration in range(1, self.max_iter + 1):
            if clock.expired():
                return Outcome.at_limit(problem, np.nan_to_num(state.x), steps)
            with np.errstate(over="ignore", invalid="ignore"):
                state = self.step(problem, state, frozen=frozen)
                size = float(np.linalg.norm(state.x * state.parts.scales))
            steps.append(Step("vamp", state.n_active, state.change, state.gamma1))
            lost = not size < tuned.VAMP_FAR * first or not np.isfinite(state.gamma1)
            if lost and (frozen or not self.freeze):
                return self._lost(problem, np.nan_to_num(state.x), steps)
            if not frozen and self.freeze and (lost or iteration >= tuned.VAMP_FREEZE_AFTER):
                frozen, state = True, self._frozen(problem, state, afresh=lost)
                continue
            settled = (
                state.turnover <= tuned.SETTLED_TURNOVER and state.change <= tuned.SETTLED_CHANGE
            )
            if self.polish and (settled or iteration >= tuned.VAMP_PATIENCE):
                outcome = grow_working_set(
                    problem, state.x, np.flatnonzero(state.x), tol=tol, clock=clock
                )
                return replace(outcome, steps=steps + outcome.steps)
            if iteration % tuned.VAMP_LOOK == 0 or state.change <= 0.01 * tol:
                # The gap takes projections and a linear programme: only for the last iterate.
                if certify_point(problem, state.x, anchors=False).proves(tol):
                    return Outcome(
                        state.x, Status.CONVERGED, steps, certify_point(problem, state.x)
                    )
                ray = None if problem.bounded else ray_from(problem, state.x)
                if ray is not None:
                    return Outcome.unbounded(problem, ray, steps)
        return Outcome(state.x, Status.MAX_ITER, steps, certify_point(problem, state.x))

    def _lost(self, problem: Problem, x: np.ndarray, steps: list[Step]) -> Outcome:
        """The outcome of iterates that grow: a ray if they follow one, else divergence."""
        ray = None if problem.bounded else ray_from(problem, x)
        if ray is not None:
            return Outcome.unbounded(problem, ray, steps)
        return Outcome(x, Status.DIVERGED, steps)

    def _frozen(self, problem: Problem, state: VampState, *, afresh: bool) -> VampState:
        """The state from which the splitting with one precision γ for both halves goes on.

        γ₁(r₁ − θ̂) estimates the gradient, and stays the same when γ₁ becomes γ.
        """
        d, n = state.parts.d, state.x.size
        mean = float(np.sum(d)) / n
        gamma = float(np.sqrt(state.gamma1 * state.gamma2))
        if afresh or not d[-1] <= gamma <= d[0]:
            gamma, b = mean, state.parts.W @ state.parts.inside + state.parts.outside
            zero = replace(state, x=np.zeros(n), gamma2=gamma)
            return self._threshold(problem, zero, b / gamma, gamma)
        theta = state.x * state.parts.scales
        r1 = theta + (state.gamma1 / gamma) * (state.r1 - theta)
        return self._threshold(problem, replace(state, gamma2=gamma), r1, gamma)

    def init(self, problem: Problem, scales: np.ndarray | None = None) -> VampState:
        """Factorise F, and threshold b̃ itself; scales are the column norms unless given."""
        m, n = problem.shape
        s = problem.norms * np.sqrt(n / m) if scales is None else scales
        A = problem.op.toarray() / s
        _, root, Wt = np.linalg.svd(A, full_matrices=False)
        keep = root**2 > _ZERO * root[0] ** 2
        d, W = root[keep] ** 2, np.ascontiguousarray(Wt[keep].T)
        b = problem.b / s
        inside = W.T @ b
        parts = Spectral(d, W, s, inside, b - W @ inside)
        gamma1 = float(np.sum(d)) / n
        r1 = b / gamma1
        zero = VampState(np.zeros(n), r1, gamma1, np.inf, 0.0, np.inf, 1.0, parts)
        return self._threshold(problem, zero, r1, gamma1)

    def step(self, problem: Problem, state: VampState, *, frozen: bool = False) -> VampState:
        """One iteration: a ridge estimate, and the threshold of its field.

        With `frozen` both precisions are γ₁ and stay so, and the field moves half of the way.
        """
        parts, n = state.parts, state.x.size
        theta, r1, gamma1 = state.x * parts.scales, state.r1, state.gamma1
        if frozen:
            gamma2, a, b = gamma1, 0.5, 0.5
        else:
            a = min(max(state.active, 1e-12), 1.0 - 1e-12)
            gamma2 = gamma1 * (1.0 - a) / a
            b = (np.sum(gamma2 / (parts.d + gamma2)) + n - parts.d.size) / n
            b = min(max(float(b), 1e-12), 1.0 - 1e-12)
        r2 = (theta - a * r1) / (1.0 - a)
        along = parts.W.T @ r2
        ridge = r2 + parts.W @ ((parts.inside - parts.d * along) / (parts.d + gamma2))
        ridge += parts.outside / gamma2
        new = (ridge - b * r2) / (1.0 - b)
        damping = max(self.damping, tuned.VAMP_DAMPING) if frozen else self.damping
        new_gamma = gamma1 if frozen else gamma2 * (1.0 - b) / b
        if damping:
            new = damping * r1 + (1.0 - damping) * new
            new_gamma = damping * gamma1 + (1.0 - damping) * new_gamma
        return self._threshold(problem, replace(state, gamma2=float(gamma2)), new, float(new_gamma))

    def _threshold(
        self, problem: Problem, state: VampState, r1: np.ndarray, gamma1: float
    ) -> VampState:
        s = state.parts.scales
        theta = soft(r1, problem.lam / (s * gamma1))
        x = np.where(problem.squares > 0, theta / s, 0.0)
        change, turnover = movement(problem, state.x, x)
        return VampState(
            x, r1, gamma1, state.gamma2, np.count_nonzero(x) / x.size, change, turnover, state.parts
        )


@register
@dataclass(frozen=True)
class VampTextbook(Vamp):
    """Vector AMP as it is published: precisions from every iterate, to the end, and no polish."""

    name: ClassVar[str] = "vamp-textbook"

    freeze: bool = False
    polish: bool = False
    max_iter: int = 500
