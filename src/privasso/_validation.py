"""Checks on what a caller passes in: every rejection is one ``ValueError`` that says what to do."""

from __future__ import annotations

import math
import numbers
import operator
from collections.abc import Callable, Iterable, Sequence
from typing import Any, Protocol, SupportsIndex, TypeVar, cast, runtime_checkable

import numpy as np
from numpy.typing import ArrayLike, DTypeLike, NDArray

LABELS_REFUSED = (
    "the labels must be one column of finite numbers; they hold something else, and which is not "
    "shown because labels are private. Name another target, remove the rows without a label, or "
    "code two classes as 0 and 1"
)

X_FINITE = "X must be finite; fill or drop missing values before the fit"

T = TypeVar("T")

#: Between two bounds lie so many steps of double precision, so that rounding the middle of the
#: bounds, or a number between them, is less than a millionth of their distance; and they differ by
#: so much at least, so that one over their distance is a number.
_STEPS, _NARROWEST = 2.0**20, 1e-300
#: In place of the bounds of a column: it holds zeros and ones.
ZERO_ONE = "0/1"
TOO_CLOSE = (
    "too close together for double precision: they need 2^20 numbers between them and a distance "
    "of at least 1e-300; subtract a public number, or change the unit"
)

# The square of a number in this range is a normal double, with room to spare for ratios.
SMALLEST, LARGEST = 1e-150, 1e150

_WHY_NOT_NUMERIC = {
    "c": "is complex (Complex data not supported); pass its real part if that is all of it",
    "O": "has dtype object; convert it to numbers first, e.g. with numpy.asarray(..., dtype=float)",
    "U": "holds text; convert it to numbers first",
    "S": "holds text; convert it to numbers first",
    "T": "holds text; convert it to numbers first",
    "M": "holds dates; convert them to numbers first",
    "m": "holds time differences; convert them to numbers first",
    "V": "is a structured array; select one numeric field",
}


def real_array(
    name: str,
    value: ArrayLike,
    *,
    ndim: int | None = None,
    shape: Sequence[int | None] | None = None,
    dtype: DTypeLike | None = np.float64,
    finite: bool = True,
) -> np.ndarray:
    """Return ``value`` as a finite, non-empty real array, without a copy when it already is one.

    Booleans and integers are converted; complex numbers, text, dates, objects, masked entries, NaN
    and infinities are refused, in a message that starts with `name`. ``None`` in a `shape` leaves
    that length free. The `dtype` ``None`` keeps float32 and float64 and converts everything else to
    float64. A caller that reads all of a large array anyway can pass ``finite=False`` and check its
    result instead.
    """
    if np.ma.is_masked(value):
        raise ValueError(f"{name} has masked entries; fill or drop them first")
    array = numbers_only(name, attempt(lambda: np.asarray(value)))
    _check_shape(name, array, ndim, shape)

    if dtype is None:
        dtype = array.dtype if array.dtype in (np.float32, np.float64) else np.float64
    with np.errstate(over="ignore"):  # an overflow in the conversion is caught just below
        array = array.astype(dtype, copy=False)
    if finite and not all_finite(array):
        raise ValueError(f"{name} contains NaN or infinity; remove or impute those entries")
    return array


def attempt(read: Callable[[], T]) -> T | None:
    """What other code makes of data, or None: what it raises may quote a value."""
    try:
        return read()
    except MemoryError:
        raise
    except Exception:
        return None


def numbers_only(name: str, array: np.ndarray | None) -> np.ndarray:
    """Refuse an array that does not hold real numbers by its type, or that could not be read."""
    if array is None:
        raise ValueError(
            f"{name} cannot be read as an array of numbers; its rows must have the same length, "
            "and its entries must be of one type"
        )
    if array.dtype.kind not in "fiub":
        why = _WHY_NOT_NUMERIC.get(array.dtype.kind, f"has dtype {array.dtype}; pass real numbers")
        raise ValueError(f"{name} {why}")
    return array


