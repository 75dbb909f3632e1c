"""The search itself: sequential quadratic programming with exact gradients."""

from __future__ import annotations

import math
from dataclasses import replace
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray
from scipy.optimize import minimize

from privasso.design._program import (
    ERROR,
    FAR,
    LEAST_EXPONENT,
    SENSITIVITY,
    NonlinearProgram,
    bounds,
    largest_log_lambda,
    starts,
)

if TYPE_CHECKING:
    from privasso.design._request import DesignRequest


FloatArray = NDArray[np.float64]

#: Exponents to start from, the likeliest first; the next is tried only if the search fails.
_EXPONENTS = (1.0, 0.5, 1.5, 0.25, 2.0)
_EXPONENTS_LABELS = (0.6, 1.0, 0.3, 1.3, 0.0)
#: Largest excess, in the logarithm, that counts as meeting the constraint.
_MET = 1e-5
_ITERATIONS = 100
_RUNS = 14
#: Half widths of the box of one run: log λ, log σ², the exponent, the curved part.
_REACH = (1.0, 2.0, 1.5, 4.0)


def search(program: NonlinearProgram, x: FloatArray) -> FloatArray | None:
    """Return the best parameters from any of several starts, or None where none meets the limit.

    `x` holds the parameters that are not free.
    """
    if program.free[2]:
        exponents = _EXPONENTS_LABELS if program.constraint == SENSITIVITY else _EXPONENTS
    else:
        exponents = (float(x[2]),)
    for start in starts(program, x, exponents):
        found = improve(program, start)
        if found is not None:
            return found
    return None


def improve(program: NonlinearProgram, x: FloatArray) -> FloatArray | None:
    """Return the optimum near x, or None where the constraint cannot be met from there.

    Each run stays in a box around its start: towards large λ both the error and the leakage level
    off at what releasing nothing has, and a long step would end on that plateau.
    """
    if program.merit(x)[1] >= FAR:
        return None
    found, merit = x.copy(), program.merit(x)
    radius = 1.0
    for _ in range(_RUNS):
        new, ended_well, inside = _slsqp(program, found, radius)
        after = program.merit(new)
        if _better(after, merit):
            gain = merit[1] - after[1] if merit[0] <= _MET else 1.0
            found, merit = new, after
            if ended_well and inside:
                break
            if inside and gain < 1e-7:
                break
        elif ended_well and inside and merit[0] <= _MET:
            break
        else:
            radius *= 0.3
            if radius < 0.02:
                break
    return found if merit[0] <= _MET else None


def _better(merit: tuple[float, float], than: tuple[float, float]) -> bool:
    if max(merit[0], than[0]) <= _MET:
        return merit[1] < than[1]
    return merit[0] < than[0]


def _slsqp(
    program: NonlinearProgram, x: FloatArray, radius: float
) -> tuple[FloatArray, bool, bool]:
    """One run over the free parameters z.

    Returns the parameters, whether the run ended well, and whether it ended inside its box.
    """
    free = np.flatnonzero(program.free)

    def whole(z: FloatArray) -> FloatArray:
        point = x.copy()
        point[free] = z
        return point

    def objective(z: FloatArray) -> tuple[float, FloatArray]:
        value = program.value(whole(z))
        return value.log, value.gradient[free]

    constraints: list[dict[str, object]] = []
    if program.constraint is not None:
        margin = {
            "fun": lambda z: -program.excess(whole(z)).log,
            "jac": lambda z: -program.excess(whole(z)).gradient[free],
        }
        constraints.append({"type": "ineq", **margin})
    if program.evaluator.must_vanish and program.free.size > 3:
        row = np.append([0.0, 0.0], program.evaluator.low_exponent)[free]
        vanish = {"fun": lambda z: row @ z - LEAST_EXPONENT, "jac": lambda _: row}
        constraints.append({"type": "ineq", **vanish})
    outer = np.array(bounds(program, x))[free]
    reach = radius * np.array([_REACH[min(int(k), 3)] for k in free])
    lower = np.clip(x[free] - reach, outer[:, 0], outer[:, 1])
    upper = np.clip(x[free] + reach, outer[:, 0], outer[:, 1])
    limits = list(zip(lower.tolist(), upper.tolist(), strict=True))
    result = minimize(
        objective, np.clip(x[free], lower, upper), jac=True, method="SLSQP", bounds=limits,
        constraints=constraints, options={"maxiter": _ITERATIONS, "ftol": 1e-9},
    )  # fmt: skip
    found = whole(result.x)
    z = found[free]
    edge = 1e-3 * reach
    pressed = ((z < lower + edge) & (lower > outer[:, 0])) | (
        (z > upper - edge) & (upper < outer[:, 1])
    )
    return found, bool(result.success), not bool(pressed.any())


def elasticity(program: NonlinearProgram, x: FloatArray) -> float:
    """Return d log(objective) / d log(limit) at an optimum; 0 if the limit is slack.

    At an optimum the gradients obey ∇log f + b ∇log c = 0 with b ≥ 0, and the answer is −b.
    """
    value, excess = program.value(x), program.excess(x)
    if excess.log < -10.0 * _MET:
        return 0.0
    f, c = value.gradient[program.free], excess.gradient[program.free]
    size = float(c @ c)
    return min(float(f @ c) / size, 0.0) if size > 0.0 else -math.inf


#: Halvings of an interval of log λ, and the largest log λ that is considered.
_HALVINGS, _LARGEST = 24, 700.0


def least(request: DesignRequest, program: NonlinearProgram, what: str) -> tuple[float, str]:
    """The least of what the constraint limits, and where it is found."""
    bare = replace(program, objective=what, constraint=None)
    found = search(bare, request.blank(1))
    if found is None:
        return math.inf, "since no estimator exists"
    value = math.exp(bare.merit(found)[1])
    return value, (
        f"at lam = {math.exp(found[0]):.4g}, sigma = {math.exp(found[1] / 2.0):.4g}, "
        f"gamma = {found[2]:.3g}"
    )


def least_without_noise(request: DesignRequest, program: NonlinearProgram) -> tuple[float, str]:
    """The least error with almost no noise, which is mostly the least of all."""
    free = program.free & np.array([True, False, False])
    bare = replace(program, objective=ERROR, constraint=None, free=free)
    x = request.blank(1)
    x[1], x[2] = 2.0 * largest_log_lambda(bare, x) - 40.0, 1.0
    found = search(bare, x) if free.any() else x
    if found is None:
        return math.inf, "since no estimator exists"
    return math.exp(bare.merit(found)[1]), f"at lam = {math.exp(found[0]):.4g} without noise"


def least_lambda(request: DesignRequest, program: NonlinearProgram) -> float:
    """Return the smallest λ at which some power law meets a label budget and an estimator exists.

    The noise follows from the budget and the exponent alone, and below the critical λ there is
    no estimator: bisection in log λ for each of a few exponents.
    """
    least = math.inf
    given = request.setting.gamma
    gammas = np.linspace(0.0, 1.4, 15).tolist() if given is None else [given]
    for gamma in gammas:
        x = request.blank(1)
        x[2] = gamma
        x[1] = program.excess(x).log  # at σ = 1, so that this is the level needed
        low, high = x[0], largest_log_lambda(program, x) + 3.0
        if high > _LARGEST:
            continue
        for _ in range(_HALVINGS):
            x[0] = 0.5 * (low + high)
            if program.evaluator.at(x, leak=False).error.log < FAR:
                high = x[0]
            else:
                low = x[0]
        least = min(least, math.exp(high))
    return least
