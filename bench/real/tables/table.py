"""A real table: numbers, names, and the bounds that are known without looking at the data."""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np

Kind = Literal["regression", "binary"]
Bounds = tuple[float, float]


@dataclass(frozen=True, eq=False)
class Table:
    """Covariates, outcome and public bounds.

    Attributes
    ----------
    X : ndarray of shape (M, N)
        Covariates as they are recorded; categories are 0/1 columns, one less than categories.
    columns : tuple of str
        Their names.
    y : ndarray of shape (M,)
        The outcome; 0 and 1 in a binary table.
    y_bounds : (float, float)
        Bounds of the outcome that follow from its meaning, as round numbers.
    column_bounds : ndarray of shape (N, 2)
        Bounds of the columns, the round numbers that a data dictionary would state. Methods that
        protect records clip the columns to them; values outside exist in some tables.
    outcome, source : str
        What is predicted, and where the table comes from.
    indicators : ndarray of bool, of shape (N,), or None
        Columns of zeros and ones.
    """

    X: np.ndarray
    columns: tuple[str, ...]
    y: np.ndarray
    y_bounds: Bounds
    column_bounds: np.ndarray
    outcome: str
    source: str
    indicators: np.ndarray | None = None

    @property
    def digest(self) -> str:
        """A hash of all numbers, by which kept results are recognised as outdated."""
        found = hashlib.sha256()
        for part in (self.X, self.y, self.column_bounds, np.array(self.y_bounds)):
            found.update(np.ascontiguousarray(part, dtype=np.float64).tobytes())
        return found.hexdigest()[:16]


def build(
    frame: Any,
    *,
    outcome: str,
    y_bounds: Bounds,
    bounds: Mapping[str, Bounds],
    drop: Iterable[str] = (),
    meaning: str,
    source: str,
) -> Table:
    """Return the table of a frame (of pandas) of numbers without missing values.

    Every column that is not named in `bounds` must hold nothing but 0 and 1.
    """
    left_out = {outcome, *drop}
    names = tuple(str(name) for name in frame.columns if name not in left_out)
    unknown = sorted(set(bounds) - set(names))
    if unknown:
        raise ValueError(f"there are bounds for columns that the table lacks: {unknown}")
    X = np.column_stack([np.asarray(frame[name], dtype=np.float64) for name in names])
    y = np.asarray(frame[outcome], dtype=np.float64)
    if not (np.isfinite(X).all() and np.isfinite(y).all()):
        raise ValueError("the table has missing values; drop the rows or the columns first")
    for k, name in enumerate(names):
        if name not in bounds and not np.isin(X[:, k], (0.0, 1.0)).all():
            raise ValueError(f"column {name!r} is not of zeros and ones and needs bounds")
    column_bounds = np.array([bounds.get(name, (0.0, 1.0)) for name in names], dtype=np.float64)
    if not (column_bounds[:, 0] < column_bounds[:, 1]).all():
        raise ValueError("lower bounds must be below upper bounds")
    ones = np.array([name not in bounds for name in names])
    return Table(X, names, y, y_bounds, column_bounds, meaning, source, ones)