def _check_shape(
    name: str, array: np.ndarray, ndim: int | None, shape: Sequence[int | None] | None
) -> None:
    if shape is not None:
        wanted = tuple(shape)
        fits = array.ndim == len(wanted) and all(
            w is None or w == n for w, n in zip(wanted, array.shape, strict=True)
        )
        if not fits:
            text = ", ".join("any" if w is None else str(w) for w in wanted)
            text = f"({text},)" if len(wanted) == 1 else f"({text})"
            raise ValueError(f"{name} must have shape {text}, not {array.shape}")
    if ndim is not None and array.ndim != ndim:
        raise ValueError(
            f"{name} must have {ndim} dimension{'s' if ndim != 1 else ''}, "
            f"not {array.ndim} (its shape is {array.shape})"
        )
    if array.size == 0:
        raise ValueError(f"{name} is empty (its shape is {array.shape})")


def all_finite(array: np.ndarray) -> bool:
    """Whether there is neither NaN nor infinity."""
    # A sum is finite only if every term is, and it needs no temporary of the size of the array.
    # The reverse fails when the sum overflows, so a bad sum is followed by the full check.
    with np.errstate(over="ignore", invalid="ignore"):
        if np.isfinite(np.sum(array)):
            return True
        return bool(np.isfinite(array).all())


def real_labels(
    y: object, n_rows: int | None = None, *, finite: bool = False
) -> NDArray[np.float64]:
    """Return labels as a vector of floats; an error tells neither a value nor a row.

    Text is refused even where it spells a number, and so is another length than `n_rows`. NaN,
    which is a missing label, and ±inf are refused where all have to be `finite`: a guarantee would
    not cover that refusal.
    """
    labels = attempt(lambda: _labels(y, finite))
    if labels is None:  # said here, so that the error that quotes a label is not even its context
        raise ValueError(LABELS_REFUSED)
    check_length(labels, n_rows)
    return labels


def check_length(labels: np.ndarray, n_rows: int | None) -> None:
    """Refuse labels that are not one for each row."""
    if n_rows is not None and labels.size != n_rows:
        raise ValueError(f"y must have one label for each of the {n_rows} rows, not {labels.size}")


@runtime_checkable
class _Nullable(Protocol):
    """A column of pandas, where a missing value is an object."""

    def isna(self) -> object: ...

    def to_numpy(self, dtype: type, na_value: float) -> np.ndarray: ...


def _labels(y: object, finite: bool) -> NDArray[np.float64]:
    kind = getattr(getattr(y, "dtype", None), "kind", "O")
    if kind in "fiub" and isinstance(y, np.ma.MaskedArray):
        y = np.ma.filled(y.astype(np.float64), np.nan)
    elif kind in "fiub" and isinstance(y, _Nullable):
        y = y.to_numpy(dtype=np.float64, na_value=np.nan)
    array = np.asarray(y)
    if array.dtype.kind == "O" and not any(isinstance(x, (str, bytes)) for x in array.flat):
        array = numbers_of(array)
    return real_array("y", array, ndim=1, finite=finite)


def numbers_of(objects: np.ndarray) -> NDArray[np.float64]:
    """An array of objects as numbers; what it raises may quote one, so `attempt` it.

    None is missing, and what is too large for a float is infinite.
    """
    return np.array([_number(one) for one in objects.flat], np.float64).reshape(objects.shape)


def _number(one: Any) -> float:
    if one is None or type(one).__name__ == "NAType":  # of pandas
        return math.nan
    if isinstance(one, (np.datetime64, np.timedelta64, np.complexfloating)):
        raise TypeError  # numpy would count units, and drop a part
    try:
        return float(one)
    except OverflowError:
        return math.inf if one > 0 else -math.inf


def real_float(name: str, value: object) -> float:
    """Return ``value`` as a finite float."""
    if isinstance(value, np.ndarray) and value.ndim == 0:
        value = value[()]
    if isinstance(value, (bool, np.bool_)) or not isinstance(value, numbers.Real):
        raise ValueError(f"{name} must be a real number, not {_shown(value)}")
    try:
        number = float(value)
    except OverflowError:
        number = math.inf
    if not math.isfinite(number):
        raise ValueError(f"{name} must be finite, not {_shown(value)}")
    return number + 0.0  # turns -0.0 into 0.0, which would otherwise show in a repr


