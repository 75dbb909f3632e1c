"""Audits with 200 releases of a table of 200 rows: ``python -m bench audits``."""

from __future__ import annotations

import time
from dataclasses import replace
from typing import Any

import numpy as np
import polars as pl

import privasso as pv

TITLE = "An audit with 200 releases, 200 rows × 5 columns"
NOTE = "Seconds of processor time of `pv.audit`, the better of two runs."


def run() -> pl.DataFrame:
    rng = np.random.default_rng(0)
    X = rng.random((200, 5))
    y = np.clip(0.2 + 0.5 * X[:, 0] + 0.1 * rng.standard_normal(200), 0.0, 1.0)
    classes = (y > np.median(y)).astype(float)
    labels = pv.LabelDP(2.0, 0.02, y_bounds=(0, 1))
    records = pv.RecordDP(2.0, 0.02, bounds=(0, 1), y_bounds=(0, 1))
    cases: dict[str, tuple[Any, np.ndarray, dict[str, Any]]] = {
        "labels": (labels, y, {}),
        "labels, release": (replace(labels, mechanism="release"), y, {}),
        "records": (records, y, {}),
        "records, statistics": (replace(records, mechanism="statistics"), y, {}),
        "records, logistic": (records, classes, {"binary": True}),
        "records, quantile": (records, y, {"loss": pv.Quantile(0.8)}),
    }
    rows = []
    for name, (privacy, target, options) in cases.items():
        times = []
        for _ in range(2):
            start = time.process_time()
            pv.audit(privacy, X, target, releases=200, rng=1, **options)
            times.append(time.process_time() - start)
        rows.append({"audit": name, "s": min(times)})
    return pl.DataFrame(rows)
