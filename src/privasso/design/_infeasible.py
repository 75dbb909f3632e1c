"""The nearest target that can be met, for the error where one cannot."""

from __future__ import annotations

import math
from dataclasses import replace
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from privasso.design._evaluate import FAR
from privasso.design._program import ERROR, NonlinearProgram, largest_log_lambda
from privasso.design._search import search

if TYPE_CHECKING:
    from privasso.design._request import DesignRequest

FloatArray = NDArray[np.float64]

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
        x[1] = max(
            value.log for value in program.excesses(x)
        )  # at σ = 1, so that this is the level needed
        low, high = x[0], largest_log_lambda(program, x) + 3.0
        if high > _LARGEST:
            continue
        for _ in range(_HALVINGS):
            x[0] = 0.5 * (low + high)
            if all(one.at(x, leak=False).error.log < FAR for one in program.evaluators):
                high = x[0]
            else:
                low = x[0]
        least = min(least, math.exp(high))
    return least
