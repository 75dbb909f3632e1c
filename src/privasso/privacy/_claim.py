"""What a guarantee claims, in words."""

from __future__ import annotations

from collections.abc import Mapping

from privasso.privacy._numbers import exactly, rounded_up
from privasso.queries import Neighbours

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
