"""The command that does something again, and the one that solves from its release."""

from __future__ import annotations

import shlex
from dataclasses import fields
from typing import Any

from privasso._text import escaped
from privasso.cli._fit_settings import FitSettings
from privasso.cli._options import option_name


def command_of(name: str, settings: Any) -> str:
    """The command that does this again, with the options that were given, one per line."""
    lines = [_words("privasso", name, *_data(settings))]
    for field in fields(settings):
        option, value = option_name(field.name), getattr(settings, field.name)
        if field.name in ("data", "force") or value in (field.default, []):
            continue
        if value is True:
            lines.append(option)
        elif isinstance(value, tuple):
            lines.append(" ".join([option, *map(_number, value)]))
        elif isinstance(value, list):
            lines += [_words(option, str(part)) for part in value]
        else:
            lines.append(_words(option, _number(value) if isinstance(value, float) else str(value)))
    return " \\\n    ".join(lines)


def solve_again_command(settings: FitSettings) -> str | None:
    """The command that solves from the kept release at another λ, if there is one."""
    where = settings.from_release or settings.keep_release
    if where is None:
        return None
    data = () if settings.record_dp else _data(settings)
    words = ["privasso", "fit", *data, "--from-release", str(where)]
    classes = [] if settings.classes is None else ["--classes", settings.classes]
    words += classes or (["--binary"] if settings.binary else [])
    words += ["--row-names"] if data and settings.row_names else []
    return _words(*words, "--lam", "LAMBDA", "--out", "another-model.json")


def _data(settings: FitSettings) -> tuple[str, ...]:
    return () if settings.data is None else (str(settings.data),)


def _number(value: float) -> str:
    """The shortest decimals that stand for the same number.

    >>> _number(1e-05), _number(140.0), _number(0.1 + 0.2)
    ('1e-05', '140', '0.30000000000000004')
    """
    return repr(float(value)).removesuffix(".0")


def _words(*words: str) -> str:
    r"""Words of a command, quoted for a shell; control characters appear as escapes.

    Examples
    --------
    >>> print(_words("fit", "my data.csv", "a\nb's"))
    fit 'my data.csv' $'a\nb\'s'
    """
    return " ".join(
        shlex.quote(word) if word.isprintable() else f"$'{''.join(map(_char, word))}'"
        for word in words
    )


def _char(char: str) -> str:
    if "\udc80" <= char <= "\udcff":  # a byte of a path that is not Unicode
        return f"\\x{ord(char) - 0xDC00:02x}"
    return f"\\{char}" if char in "\\'" else escaped(char)
