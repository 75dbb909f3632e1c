"""Many draws of the noise of every method, and how well each predicts new rows."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import TYPE_CHECKING, Any

import numpy as np

from privasso._blas import one_thread
from privasso._validation import generator
from privasso.examples._candidates import (
    DESIGNS,
    LABEL_NOISE,
    NO_PRIVACY,
    STANDARDISED,
    Candidate,
    Fitted,
    candidate,
    prepared,
)
from privasso.examples._data import Split
from privasso.mechanism import LabelDP
from privasso.operators import Covariates
from privasso.solvers import Status, solve_problems

if TYPE_CHECKING:
    import polars as pl

METHODS = (*DESIGNS, LABEL_NOISE, NO_PRIVACY, *STANDARDISED)
#: λ runs down from the first coefficient by this factor, in so many steps.
_SPAN, _POINTS = 1e-3, 18
#: All that labels within their bounds can explain, in units of their assumed variance.
_EXPLAINABLE = 9.0


def study(
    splits: Iterable[Split],
    epsilons: Iterable[float],
    *,
    delta: float,
    draws: int = 1,
    methods: Iterable[str] = METHODS,
    rng: int | np.random.Generator | None = None,
    progress: Callable[[int], object] = lambda done: None,
) -> pl.DataFrame:
    """Fit each method at each ε and test it on new rows; one row of the table a fit and rule.

    λ is chosen in two ways on the same grid. ``"auto"`` is the rule of ``lam="auto"``: it sees
    the noisy statistics and nothing else. ``"oracle"`` takes the λ that does best on the test
    rows, which nobody can do in earnest; it shows what a method could give with perfect tuning.

    Parameters
    ----------
    splits : iterable of Split
        Each is fitted `draws` times by every method.
    epsilons : iterable of float
        Values of ε; ``"no privacy"`` does not depend on them.
    delta : float
        δ.
    draws : int
        Draws of the noise for each split.
    methods : iterable of str
        Some of `METHODS`.
    rng : None, int or numpy.random.Generator
        Source of all noise.
    progress : callable
        Called with the number of fits that were just done.

    Examples
    --------
    >>> from privasso.examples import simulated_splits
    >>> table = study(simulated_splits(2000, 20, rng=0), [1.0], delta=1e-6, rng=0)
    >>> table.columns
    ['method', 'epsilon', 'draw', 'rule', 'r2', 'nonzero']
    """
    import polars as pl

    rng = generator(rng)
    wanted, budgets = list(methods), list(epsilons)
    rows: list[dict[str, Any]] = []
    count = 0
    for split in splits:
        for standardise in (False, True):
            chosen = [name for name in wanted if (name in STANDARDISED) == standardise]
            if not chosen:
                continue
            data = prepared(split, standardise=standardise, root=_root)
            candidates = [
                candidate(data, name, LabelDP(epsilon, delta, split.y_bounds), count + k, rng)
                for epsilon in budgets
                for k in range(draws)
                for name in chosen
                if not (_free(name) and (epsilon, k) != (budgets[0], 0))  # once is enough
            ]
            with one_thread():
                rows += _tested(data, candidates)
            progress(len(candidates))
        count += draws
    return pl.DataFrame(rows)


def summary(table: pl.DataFrame) -> pl.DataFrame:
    """Median and quartiles of R² over the draws.

    Examples
    --------
    >>> import polars as pl
    >>> draws = {"method": "Gram", "epsilon": 1.0, "rule": "auto", "nonzero": 3}
    >>> one = pl.DataFrame([{**draws, "r2": r2} for r2 in (0.1, 0.2, 0.6)])
    >>> summary(one)["r2"].item()
    0.2
    """
    import polars as pl

    return table.group_by("method", "epsilon", "rule", maintain_order=True).agg(
        pl.col("r2").median(),
        pl.col("r2").quantile(0.25).alias("lower"),
        pl.col("r2").quantile(0.75).alias("upper"),
        pl.col("nonzero").median(),
    )


def _root(rows: Covariates) -> np.ndarray:
    """R with RᵀR = FᵀF from the eigenvalues, which does for collinear columns too."""
    norms = np.sqrt(rows.squares)
    values, vectors = np.linalg.eigh(rows.gram / norms / norms[:, None])
    return (np.sqrt(np.maximum(values, 0.0))[:, None] * vectors.T) * norms


def _free(name: str) -> bool:
    return STANDARDISED.get(name, name) == NO_PRIVACY


def _tested(data: Fitted, candidates: list[Candidate]) -> list[dict[str, Any]]:
    """Follow every candidate down the grid until its noise hides whatever labels could say."""
    explainable = _EXPLAINABLE * data.label_variance * data.rows.shape[0]
    largest = [float(np.abs(one.b).max()) for one in candidates]
    found: list[list[tuple[float, float, int]]] = [[] for _ in candidates]  # risk, R², non-zeros
    going = list(range(len(candidates)))
    for part in np.geomspace(1.0, _SPAN, _POINTS):
        if not going:
            break
        lams = np.array([largest[k] * part for k in going])
        B = np.stack([candidates[k].b for k in going], axis=1)
        many = solve_problems(data.root, B, lams, throw=False)
        going = [
            k
            for k, x, status in zip(going, many.x.T, many.status, strict=True)
            if status is Status.CONVERGED and _follow(data, candidates[k], x, found[k], explainable)
        ]
    return [
        {"method": one.method, "epsilon": one.epsilon, "draw": one.draw, "rule": rule,
         "r2": best[1], "nonzero": best[2]}
        for one, points in zip(candidates, found, strict=True)
        for rule, best in (("auto", min(points)), ("oracle", max(points, key=lambda p: p[1])))
    ]  # fmt: skip


def _follow(
    data: Fitted,
    one: Candidate,
    x: np.ndarray,
    found: list[tuple[float, float, int]],
    explainable: float,
) -> bool:
    """Add what a solution is worth; False once there is no point in a smaller λ."""
    try:
        risk, error = one.risk(data, x)
    except np.linalg.LinAlgError:
        return False
    predicted = one.mean_label + (data.X_test - data.rows.mean) @ x
    found.append((risk, _r2(data.split.y_test, predicted), int(np.count_nonzero(x))))
    return error <= explainable


def _r2(y: np.ndarray, predicted: np.ndarray) -> float:
    return 1.0 - float(np.sum((y - predicted) ** 2) / np.sum((y - y.mean()) ** 2))
