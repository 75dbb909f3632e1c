"""Labels, each cell read for itself: as numbers, or as one of two classes with public names."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np

from privasso.encoding._columns import MISSING, Levels, Numbers
from privasso.encoding._frames import read_declared
from privasso.encoding._troubles import Trouble

if TYPE_CHECKING:
    import polars as pl


def read_labels(
    series: pl.Series, classes: Sequence[str] | None, *, decimal_comma: bool = False
) -> Numbers | Trouble:
    """Labels as numbers, or with the names of two classes as 0 and 1; NaN for all others."""
    found = read_declared(series, classes, decimal_comma=decimal_comma)
    if isinstance(found, Levels):
        return Numbers(found.name, np.where(found.codes < 0, np.nan, found.codes))
    return found


def class_names(names: Sequence[str]) -> list[str] | list[float]:
    """Names of classes without the spaces around them; numbers if all of them read as such.

    >>> class_names([" No", "Yes"]), class_names(["1", "2.0"]), class_names(["0", "yes"])
    (['No', 'Yes'], [1, 2], ['0', 'yes'])
    """
    import polars as pl

    names = [name.strip() for name in names]
    if not set(names).isdisjoint(MISSING):
        raise ValueError("a class has a name that stands for a missing value")
    found = read_declared(pl.Series(names, dtype=pl.String), None)
    if not (isinstance(found, Numbers) and np.isfinite(found.values).all()):
        return names
    return [int(x) if x.is_integer() else x for x in found.values.tolist()]
