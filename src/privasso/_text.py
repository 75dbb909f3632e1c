"""Text from outside: how it is shown without disturbing a terminal, and what is no text."""

from __future__ import annotations


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
