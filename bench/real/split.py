"""What a contender is given."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from bench.real.tables.table import Bounds


@dataclass(frozen=True, eq=False)
class Split:
    """Training rows, test rows, and the guarantee to fit under.

    The labels of the test rows are there for oracles alone.
    """

    X: np.ndarray
    y: np.ndarray
    X_test: np.ndarray
    y_test: np.ndarray
    y_bounds: Bounds
    column_bounds: np.ndarray
    epsilon: float
    delta: float
    seed: int
