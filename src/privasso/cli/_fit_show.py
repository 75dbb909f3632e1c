"""What `privasso fit` prints, and the command that does it again."""

from __future__ import annotations

import shlex
from dataclasses import fields
from typing import TYPE_CHECKING

import numpy as np

from privasso._text import aligned, escaped, json_text
from privasso.cli._fit import FitSettings
from privasso.cli._fit_write import FitResult
from privasso.cli._options import option_name
from privasso.encoding import Encoding, LevelCode
from privasso.privacy import Guarantee, meaning
from privasso.report import FitFacts, coefficient_cells, interval_words, noise_words

if TYPE_CHECKING:
    from _typeshed import DataclassInstance

#: Coefficients that are printed; the others are counted.
_MOST, _LONGEST_NAME = 12, 32
_WHAT = {
    "--out": "model",
    "--report": "report",
    "--path-out": "path",
    "--keep-release": "release (already covered by the guarantee)",
}


def show(result: FitResult, as_json: bool) -> None:
    """Print the summary of a fit."""
    facts = result.facts
    if as_json:
        files = {option.lstrip("-"): str(path) for option, path in result.files.items()}
        print(json_text({**facts.to_dict(), "ledger": result.ledger, "files": files}))
        return
    model = facts.model
    if model.guarantee.warning is not None:
        _loud(model.guarantee.warning)
    print(
        f"Fitted {facts.target!r} on {facts.n_rows} rows and {model.n_features} columns at "
        f"λ = {model.lam:.6g}; non-zero coefficients: {np.count_nonzero(model.coef)}."
    )
    print(end=result.labels)
    _print_coefficients(facts)
    if model.encoding is not None:
        print(end=encoding_words(model.encoding, facts.records))
    if facts.screened_names is not None:
        print(f"Columns that were chosen: {escaped(', '.join(facts.screened_names))}.")
    if facts.mechanism is not None:
        print(facts.mechanism.text())
    elif model.noise is not None or not model.guarantee.formal:
        print(f"Noise: {noise_words(model.noise)}.")
    if facts.columns is not None and model.classes is None:
        print(facts.columns.in_words())
    print(f"\n{statement_words(model.guarantee)}\n")
    width = max(len(_WHAT[option]) for option in result.files)
    for option, path in result.files.items():
        print(f"{_WHAT[option]:<{width}}  {escaped(path)}")
    if result.ledger is not None:
        print(f"\nLedger. {result.ledger}")


def _print_coefficients(facts: FitFacts) -> None:
    """Print the largest coefficients with their effects, or what to do if all are zero."""
    if not facts.support.size:
        print(_advice(facts))
    if not facts.shown.size:
        return
    cells, (names, shown) = coefficient_cells(facts), (facts.names, facts.shown)
    heads = ["" if head == "note" else head for head in cells]
    lines = [_row(names[k], *line) for k, *line in zip(shown, *cells.values(), strict=True)]
    rows = [["  ", *heads], *lines[:_MOST]]
    rows.append(_row("(intercept)", f"{facts.model.intercept:.5g}", *[""] * (len(cells) - 1)))
    print(f"\n{aligned(rows)}")
    if shown.size > _MOST:
        print(f"  … and {shown.size - _MOST} smaller ones, which the model file holds")
    if facts.model.intervals is not None:
        print("\n".join(["", *interval_words(facts)]))
    print()


def _row(name: str, *cells: str) -> list[str]:
    name = escaped(name)
    short = name if len(name) <= _LONGEST_NAME else f"{name[: _LONGEST_NAME - 1]}…"
    return [f"  {short}", *cells]


def _advice(facts: FitFacts) -> str:
    """What to try when every coefficient is zero."""
    said = (
        "Every coefficient is zero: the model predicts the intercept for everybody, because no "
        "column stands out from the noise at this λ. "
    )
    if facts.model.guarantee.formal:
        tries = (
            "A fit with fewer columns (--features), more rows or a larger ε can find more, at a "
            "new cost; --dry-run predicts what to expect before it is spent."
        )
    else:
        tries = "Try less noise (--sigma) or a smaller λ (--lam)."
    if facts.resolve is not None:
        tries += f" A smaller λ costs nothing: {facts.resolve}"
    return said + tries


def encoding_words(encoding: Encoding, by_dictionary: bool) -> str:
    """A line on what became of columns; of those of a dictionary, the ones with levels."""
    if by_dictionary:
        encoding = Encoding(tuple(x for x in encoding.codes if isinstance(x, LevelCode)))
    words = encoding.in_words() if encoding.codes else None
    return "" if words is None else f"Columns of the table: {escaped(words)}.\n"


def statement_words(guarantee: Guarantee) -> str:
    """What is guaranteed, and what that means."""
    return f"{guarantee}\n\n{meaning(guarantee)}" if guarantee.for_release else str(guarantee)


def _loud(text: str) -> None:
    from rich.console import Console

    Console(stderr=True, highlight=False, soft_wrap=True).print(text, style="bold red")


def command_of(name: str, *groups: DataclassInstance) -> str:
    """The command that does this again, with the options that were given, one per line."""
    lines = [_words("privasso", name, *(word for one in groups for word in _data(one)))]
    for group, field in ((one, field) for one in groups for field in fields(one)):
        option, value = option_name(field.name), getattr(group, field.name)
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


def _data(settings: DataclassInstance) -> tuple[str, ...]:
    data = getattr(settings, "data", None)
    return () if data is None else (str(data),)


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
