"""Checks of the arguments that several experiments take."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import TypeVar

from privasso._validation import integer, nonnegative_float, positive_float
from privasso.noise import noise_from_name
from privasso.scales import law_from_name

Given = TypeVar("Given")
Checked = TypeVar("Checked")


def law_name(text: str) -> str:
    """Return the name of a law of scales; refuse a name that no law has."""
    law_from_name("law", text)
    return text.lower()


def design_name(text: str) -> str:
    """Return the name of a noise design; refuse a name that no design has."""
    noise_from_name("design", text, 1.0)
    return text.lower()


def columns(value: object) -> int:
    """Return a number of columns N ≥ 2."""
    return integer("n_features", value, minimum=2)


def noise_level(value: object) -> float:
    """Return a noise level σ_η ≥ 0."""
    return nonnegative_float("sigma", value)


def regularisation(value: object) -> float:
    """Return a λ > 0."""
    return positive_float("lam", value)


def distinct(
    name: str, values: Iterable[Given], check: Callable[[Given], Checked]
) -> tuple[Checked, ...]:
    """Return the checked values as a tuple; refuse an empty list and repeated values.

    >>> distinct("laws", ["Uniform", "constant"], law_name)
    ('uniform', 'constant')
    """
    found = tuple(check(value) for value in values)
    if not found:
        raise ValueError(f"{name} is empty; give at least one value")
    if len(set(found)) < len(found):
        raise ValueError(f"{name} holds the same value twice")
    return found
