"""Correlations of columns from short texts."""

from __future__ import annotations

from collections.abc import Callable

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
    word, _, rest = text.partition(":")
    if word.lower() not in _KINDS:
        raise ValueError(f"{name} {text!r} is none of {', '.join(COVARIANCE_NAMES)}")
    count, make = _KINDS[word.lower()]
    try:
        numbers = [float(part) for part in rest.split(",")]
    except ValueError:
        numbers = []
    if len(numbers) != count:
        plural = "number" if count == 1 else "numbers separated by commas"
        raise ValueError(f"{name} {text!r} needs {count} {plural} after the colon")
    try:
        return make(*numbers)
    except ValueError as error:
        raise ValueError(f"{name} {text!r}: {error}") from None


def _whole(number: float) -> int:
    if not number.is_integer():
        raise ValueError(f"{number:g} must be a whole number")
    return int(number)
