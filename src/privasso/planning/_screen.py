"""The option ``screen``: how many columns are chosen before a fit, and what that is called."""

from __future__ import annotations

from typing import Literal

from privasso._validation import integer

#: Columns to choose; "all" chooses none, and "auto" as many as are expected to predict best.
Screen = int | Literal["auto", "all"]


def check_screen(screen: object) -> None:
    """Refuse what is neither None, "auto", "all" nor a number of columns.

    Examples
    --------
    >>> check_screen("auto")
    >>> check_screen(0)
    Traceback (most recent call last):
    ...
    ValueError: screen must be at least 1, not 0
    """
    if screen is None or (isinstance(screen, str) and screen in ("auto", "all")):
        return
    if isinstance(screen, str):
        raise ValueError(
            f"screen must be 'auto', 'all', a number of columns or None, not {screen!r}"
        )
    integer("screen", screen, minimum=1)
