"""What can be wrong with columns, and the one error that names all of them."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Literal, TypeAlias

Kind: TypeAlias = Literal[
    "missing", "blank", "empty", "infinite", "text", "mixed", "digits", "dates", "values",
    "identifier", "many", "unknown",
]  # fmt: skip
#: How an option is written, from its name and value; the value "…" stands for the columns.
Words: TypeAlias = Callable[[str, str], str]
#: Columns that are named of each kind of trouble; the others are counted.
_SHOWN = 6


@dataclass(frozen=True)
class Trouble:
    """Why a column cannot be used; it tells rows and counts, and never the content of a cell.

    `row`: first row that shows it, counted from 0, where there is one. `count`: rows or levels,
    where that matters.
    """

    column: str
    kind: Kind
    row: int | None = None
    count: int | None = None


def option_words(name: str, value: str) -> str:
    """How an option is given on the command line."""
    return f"--{name}" if value == "…" else f"--{name} {value}"


def parameter_words(name: str, value: str) -> str:
    """How an option is given in Python."""
    if name == "exclude":
        return "drop()"
    return f"{name}=[…]" if value == "…" else f"{name}={value!r}"


def refusal(
    troubles: Sequence[Trouble],
    words: Words = option_words,
    *,
    fixed: bool = False,
    settles: str | None = None,
) -> ValueError:
    """One error for all columns that cannot be used: what is wrong, and what settles it.

    With `fixed` a model says which columns there are, so that none can be left out. `settles`
    is what settles all of them where there are no options at all.
    """
    sentences = []
    for kind, (one, many, advice) in _SENTENCES.items():
        found = [trouble for trouble in troubles if trouble.kind == kind]
        if not found:
            continue
        if len(found) == 1:
            said = f"column {found[0].column!r} {one}{_where(found[0])}"
        else:
            said = f"columns {_names(found)} {many}"
        what = settles or (_FOR_A_MODEL.get(kind, advice) if fixed else advice)
        sentences.append(f"{said}; {_advice(what, words, len(found) > 1)}")
    text = ". ".join([sentences[0], *(s[0].upper() + s[1:] for s in sentences[1:])])
    return ValueError(text)


_LEAVE = "leave the column{s} out with {exclude}"
#: Of each kind: what one column does, what several do, and what settles it.
_SENTENCES: dict[Kind, tuple[str, str, str]] = {
    "missing": (
        "has a missing value",
        "have missing values",
        "fill {them} with {missing mean} or {missing indicator}, remove such rows, or " + _LEAVE,
    ),
    "blank": (
        "has a missing text",
        "have missing texts",
        "take missing as a level of its own with {missing indicator}, remove such rows, or "
        + _LEAVE,
    ),
    "empty": ("has no value in any row", "have no value in any row", _LEAVE),
    "infinite": ("is infinite", "have infinite values", "remove such rows, or " + _LEAVE),
    "text": (
        "holds text",
        "hold text",
        "turn it into numbers, or " + _LEAVE,
    ),
    "mixed": (
        "holds text",
        "hold text",
        "most of the values are numbers: make all of them numbers and leave a missing one empty, "
        "take every value as a level with {categorical …}, or " + _LEAVE,
    ),
    "digits": (
        "holds numbers that are stored as text",
        "hold numbers that are stored as text",
        "store them as numbers, take them as levels with {categorical …}, or " + _LEAVE,
    ),
    "dates": (
        "holds dates or times",
        "hold dates or times",
        "turn them into numbers such as days since a fixed day, take them as levels with "
        "{categorical …}, or " + _LEAVE,
    ),
    "values": (
        "holds values that are no numbers",
        "hold values that are no numbers",
        "turn them into numbers or text, or " + _LEAVE,
    ),
    "identifier": (
        "looks like an identifier of the rows",
        "look like identifiers of the rows",
        "leave {it} out with {exclude}, or use {it} all the same with {keep …}",
    ),
    "many": (
        "has more levels than a table may have",
        "have more levels than a table may have",
        "group the levels, or " + _LEAVE,
    ),
    "unknown": (
        "has levels that the model does not know",
        "have levels that the model does not know",
        "remove such rows, or let {unknown ignore} predict as for the most frequent level",
    ),
}
_NUMBERS = "the model has numbers there"
#: What settles it where the model has the column.
_FOR_A_MODEL: dict[Kind, str] = {
    "missing": "remove such rows, or fit the model again with {missing mean} or "
    "{missing indicator}, which fill {them}",
    "blank": "remove such rows, or fit the model again with {missing indicator} on rows of which "
    "some lack it",
    "empty": "the model needs numbers or levels there",
    "infinite": "remove such rows",
    **dict.fromkeys(("text", "mixed", "digits", "dates", "values"), _NUMBERS),
    "many": "the model has fewer",
}
_OPTIONS = ("missing mean", "missing indicator", "categorical …", "keep …", "unknown ignore")


def _where(trouble: Trouble) -> str:
    if trouble.kind == "unknown" and trouble.row is not None:
        rows = "" if trouble.count == 1 else f" {trouble.count} rows, first in"
        return f" in{rows} row {trouble.row + 1}"
    if trouble.row is not None:
        first = ", first in row" if trouble.kind in ("mixed", "text") else " in row"
        return f"{first} {trouble.row + 1}"
    return "" if trouble.count is None else f" ({trouble.count})"


def _names(troubles: Sequence[Trouble]) -> str:
    shown = [
        repr(one.column) + ("" if one.row is None else f" (row {one.row + 1})")
        for one in troubles[:_SHOWN]
    ]
    if len(troubles) > _SHOWN:
        return f"{', '.join(shown)} and {len(troubles) - _SHOWN} more"
    return f"{', '.join(shown[:-1])} and {shown[-1]}"


def _advice(advice: str, words: Words, several: bool) -> str:
    """Fill in how options are written, and the number of the columns."""
    pieces = {"s": "s" if several else "", "them": "them" if several else "it"}
    pieces["it"], pieces["exclude"] = pieces["them"], words("exclude", "…")
    for option in _OPTIONS:
        pieces[option] = words(*option.split())
    return advice.format_map(pieces)
