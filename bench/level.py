"""What the correction of the intercept brings and costs on real tables.

``python -m bench.level --write`` renews its table in `docs/data`. It needs the tables of
``pip install --group real``. Labels of two classes are fitted as numbers, zeros and ones, by a
linear model: they are the most skewed labels there are.
"""

from __future__ import annotations

import warnings
from dataclasses import replace

import numpy as np
import polars as pl

import privasso as pv
from bench.page import renew
from bench.real.cells import DELTA, Cell, split
from bench.real.split import Split
from bench.real.tables import Kind, available, load
from bench.real.task import r_squared
from privasso.programs import direct_level

SPLITS = 5
EPSILONS = (1.0, 3.0, 10.0)
#: Kinds of tables, and what their labels are.
_LABELS: tuple[tuple[Kind, str], ...] = (("binary", "zeros and ones"), ("regression", "numbers"))
#: Larger tables take long, and lose nothing to any noise.
_LARGEST = 400_000


def scores(privacy: pv.LabelDP | pv.RecordDP, data: Split) -> tuple[float, float]:
    """R² without and with the correction, with the same seed."""
    found = []
    for level in (False, None):
        one = replace(privacy, level=level)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", UserWarning)
            estimator = pv.PrivateLasso(privacy=one, random_state=data.seed).fit(data.X, data.y)
        found.append(r_squared(data.y_test, estimator.predict(data.X_test)))
    return found[0], found[1]


def differences(kind: str, labels: Kind) -> tuple[list[float], list[str]]:
    """Mean differences of R², one per table and ε, and the cells; only where it is done."""
    found, cells = [], []
    for name in available(labels):
        size = load(name).X.size
        if size > _LARGEST:
            continue
        for epsilon in EPSILONS:
            drawn = [split(Cell(kind, name, "privasso", "raw", epsilon), k) for k in range(SPLITS)]
            if direct_level(epsilon, DELTA, len(drawn[0].y), asked=None) is None:
                continue
            both = np.array([scores(_privacy(kind, one), one) for one in drawn])
            found.append(float(np.mean(both[:, 1] - both[:, 0])))
            cells.append(f"{name}, ε = {epsilon:g}")
            print(f"{kind}: {cells[-1]}: {found[-1]:+.4f}", flush=True)
    return found, cells


def _privacy(kind: str, data: Split) -> pv.LabelDP | pv.RecordDP:
    if kind == "labels":
        return pv.LabelDP(data.epsilon, DELTA, data.y_bounds)
    return pv.RecordDP(data.epsilon, DELTA, bounds=data.column_bounds, y_bounds=data.y_bounds)


def table() -> pl.DataFrame:
    """A row for each kind of privacy and of labels."""
    lines = []
    for kind in ("labels", "records"):
        for labels, words in _LABELS:
            found, cells = differences(kind, labels)
            numbers = min(found), float(np.median(found)), max(found)
            least, median, most = (f"{number:+.4f}" for number in numbers)
            worst = cells[int(np.argmin(found))]
            lines.append(
                {
                    "private": kind,
                    "labels": words,
                    "cells": len(found),
                    "least": least,
                    "median": median,
                    "largest": most,
                    "least in": worst,
                }
            )
    return pl.DataFrame(lines)


if __name__ == "__main__":
    renew("python -m bench.level", __doc__, {"intercept": table}, "level")
