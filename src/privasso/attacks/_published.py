"""Fits whose law is not known in closed form: what they publish, for scores that are learned."""

from __future__ import annotations

from dataclasses import replace
from functools import partial

import numpy as np
from numpy.typing import NDArray

from privasso.attacks._pair import Pair, World
from privasso.fit import PerturbedPlan, ReleasedModel

FloatArray = NDArray[np.float64]


def emptied_pairs(plan: PerturbedPlan, y: FloatArray, records: dict[int, str]) -> list[Pair]:
    """A pair for each record: all data, and all data with this record emptied."""
    everyone, pairs = World(partial(_records, plan, y)), []
    for k, name in records.items():
        others = y.copy()
        others[k] = np.nan
        pairs.append(Pair(name, everyone, World(partial(_records, plan, others)), None))
    return pairs


def _records(
    plan: PerturbedPlan, y: FloatArray, count: int, rng: np.random.Generator | None
) -> FloatArray:
    plan = replace(plan, seeded=rng is not None)
    made = (plan.release(y, rng=rng, charged=True) for _ in range(count))
    return np.array([_numbers(one.solve()) for one in made])


def _numbers(model: ReleasedModel) -> FloatArray:
    """Coefficients, intercept, standard errors and which columns were chosen, as one vector."""
    parts = [model.coef, [model.intercept]]
    if model.coef_se is not None:
        parts.append(np.nan_to_num(model.coef_se))
    if model.screened is not None:
        chosen = np.zeros(model.coef.size)
        chosen[model.screened] = 1.0
        parts.append(chosen)
    return np.concatenate([np.asarray(part, dtype=np.float64) for part in parts])
