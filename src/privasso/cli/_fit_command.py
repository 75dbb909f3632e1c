"""The command that does a fit again, and the one that solves from its release."""

from __future__ import annotations

import shlex

from privasso._text import escaped
from privasso.cli._fit_check import DECIDED
from privasso.cli._fit_settings import FitSettings
from privasso.cli._options import option_name

_OTHERS = (
    "binary", "labels", "row_names", "engine", "scheduler", "memory", "from_release", "lam",
    "lam_path", "path_out", "out", "report", "time_limit",
)  # fmt: skip


def command_of(settings: FitSettings) -> str:
    """The command that does this again, one option per line."""
    lines = [_words("privasso", "fit", *_data(settings))]
    for name in DECIDED + _OTHERS:
        option, value = option_name(name), getattr(settings, name)
        if settings.given(name) is None:
            continue
        if value is True:
            lines.append(option)
        elif name == "y_bounds":
            lines.append(" ".join([option, *map(_number, value)]))
        elif isinstance(value, list | tuple):
            lines += [_words(option, part) for part in value]
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
    words += ["--binary"] if settings.binary else []
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
