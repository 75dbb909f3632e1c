"""Membership under average-case noise: the exact likelihood ratio of each record."""

from __future__ import annotations

from functools import partial

import numpy as np
from numpy.typing import NDArray

from privasso.attacks._pair import Pair
from privasso.fit import Plan
from privasso.solvers import solve_many
from privasso.theory import membership_losses

FloatArray = NDArray[np.float64]

#: Noise vectors that are solved for at once.
_BATCH = 256


def membership_pairs(
    plan: Plan, X: FloatArray, y: FloatArray, records: dict[int, str]
) -> list[Pair]:
    """A pair for each record: all data against all but this record, with the same noise.

    Noise that follows the scales of the data would differ a little between the two; the attacker
    is taken not to use that.
    """
    lam, rows, calibration = plan.options.fixed_lam, plan.covariates, plan.calibration
    assert lam is not None
    assert rows is not None
    assert calibration is not None
    variances, F = calibration.covariance.diagonal, np.ascontiguousarray(X[:, rows.live])
    everyone = partial(_draw, F, y, lam, variances)
    return [
        Pair(
            name,
            everyone,
            partial(_draw, np.delete(F, k, 0), np.delete(y, k), lam, variances),
            partial(_score, np.delete(F, k, 0), np.delete(y, k), lam, variances, F[k], y[k]),
        )
        for k, name in records.items()
    ]


def _draw(
    F: FloatArray,
    y: FloatArray,
    lam: float,
    variances: FloatArray,
    count: int,
    rng: np.random.Generator | None,
) -> FloatArray:
    rng = np.random.default_rng() if rng is None else rng
    found = []
    for start in range(0, count, _BATCH):
        size = min(_BATCH, count - start)
        etas = np.sqrt(variances)[:, None] * rng.standard_normal((variances.size, size))
        found.append(solve_many(F, y, lam, etas).x.T)
    return np.vstack(found)


def _score(
    F: FloatArray,
    y: FloatArray,
    lam: float,
    variances: FloatArray,
    row: FloatArray,
    label: float,
    releases: FloatArray,
) -> FloatArray:
    """Scores by the data without the record."""
    return membership_losses(
        F, y, lam, variances, releases.T, rows=row[None, :], labels=[label], member=False
    )[:, 0]
