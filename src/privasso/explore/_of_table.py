"""The settings that a table of public columns stands for."""

from __future__ import annotations

import warnings

import numpy as np

from privasso._text import escaped
from privasso.encoding import Numbers
from privasso.explore._settings import MOST_COLUMNS, MOST_CORRELATED, Settings
from privasso.model import GivenCovariance
from privasso.tables import Table


def settings_of(table: Table, target: str | None = None) -> Settings:
    """Scales of the columns of numbers relative to their root mean square, and rows per column."""
    if target is not None:
        table.require([target])
    columns = table.columns(table.feature_names(target))
    numbers = [each.values for each in columns.columns if isinstance(each, Numbers)]
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", RuntimeWarning)  # of a column without any value
        spread = np.array([np.nanstd(values) for values in numbers])
    varies = np.isfinite(spread) & (spread > 0.0)
    spread = spread[varies]
    if not 1 <= spread.size <= MOST_COLUMNS:
        raise ValueError(
            f"{escaped(table.path)} has {spread.size} columns of numbers that vary; 1 to "
            f"{MOST_COLUMNS} can be explored"
        )
    unit = np.sqrt(np.mean(spread**2))
    relative = spread / unit
    covariance = None
    if 2 <= spread.size <= MOST_CORRELATED and table.n_rows > 1:
        X = np.column_stack([numbers[k] for k in np.flatnonzero(varies)])
        X = np.where(np.isnan(X), np.nanmean(X, axis=0), X)
        # `of` gives N times the covariance, for rows as they are.
        covariance = GivenCovariance.of(X / (unit * np.sqrt(spread.size)))
    return Settings(
        correlation="none" if covariance is None else "table",
        covariance=covariance,
        alpha=table.n_rows / spread.size,
        law="own",
        scales=tuple(float(f"{scale:.6g}") for scale in relative),
        gamma=1.0,
    )
