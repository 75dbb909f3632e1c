"""Text from outside: how it is shown without disturbing a terminal, and what is no text."""

from __future__ import annotations

import json
import math
from collections.abc import Iterable, Mapping, Sequence

#: A cell of a table that begins with one of these is a formula to a spreadsheet.
_FORMULA = ("=", "+", "-", "@", "\t", "\r")


def escaped(text: object) -> str:
    """Return the text with everything that a terminal or a page would not print as escapes.

    Line breaks, control characters, invisible characters and those that change the direction of
    writing are shown as in a Python string; spaces stay.
    """
    return "".join(char if char.isprintable() else repr(char)[1:-1] for char in str(text))


def aligned(rows: Iterable[Sequence[str]]) -> str:
    """Return lines of cells in columns, the first to the left and all others to the right.

    >>> print(aligned([["", "error"], ["isotropic", "0.5"]]))
               error
    isotropic    0.5
    """
    rows = list(rows)
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    lines = [
        "  ".join(f"{cell:{'>' if k else '<'}{widths[k]}}" for k, cell in enumerate(row))
        for row in rows
    ]
    return "\n".join(line.rstrip() for line in lines)


def word_and_numbers(name: str, text: str, known: Mapping[str, int]) -> tuple[str, list[float]]:
    """What a text such as ``blocks:10,0.5`` says: a known word, and as many numbers as it needs.

    `name`: what the caller calls the argument; it opens every error message.

    >>> word_and_numbers("--covariance", "Blocks:10,0.5", {"ar": 1, "blocks": 2})
    ('blocks', [10.0, 0.5])
    """
    word, _, rest = text.partition(":")
    word = word.lower()
    if word not in known:
        raise ValueError(f"{name} {text!r} is none of {', '.join(known)}")
    try:
        numbers = [float(part) for part in rest.split(",")] if rest else []
    except ValueError:
        numbers = []
    if len(numbers) != (count := known[word]):
        wanted = ("no number", "1 number")[count] if count < 2 else f"{count} numbers"
        raise ValueError(f"{name} {text!r} needs {wanted} after the colon")
    return word, numbers


def json_text(value: object) -> str:
    """Return JSON in one line, in which what a terminal would not print is an escape."""
    text = json.dumps(value, ensure_ascii=False)
    return "".join(char if char.isprintable() else json.dumps(char)[1:-1] for char in text)


def finite(value: float | None) -> float | None:
    """Return a number for JSON, which has none for NaN and infinity."""
    return float(value) if value is not None and math.isfinite(value) else None


def for_sheets(name: str) -> str:
    """Return a name for a file that a spreadsheet may open: no formula, which it would execute."""
    return f"'{name}" if name.lstrip("'").startswith(_FORMULA) else name


def from_sheets(name: str) -> str:
    """Return the name that `for_sheets` was given."""
    return name[1:] if name.startswith("'") and for_sheets(name) != name else name


def is_unicode(text: str) -> bool:
    """Whether the text can be written as UTF-8: a lone surrogate cannot."""
    try:
        text.encode("utf-8")
    except UnicodeEncodeError:
        return False
    return True
