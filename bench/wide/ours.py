"""`PrivateLasso` as a user gets it."""

from __future__ import annotations

import warnings
from typing import Literal

import numpy as np

import privasso as pv
from bench.wide.problem import Problem


def fitted(
    problem: Problem,
    columns: np.ndarray,
    epsilon: float,
    screen: Literal["auto"] | None,
    rng: np.random.Generator,
) -> float:
    """R² on the test rows of a fit of some columns."""
    if problem.kind == "records":
        bounds = problem.bounds[columns]
        privacy = pv.RecordDP(epsilon, problem.delta, bounds=bounds, y_bounds=problem.y_bounds)
    else:
        privacy = pv.LabelDP(epsilon, problem.delta, problem.y_bounds)
    est = pv.PrivateLasso(privacy=privacy, screen=screen, random_state=int(rng.integers(2**31)))
    with warnings.catch_warnings():
        # The same labels are fitted again and again.
        warnings.simplefilter("ignore", UserWarning)
        est.fit(problem.X[:, columns], problem.y)
    return problem.r2(est.predict(problem.X_test[:, columns]))


def screened(problem: Problem, rng: np.random.Generator) -> float:
    """`screen="auto"`, nothing chosen by the test rows."""
    return fitted(problem, np.arange(problem.X.shape[1]), problem.epsilon, "auto", rng)


def known_columns(problem: Problem, rng: np.random.Generator) -> float:
    """A fit of the true columns, which nobody knows."""
    assert problem.support is not None
    return fitted(problem, np.sort(problem.support), problem.epsilon, None, rng)
