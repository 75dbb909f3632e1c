"""Text from outside: how it is shown without disturbing a terminal, and what is no text."""

from __future__ import annotations

import json
from typing import Any

#: A cell of a table that begins with one of these is a formula to a spreadsheet.
_FORMULA = ("=", "+", "-", "@", "\t", "\r")


def escaped(text: object) -> str:
    r"""Return the text with everything that a terminal or a page would not print as escapes.

    Line breaks, control characters, invisible characters and those that change the direction of
    writing are shown as in a Python string; spaces stay.

    Examples
    --------
    >>> escaped("age\n\x1b[31m \u202eyears")
    'age\\n\\x1b[31m \\u202eyears'
    """
    return "".join(char if char.isprintable() else repr(char)[1:-1] for char in str(text))


def json_text(value: Any) -> str:
    r"""Return JSON in one line, in which what a terminal would not print is an escape.

    Examples
    --------
    >>> print(json_text({"größe": "\x1b[31m\u202e"}))
    {"größe": "\u001b[31m\u202e"}
    """
    text = json.dumps(value, ensure_ascii=False)
    return "".join(char if char.isprintable() else json.dumps(char)[1:-1] for char in text)


def for_sheets(name: str) -> str:
    """Return a name for a file that a spreadsheet may open: no formula, which it would execute.

    Examples
    --------
    >>> for_sheets("=1+1"), for_sheets("age")
    ("'=1+1", 'age')
    """
    return f"'{name}" if name.lstrip("'").startswith(_FORMULA) else name


def from_sheets(name: str) -> str:
    """Return the name that `for_sheets` was given.

    Examples
    --------
    >>> from_sheets("'=1+1"), from_sheets("'90s")
    ('=1+1', "'90s")
    """
    return name[1:] if name.startswith("'") and for_sheets(name) != name else name


def is_unicode(text: str) -> bool:
    r"""Whether the text can be written as UTF-8: a lone surrogate cannot.

    Examples
    --------
    >>> is_unicode("größe"), is_unicode("\ud800")
    (True, False)
    """
    try:
        text.encode("utf-8")
    except UnicodeEncodeError:
        return False
    return True
