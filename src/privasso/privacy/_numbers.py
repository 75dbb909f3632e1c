"""Numbers in sentences: bounds exactly, losses never smaller than they are."""

from __future__ import annotations

from decimal import ROUND_CEILING, ROUND_FLOOR, Context, Decimal


def exactly(x: float) -> str:
    """Return the shortest text that stands for exactly this number.

    >>> exactly(6.0), exactly(0.1), exactly(1234567.25)
    ('6', '0.1', '1234567.25')
    """
    short = f"{x:g}"
    return short if float(short) == x else repr(x)


def rounded_up(x: float, digits: int = 6) -> str:
    """Return a number in so many digits, at least as large as it is.

    >>> rounded_up(1.0), rounded_up(1e-6), rounded_up(1.2345678), rounded_up(2 / 3, 3)
    ('1', '1e-06', '1.23457', '0.667')
    """
    return _rounded(x, digits, ROUND_CEILING)


def rounded_down(x: float, digits: int = 6) -> str:
    """Return a number in so many digits, at most as large as it is.

    >>> rounded_down(1.0), rounded_down(2 / 3, 3)
    ('1', '0.666')
    """
    return _rounded(x, digits, ROUND_FLOOR)


def _rounded(x: float, digits: int, rounding: str) -> str:
    short = f"{x:.{digits}g}"
    if float(short) == x:
        return short
    # The digits of 0.1 + 0.2 stand for a number a little above 0.3, which rounds up.
    return f"{float(Context(prec=digits, rounding=rounding).create_decimal(Decimal(x))):.{digits}g}"
