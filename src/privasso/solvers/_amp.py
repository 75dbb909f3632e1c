"""Approximate message passing in its self-consistent form.

For F = F̃ diag(s) with independent entries, write V for s_θ. One iteration on (F, b, λ):

    g ← (V g − F x) / (1 + V)
    Σ_i = (1 + V) / ‖F_i‖²
    u = Fᵀg + b + x/Σ
    x ← Σ soft(u, λ)
    V ← (1 + V) · #{i : |u_i| > λ} / M

The paper corrects g with the vector (F∘F)s where this form has the scalar V, the value it
takes for large N. With the scalar, a fixed point has g = −Fx, hence c = b − FᵀFx satisfies the
optimality conditions exactly; with the vector it satisfies them only to O(N^−½) (see
`_amp_paper`). State evolution is the same for both. On (y, η) the iteration started from
g = y is this one started from g = 0, with g shifted by y.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from privasso.operators import Block
from privasso.problem import Problem


@dataclass
class AmpState:
    """The iterate.

    Attributes
    ----------
    x : ndarray
        The estimate: the thresholded field, with its exact zeros.
    g : ndarray
        The Onsager-corrected residual.
    s_theta : float
        V of state evolution.
    u : ndarray
        The field that was thresholded.
    mixed : ndarray
        What the next iteration starts from: x, or its mixture with the old value under damping.
    change, turnover : float
        Relative size of the undamped step, and the part of the support that it changed.
    block : optional
        Columns of F that the pass cut out.
    """

    x: np.ndarray
    g: np.ndarray
    s_theta: float
    u: np.ndarray
    mixed: np.ndarray
    change: float = np.inf
    turnover: float = 1.0
    block: Block | None = None

    @property
    def n_active(self) -> int:
        """Number of coefficients away from zero."""
        return int(np.count_nonzero(self.x))


def soft(u: np.ndarray, lam: float) -> np.ndarray:
    """Soft threshold, sgn(u)·max(|u| − λ, 0).

    >>> import numpy as np
    >>> soft(np.array([-2.0, 0.5, 3.0]), 1.0)
    array([-1.,  0.,  2.])
    """
    return u - np.clip(u, -lam, lam)


def movement(problem: Problem, old: np.ndarray, new: np.ndarray) -> tuple[float, float]:
    """Relative size of a step in units of Fx, and the part of the support that it changed."""
    size = float(np.linalg.norm(new * problem.norms))
    change = float(np.linalg.norm((new - old) * problem.norms)) / size if size > 0 else 0.0
    flipped = np.count_nonzero((new != 0) != (old != 0))
    return change, flipped / max(1, np.count_nonzero(new))


class Amp:
    """The step of AMP; the driver owns the loop.

    Parameters
    ----------
    damping : float
        Weight in [0, 1) on the *old* value of x and V. The reported change is that of the
        undamped step, so damping cannot fake convergence.
    """

    name = "amp"

    def __init__(self, damping: float = 0.0) -> None:
        self.damping = damping

    def init(self, problem: Problem) -> AmpState:
        """Zero start; the first field is b itself, so it costs no pass."""
        m, n = problem.shape
        zero = np.zeros(n)
        start = AmpState(zero, np.zeros(m), 0.0, problem.b, zero)
        return self._threshold(problem, start, problem.b)

    def step(self, problem: Problem, state: AmpState, take: np.ndarray | None = None) -> AmpState:
        """One iteration, one pass over F; columns `take` are cut out on the way."""
        inverse = 1.0 / (1.0 + state.s_theta)
        q, block = problem.op.update(
            state.mixed, state.g, state.s_theta * inverse, -inverse, take=take
        )
        u = q + problem.b + state.mixed * problem.squares * inverse
        new = self._threshold(problem, state, u)
        new.block = block
        return new

    def _threshold(self, problem: Problem, state: AmpState, u: np.ndarray) -> AmpState:
        m = problem.shape[0]
        squares = np.where(problem.squares > 0, problem.squares, np.inf)
        x = soft(u, problem.lam) * ((1.0 + state.s_theta) / squares)
        s_theta = (1.0 + state.s_theta) * np.count_nonzero(x) / m
        change, turnover = movement(problem, state.mixed, x)
        mixed = x
        if self.damping:
            mixed = self.damping * state.mixed + (1.0 - self.damping) * x
            s_theta = self.damping * state.s_theta + (1.0 - self.damping) * s_theta
        return AmpState(x, state.g, s_theta, u, mixed, change, turnover)
