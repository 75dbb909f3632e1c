"""Correlations of columns from short texts."""

from __future__ import annotations

from collections.abc import Callable

from privasso._text import word_and_numbers
from privasso.model._covariance import (
    AutoRegressive,
    Blocks,
    ColumnCovariance,
    Factors,
    RandomEigenvectors,
)
from privasso.model._spectrum import PowerSpectrum, TwoLevel

_KINDS: dict[str, tuple[int, Callable[..., ColumnCovariance]]] = {
    "ar": (1, lambda r: AutoRegressive(r)),
    "blocks": (2, lambda size, r: Blocks(_whole(size), r)),
    "factors": (2, lambda number, share: Factors(_whole(number), share)),
    "power": (1, lambda p: RandomEigenvectors(PowerSpectrum(p))),
    "levels": (2, lambda ratio, part: RandomEigenvectors(TwoLevel(ratio, part))),
}
#: Words that `covariance_from_name` knows.
COVARIANCE_NAMES = tuple(_KINDS)


def covariance_from_name(name: str, text: str) -> ColumnCovariance:
    """Return the correlation that a text such as ``ar:0.8`` or ``blocks:10,0.5`` stands for.

    `name`: what the caller calls the argument; it opens every error message. `text`: ar:R,
    blocks:SIZE,R, factors:NUMBER,SHARE, or random eigenvectors with eigenvalues k^(−P) (power:P) or
    of two sizes (levels:RATIO,FRACTION).
    """
    word, numbers = word_and_numbers(name, text, {word: n for word, (n, _) in _KINDS.items()})
    try:
        return _KINDS[word][1](*numbers)
    except ValueError as error:
        raise ValueError(f"{name} {text!r}: {error}") from None


def _whole(number: float) -> int:
    if not number.is_integer():
        raise ValueError(f"{number:g} must be a whole number")
    return int(number)