def positive_float(name: str, value: object) -> float:
    """Return ``value`` as a finite float above zero."""
    number = real_float(name, value)
    if number <= 0.0:
        raise ValueError(f"{name} must be positive, not {number!r}")
    return number


def probability(name: str, value: object) -> float:
    """Return ``value`` as a float above zero and below one."""
    number = positive_float(name, value)
    if number >= 1.0:
        raise ValueError(f"{name} is a probability below 1, not {number!r}")
    return number


def separated(low: NDArray[np.float64], high: NDArray[np.float64]) -> NDArray[np.bool_]:
    """Whether double precision can tell numbers between two bounds apart, see `TOO_CLOSE`."""
    step = np.spacing(np.maximum(np.abs(low), np.abs(high)))
    return high - low >= np.maximum(_STEPS * step, _NARROWEST)


def label_bounds(bounds: Iterable[object]) -> tuple[float, float]:
    """Return (low, high), bounds that every label lies in."""
    try:
        low, high = bounds
    except (TypeError, ValueError):
        raise ValueError(
            "y_bounds must be a pair (low, high) that every label lies in, "
            "fixed before looking at the labels, or 'private', to find it with noise"
        ) from None
    pair = real_float("y_bounds[0]", low), real_float("y_bounds[1]", high)
    if not pair[0] < pair[1]:
        raise ValueError(f"y_bounds must increase, not {pair}")
    real_float("the width of y_bounds", pair[1] - pair[0])
    if not separated(*np.array([pair]).T)[0]:
        raise ValueError(f"y_bounds {pair} are {TOO_CLOSE}")
    return pair


def check_coded(bounds: tuple[float, float] | str) -> None:
    """Refuse bounds of labels that are not those of two classes, coded as 0 and 1."""
    if bounds != (0.0, 1.0):
        given = bounds if isinstance(bounds, str) else f"{bounds[0]:g} and {bounds[1]:g}"
        raise ValueError(
            f"labels of two classes are coded as 0 and 1, so their bounds are 0 and 1, not {given}"
        )


def nonnegative_float(name: str, value: object) -> float:
    """Return ``value`` as a finite float that is zero or more."""
    number = real_float(name, value)
    if number < 0.0:
        raise ValueError(f"{name} must be zero or positive, not {number!r}")
    return number


def squarable(name: str, number: float) -> float:
    """Refuse a number whose square underflows or overflows (zero passes).

    A noise level of 1e-200 would become zero when squared, that is no noise, so it is refused.
    """
    if number != 0.0 and not SMALLEST <= abs(number) <= LARGEST:
        raise ValueError(
            f"{name} = {number!r} is outside {SMALLEST:g}...{LARGEST:g}, "
            "where its square keeps full precision; change the units"
        )
    return number


def integer(name: str, value: object, *, minimum: int | None = None) -> int:
    """Return ``value`` as an int of at least ``minimum``; 2.0 and True are refused."""
    try:
        if isinstance(value, (bool, np.bool_)):
            raise TypeError
        number = operator.index(cast(SupportsIndex, value))
    except TypeError:
        raise ValueError(f"{name} must be an integer, not {_shown(value)}") from None
    if minimum is not None and number < minimum:
        raise ValueError(f"{name} must be at least {minimum}, not {number}")
    return number


def array_shape(name: str, size: SupportsIndex | Sequence[SupportsIndex]) -> tuple[int, ...]:
    """Return ``size``, an int or a sequence of ints, as a shape."""
    lengths = size if isinstance(size, (tuple, list)) else (size,)
    return tuple(integer(name, length, minimum=0) for length in lengths)


def generator(rng: object = None) -> np.random.Generator:
    """Return a generator from None (entropy of the operating system), a seed, or a generator."""
    try:
        return np.random.default_rng(cast(Any, rng))
    except (TypeError, ValueError) as error:
        raise ValueError(
            f"rng must be None, a non-negative integer or a numpy.random.Generator, "
            f"not {_shown(rng)}"
        ) from error


def _shown(value: object) -> str:
    # A long value is named by its type only, since it may be private data.
    text = repr(value)
    return (
        text
        if len(text) <= 40 and "\n" not in text
        else f"an object of type {type(value).__name__}"
    )
