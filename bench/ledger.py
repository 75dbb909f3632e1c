"""What several equal fits cost together: chosen as one goes, and declared beforehand.

``python -m bench.ledger --write`` renews `docs/data/ledger-cost.csv`.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import polars as pl

import privasso as pv
from bench.page import renew
from privasso.fit import FitOptions, plan_for
from privasso.privacy import Guarantee

EPSILON, DELTA, COUNTS = 1.0, 1e-6, (2, 5, 20)
#: Fits of which each asks one question.
FITS: dict[str, dict[str, Any]] = {
    "objective perturbation": {"level": False},
    "Gaussian noise": {"mechanism": "statistics"},
}


def planned(name: str) -> Guarantee:
    privacy = pv.RecordDP(EPSILON, DELTA, bounds=[(0, 1)] * 3, y_bounds=(0, 1), **FITS[name])
    return plan_for(np.zeros((2000, 3)), FitOptions(privacy)).guarantee


def cost() -> pl.DataFrame:
    rows = []
    for name in FITS:
        one = planned(name)
        for count in COUNTS:
            ledger = pv.Ledger(100.0, DELTA)
            for _ in range(count):
                ledger.charge(one)
            declared = dict(pv.privacy.compose([one] * count).parameters)["epsilon"]
            row = {"fits": count, "each": name, "chosen as one goes": ledger.spent()}
            rows.append({**row, "declared": declared})
    return pl.DataFrame(rows)


if __name__ == "__main__":
    renew("python -m bench.ledger", __doc__, {"cost": cost}, "ledger")
