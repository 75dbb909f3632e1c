"""The option ``screen``: how many columns are chosen before a fit, and what that is called."""

from __future__ import annotations

from typing import Literal

from privasso._validation import integer
from privasso.planning._screening_settings import ScreeningSettings, usual_screening
from privasso.queries import EMPTIED, Neighbours

Screen = int | Literal["auto"]


def check_screen(screen: object) -> None:
    """Refuse what is neither None, "auto" nor a number of columns.

    Examples
    --------
    >>> check_screen("auto")
    >>> check_screen(0)
    Traceback (most recent call last):
    ...
    ValueError: screen must be at least 1, not 0
    """
    if screen is None or (isinstance(screen, str) and screen == "auto"):
        return
    if isinstance(screen, str):
        raise ValueError(f"screen must be 'auto', a number of columns or None, not {screen!r}")
    integer("screen", screen, minimum=1)


def screening_settings(
    epsilon: float,
    delta: float,
    n_rows: int,
    n_columns: int,
    screen: Screen,
    *,
    fit_intercept: bool = True,
    neighbours: Neighbours = EMPTIED,
) -> ScreeningSettings | None:
    """Return how many columns to choose and at which price; None where all are fitted."""
    check_screen(screen)
    if screen == "auto":
        return usual_screening(
            epsilon, delta, n_rows, n_columns, centred=fit_intercept, neighbours=neighbours
        )
    if screen >= n_columns:
        raise ValueError(
            f"{screen} columns cannot be chosen from {n_columns}; choose fewer, or fit all of them"
        )
    return usual_screening(
        epsilon,
        delta,
        n_rows,
        n_columns,
        count=int(screen),
        centred=fit_intercept,
        neighbours=neighbours,
    )
