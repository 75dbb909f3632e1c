"""Lines of bytes as records: each is split, and its decimal numbers are read, on its own.

No byte of a line has an effect on how another line is read, and no bytes are an error.
"""

from __future__ import annotations

import numpy as np
from numba import njit

#: What a cell is: a number, missing, or something that needs a closer look.
NUMBER, MISSING, OTHER = 0, 1, 2
#: Marks of a column: it has numbers with a point, with a comma, or something else than numbers.
POINT, COMMA, WORD = 1, 2, 4

_QUOTE, _NEWLINE, _RETURN, _POINT, _COMMA = (ord(c) for c in '"\n\r.,')
_PLUS, _MINUS, _ZERO, _NINE, _SMALL_E, _LARGE_E = (ord(c) for c in "+-09eE")
#: Whether a byte is a space: itself, or a control that moves on.
SPACES = np.isin(np.arange(256), [*range(ord("\t"), ord("\r") + 1), ord(" ")])
#: Digits that fit in 64 bits, and powers of ten by which such a number is a normal float64 or none.
_DIGITS, _LEAST, _MOST = 19, -342, 308
#: The least power of ten that divides a number of 64 bits.
_ROUNDED = -27
#: Digits of an exponent beyond which a cell needs a closer look.
_LONG = 6


def _powers() -> np.ndarray:
    """The first 128 bits of 5^q for each q, in two halves; rounded up where a tie is possible."""
    found = np.empty((_MOST - _LEAST + 1, 2), dtype=np.uint64)
    for q in range(_LEAST, _MOST + 1):
        if q < 0:
            five = 5**-q
            bits = five.bit_length() + 127 if q >= _ROUNDED else 2 * five.bit_length() + 128
            power = (1 << bits) // five + 1
        else:
            power = 5**q << 128
        power >>= power.bit_length() - 128
        found[q - _LEAST] = power >> 64, power & (2**64 - 1)
    return found


_FIVES = _powers()
#: From 2^-1074 on: the powers of two that make a normal number of one with 53 bits.
_TWOS = np.ldexp(1.0, np.arange(-1074, 972))
_HALF, _LOW = np.uint64(32), np.uint64(0xFFFFFFFF)
_ONE, _TEN, _NINE_BITS = np.uint64(1), np.uint64(10), np.uint64(0x1FF)
_TOP, _SHIFT = np.uint64(63), np.uint64(9)


@njit(cache=True, nogil=True)
def line_ends(data, start):
    """Where each line ends; a last one without a line feed counts if it is not empty."""
    count = 0
    for at in range(start, data.size):
        count += data[at] == _NEWLINE
    open_ = start < data.size and data[-1] != _NEWLINE
    ends = np.empty(count + open_, np.int64)
    k = 0
    for at in range(start, data.size):
        if data[at] == _NEWLINE:
            ends[k] = at
            k += 1
    if open_:
        ends[k] = data.size
    return ends


@njit(cache=True, nogil=True)
def split(data, start, end, separator, slots, begins, ends):
    """Find the fields of one line, and say whether it fits.

    A quote opens at the beginning of a field only, two of them are one inside of it, and it closes
    before a separator or the end. A field beyond those of `slots` must be empty. What is written
    for field k goes to the place ``slots[k]``, unless that is negative; missing fields are empty.
    """
    at = start
    for k in range(end - start + 1):  # each turn but the last takes a byte at least
        begin = at
        if at < end and data[at] == _QUOTE:
            begin = at = at + 1
            while at < end and (data[at] != _QUOTE or (at + 1 < end and data[at + 1] == _QUOTE)):
                at += 1 if data[at] != _QUOTE else 2
            if at >= end or (at + 1 < end and data[at + 1] != separator):
                return False
            stop = at
            at += 1
        else:
            while at < end and data[at] != separator:
                at += 1
            stop = at
        if k < slots.size:
            if slots[k] >= 0:
                begins[slots[k]], ends[slots[k]] = begin, stop
        elif stop > begin:
            return False
        if at >= end:
            break
        at += 1
    return True


@njit(cache=True, nogil=True)
def split_lines(data, start, line_ends, separator, slots, begins, ends, fits):
    """Split lines into cells; `begins` and `ends` have a line for each cell that is wanted.

    The cells of a line that does not fit are empty.
    """
    begins[:], ends[:] = 0, 0
    for k in range(line_ends.size):
        end = line_ends[k]
        last = end - 1 if end > start and data[end - 1] == _RETURN else end
        fits[k] = split(data, start, last, separator, slots, begins[:, k], ends[:, k])
        if not fits[k]:
            begins[:, k], ends[:, k] = 0, 0
        start = end + 1


