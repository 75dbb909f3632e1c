"""Public bounds of columns: pairs in the order of the columns, or by name."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from numbers import Real
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import ArrayLike

from privasso._validation import TOO_CLOSE, ZERO_ONE, real_array, separated

#: Names and pairs, pairs, one pair, or what stands for them.
Bounds: TypeAlias = tuple[Any, ...] | str
#: Found in the data with noise, at a share of the budget.
PRIVATE = "private"


def checked_bounds(bounds: Any) -> Bounds:
    """Bounds as one pair or several, or as names and pairs: values that can be hashed.

    In place of any pair there may be "0/1".

    >>> checked_bounds({"age": (18, 98), "male": "0/1"})
    (('age', (18.0, 98.0)), ('male', '0/1'))
    """
    if bounds is None:
        raise ValueError(
            "RecordDP needs bounds=, the smallest and largest value of each column, from public "
            "knowledge such as a data dictionary: the noise must hide any record that is possible, "
            "and bounds taken from the data would reveal its extreme records; bounds='private' "
            "finds ranges with noise, for a share of the budget"
        )
    if isinstance(bounds, str):
        if bounds not in (PRIVATE, ZERO_ONE):
            raise ValueError(
                f"bounds must be pairs (low, high), '0/1' or 'private', not {bounds!r}"
            )
        return bounds
    if isinstance(bounds, tuple) and bounds and _named(bounds[0]):
        bounds = dict(bounds)  # as stored, by `dataclasses.replace`
    if isinstance(bounds, Mapping):
        pairs = tuple((str(name), _entries([pair])[0]) for name, pair in bounds.items())
        if not pairs:
            raise ValueError("bounds is empty; give (low, high) for each column")
        return pairs
    if _is_pair(bounds):
        return _pairs([bounds])[0]  # of all columns
    return _entries(bounds)


def bounds_of_columns(
    bounds: Bounds, n_columns: int, names: Sequence[str] | None = None
) -> np.ndarray:
    """Bounds of the columns, of shape (N, 2), from what `checked_bounds` returns.

    Examples
    --------
    >>> bounds_of_columns(checked_bounds({"b": "0/1", "a": (2, 5)}), 2, ["a", "b"]).tolist()
    [[2.0, 5.0], [0.0, 1.0]]
    >>> bounds_of_columns(checked_bounds((0, 2)), 3).tolist()
    [[0.0, 2.0], [0.0, 2.0], [0.0, 2.0]]
    """
    if bounds == PRIVATE:
        raise ValueError("bounds='private' are found in the data; there are none beforehand")
    found = _of_columns(bounds, n_columns, names)
    pairs = [(0.0, 1.0) if one == ZERO_ONE else one for one in found]
    return np.array(pairs, dtype=np.float64).reshape(-1, 2)


def zeros_and_ones(
    bounds: Bounds, n_columns: int, names: Sequence[str] | None = None
) -> np.ndarray | None:
    """Which columns were said to be of zeros and ones; None if none was.

    Examples
    --------
    >>> zeros_and_ones(checked_bounds({"b": "0/1", "a": (0, 1)}), 2, ["a", "b"]).tolist()
    [False, True]
    """
    if bounds == PRIVATE:
        return None
    found = np.array([one == ZERO_ONE for one in _of_columns(bounds, n_columns, names)])
    return found if found.any() else None


def _of_columns(bounds: Any, n_columns: int, names: Sequence[str] | None) -> list[Any]:
    """A pair or "0/1" for each column."""
    if bounds == ZERO_ONE or isinstance(bounds[0], float):
        return [bounds] * n_columns
    if _named(bounds[0]):
        known = dict(bounds)
        if names is None:
            raise ValueError(
                "bounds are given by name, but the columns of X have no names; pass a data "
                "frame, or bounds as an array with one row (low, high) per column"
            )
        missing = [name for name in names if name not in known]
        if missing:
            raise ValueError(f"bounds are missing for {_listed(missing)}")
        return [known[name] for name in names]
    if len(bounds) != n_columns:
        raise ValueError(
            f"bounds must have one row (low, high) for each of the {n_columns} columns, not "
            f"{len(bounds)}"
        )
    return list(bounds)


def _is_pair(bounds: Any) -> bool:
    listed = isinstance(bounds, (list, tuple, np.ndarray)) and len(bounds) == 2
    return listed and all(isinstance(end, Real) for end in bounds)


def _entries(bounds: Any) -> tuple[tuple[float, float] | str, ...]:
    """Pairs, and "0/1" as it is."""
    if not isinstance(bounds, (list, tuple)):
        return _pairs(bounds)
    told = [isinstance(one, str) and one == ZERO_ONE for one in bounds]
    filled = [(0.0, 1.0) if yes else one for yes, one in zip(told, bounds, strict=True)]
    pairs = _pairs(filled)
    return tuple(ZERO_ONE if yes else pair for yes, pair in zip(told, pairs, strict=True))


def _pairs(bounds: ArrayLike) -> tuple[tuple[float, float], ...]:
    try:
        found = real_array("bounds", bounds, shape=(None, 2), finite=False)
    except ValueError as error:
        raise ValueError(f"{error}; bounds are pairs (low, high), one per column") from None
    low, high = found.T
    with np.errstate(over="ignore", invalid="ignore"):
        endless, close = ~np.isfinite(high - low), ~separated(low, high)
    for wrong, why in (
        (~np.isfinite(found).all(axis=1), "must be finite"),
        (low > high, "must not decrease"),
        (endless, "must have a finite distance"),
        (close & (low < high), f"must not be {TOO_CLOSE}"),
    ):
        if wrong.any():
            k = int(np.argmax(wrong))
            raise ValueError(f"bounds {why}; pair {k} is {tuple(found[k].tolist())}")
    return tuple((low, high) for low, high in found.tolist())


def _listed(names: Sequence[str]) -> str:
    shown = ", ".join(repr(name) for name in names[:5])
    return shown if len(names) <= 5 else f"{shown} and {len(names) - 5} more"


def _named(entry: object) -> bool:
    return isinstance(entry, tuple) and isinstance(entry[0], str)
