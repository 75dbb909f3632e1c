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
    indicators: np.ndarray | None = None

    @property
    def declared(self) -> list[tuple[float, float] | str]:
        """Bounds as `RecordDP` takes them, with "0/1" for columns of zeros and ones."""
        pairs = [(float(low), float(high)) for low, high in self.column_bounds]
        ones = np.zeros(len(pairs), dtype=bool) if self.indicators is None else self.indicators
        return ["0/1" if one else pair for pair, one in zip(pairs, ones, strict=True)]