@njit(cache=True, nogil=True)
def _product(a, b):
    """The upper and the lower half of the product of two numbers of 64 bits."""
    a1, a0, b1, b0 = a >> _HALF, a & _LOW, b >> _HALF, b & _LOW
    low = a0 * b0
    middle = a1 * b0 + (low >> _HALF)
    other = a0 * b1 + (middle & _LOW)
    return a1 * b1 + (middle >> _HALF) + (other >> _HALF), (other << _HALF) | (low & _LOW)


@njit(cache=True, nogil=True)
def _scaled(digits, q):
    """The float64 nearest to digits · 10^q, ties to even; NaN where it is not a normal number.

    This is the algorithm of Eisel and Lemire (Lemire, *Number parsing at a gigabyte per second*,
    2021), which Mushtak and Lemire (2023) proved to need no second look.
    """
    if digits == 0:
        return 0.0
    if q < _LEAST or q > _MOST:
        return np.nan
    zeros = np.int64(0)
    for step in (32, 16, 8, 4, 2, 1):
        if not digits >> np.uint64(64 - step):
            digits <<= np.uint64(step)
            zeros += step
    upper, lower = _product(digits, _FIVES[q - _LEAST, 0])
    if upper & _NINE_BITS == _NINE_BITS:
        more = _product(digits, _FIVES[q - _LEAST, 1])[0]
        lower += more
        upper += np.uint64(lower < more)
    first = upper >> _TOP
    found = upper >> (first + _SHIFT)
    power = ((217706 * q) >> 16) + 63 + np.int64(first) - zeros
    if power <= -1023 or power >= 1023:
        return np.nan
    exact = lower <= _ONE and -4 <= q <= 23 and found << (first + _SHIFT) == upper
    if exact and found & np.uint64(3) == _ONE:
        found -= _ONE  # halfway between two numbers: to the even one
    found = (found + (found & _ONE)) >> _ONE
    return np.float64(found) * _TWOS[power + 1022]


@njit(cache=True, nogil=True)
def _stripped(data, begin, end):
    """Where a cell begins and ends without spaces around it."""
    while begin < end and SPACES[data[begin]]:
        begin += 1
    while begin < end and SPACES[data[end - 1]]:
        end -= 1
    return begin, end


@njit(cache=True, nogil=True)
def decimal(data, begin, end, comma):
    """What a cell holds, the number, and how it is written; spaces around it do not count.

    A number is digits with at most one point, or with `comma` a comma, a sign before and an
    exponent after them. One of more than 19 digits, or beyond the range of normal numbers, is left
    for a closer look.
    """
    at, end = _stripped(data, begin, end)
    if at == end:
        return MISSING, np.nan, 0
    negative = data[at] == _MINUS
    if negative or data[at] == _PLUS:
        at += 1
    digits, count, seen, power, mark = np.uint64(0), 0, 0, 0, 0
    while at < end:
        byte = data[at]
        if _ZERO <= byte <= _NINE:
            if count or byte != _ZERO:
                count += 1
                if count > _DIGITS:
                    return OTHER, np.nan, 0
                digits = digits * _TEN + np.uint64(byte - _ZERO)
            seen += 1
            power -= mark > 0
        elif not mark and (byte == _POINT or (comma and byte == _COMMA)):
            mark = POINT if byte == _POINT else COMMA
        else:
            break
        at += 1
    if not seen:
        return OTHER, np.nan, 0
    if at < end:
        if data[at] != _SMALL_E and data[at] != _LARGE_E:
            return OTHER, np.nan, 0
        at += 1
        down = at < end and data[at] == _MINUS
        if down or (at < end and data[at] == _PLUS):
            at += 1
        if at == end or end - at > _LONG:
            return OTHER, np.nan, 0
        exponent = 0
        for k in range(at, end):
            if not _ZERO <= data[k] <= _NINE:
                return OTHER, np.nan, 0
            exponent = 10 * exponent + np.int64(data[k] - _ZERO)
        power += -exponent if down else exponent
    value = _scaled(digits, power)
    if value != value:
        return OTHER, np.nan, 0
    return NUMBER, -value if negative else value, mark


@njit(cache=True, nogil=True)
def _is_word(data, begin, end, words):
    """Whether a cell is one of the words, spaces around it aside."""
    begin, end = _stripped(data, begin, end)
    for k in range(words.shape[0]):
        if words[k, 0] == end - begin:
            j = 0
            while j < end - begin and data[begin + j] == words[k, 1 + j]:
                j += 1
            if j == end - begin:
                return True
    return False


@njit(cache=True, nogil=True)
def numbers(data, begins, ends, comma, words, values, other):
    """Read the cells of a column, and return the marks of what it holds.

    What is neither a number nor one of the words for a missing one is marked in `other`.
    """
    marks = 0
    for k in range(begins.size):
        kind, values[k], mark = decimal(data, begins[k], ends[k], comma)
        other[k] = kind == OTHER and not _is_word(data, begins[k], ends[k], words)
        marks |= WORD if other[k] else mark
    return marks
