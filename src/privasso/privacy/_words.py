"""What a guarantee claims, in words; numbers in them are never smaller than they are."""

from __future__ import annotations

from collections.abc import Mapping
from decimal import ROUND_CEILING, ROUND_FLOOR, Context, Decimal

from privasso.queries import Neighbours


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


#: What is protected, by the unit of the neighbours: its name, and several of it.
_UNITS = {"label": ("entry", "entries"), "record": ("record", "records")}


def differing(neighbours: Neighbours, group: int = 1) -> str:
    """What neighbouring data sets differ in.

    >>> from privasso.queries import EMPTIED
    >>> differing(EMPTIED), differing(EMPTIED, 3)
    ('one record', 'up to 3 records')
    """
    one, many = _UNITS[neighbours.unit]
    return f"one {one}" if group == 1 else f"up to {group} {many}"


def formal_claim(neighbours: Neighbours, group: int, numbers: Mapping[str, float]) -> str:
    """The claim of differential privacy."""
    records = neighbours.unit == "record"
    name = "Differential privacy of whole records" if records else "Label differential privacy"
    sets, what = "data sets" if records else "label vectors", differing(neighbours, group)
    pair = f"that differ in {what}"
    if neighbours.relation == "emptied":
        pair = f"of which one is the other with {what} replaced by an empty one"
    said = (
        f"{name} with ε = {rounded_up(numbers['epsilon'])} and δ = {rounded_up(numbers['delta'])}: "
        f"for any two {sets} {pair}, every outcome that has probability p under one has at least "
        "(p − δ)·e^(−ε) under the other."
    )
    said += " Covariates and labels are protected." if records else ""
    if "y_low" in numbers:
        bounds = f"[{exactly(numbers['y_low'])}, {exactly(numbers['y_high'])}]"
        said += f" Labels are clipped to {bounds}"
        found = "covariates to the bounds of their columns, which were given or found with noise"
        said += f", {found}." if records else "."
    return said if records else f"{said} The covariates are not protected."


def average_claim(numbers: Mapping[str, float]) -> str:
    """What holds on average over records, or that nothing does."""
    if not numbers:
        return "No privacy: the model was fitted without noise."
    text = (
        "No formal guarantee: the objective was perturbed by noise of root mean "
        f"variance {numbers['sigma']:g}. This bounds nothing for any one person and is not "
        "differential privacy."
    )
    if "onavekl_joint" in numbers:
        text += (
            " Under the given model and for many columns, replacing one record changes the "
            "law of the released coefficients by an on-average KL divergence of "
            f"{numbers['onavekl_joint']:.4g}"
        )
        if "onavekl_paper" in numbers:
            text += f" (component-wise: {numbers['onavekl_paper']:.4g})"
        text += "."
    return text
