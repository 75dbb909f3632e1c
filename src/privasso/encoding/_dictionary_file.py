"""Data dictionaries as files: a table with one line per column, or JSON."""

from __future__ import annotations

import csv
import io
import os
from collections.abc import Iterable, Mapping
from pathlib import Path

from privasso._documents import DocumentError, Fields, read_json
from privasso._files import read_bounded
from privasso._text import for_sheets, from_sheets
from privasso._validation import ZERO_ONE, real_float
from privasso.encoding._dictionary import Dictionary, LevelEntry, NumberEntry

#: Bytes beyond which a file is refused.
_MAX_BYTES = 64 * 1024 * 1024
HEAD = ("name", "low", "high", "fill", "levels")
#: What separates the levels of a column.
_BETWEEN = "|"


def read_dictionary(path: str | os.PathLike[str]) -> Dictionary:
    r"""Read a data dictionary; anything wrong with it raises `DocumentError` with one sentence.

    A text file has a header and one line per column: its ``name``, and either ``low`` and ``high``
    or ``levels`` with ``|`` between them, or ``0/1`` there for numbers that are zeros and ones;
    ``fill`` may be left out. A JSON file maps names to ``[low, high]``, to ``"0/1"``, to an object
    with ``low``, ``high`` and, if wanted, ``fill``, or to one with a list ``levels``.

    Examples
    --------
    >>> import tempfile
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     file = Path(folder, "bounds.csv")
    ...     _ = file.write_text("name,low,high,levels\nage,18,98,\nold,,,0/1\nward,,,heart|eye\n")
    ...     read_dictionary(file).bounds
    {'age': (18.0, 98.0), 'old': '0/1', 'ward=eye': '0/1', 'ward=heart': '0/1'}
    """
    path = Path(path)
    try:
        if path.suffix.lower() == ".json":
            return _of_json(read_json(path, most_bytes=_MAX_BYTES))
        return _of_lines(_lines(path))
    except DocumentError:
        raise
    except ValueError as error:
        raise DocumentError(str(error)) from None


def template(columns: Iterable[tuple[str, str | None]]) -> str:
    """A dictionary to fill in: the names of the columns, and their types where these are known.

    A name that a spreadsheet would take for a formula has an apostrophe before it, which
    `read_dictionary` removes.
    """
    with io.StringIO(newline="") as out:
        rows = csv.writer(out)
        rows.writerow([*HEAD, "type"])
        rows.writerows([for_sheets(name), "", "", "", "", kind or ""] for name, kind in columns)
        return out.getvalue()


def _lines(path: Path) -> list[dict[str, str]]:
    """Lines of the table as mappings from the header."""
    try:
        text = read_bounded(path, _MAX_BYTES).decode("utf-8-sig")
    except UnicodeDecodeError:
        raise DocumentError("the file is not text in UTF-8") from None
    first = text.partition("\n")[0]
    separator = max(",;\t", key=first.count)
    try:
        lines = [
            [cell.strip() for cell in line]
            for line in csv.reader(io.StringIO(text, newline=""), delimiter=separator)
            if any(cell.strip() for cell in line)
        ]
    except csv.Error:
        raise DocumentError("the file is not a table of text") from None
    head = [cell.lower() for cell in lines[0]] if lines else []
    known = {*HEAD, "type"}
    if "name" not in head or len(set(head)) != len(head) or not set(head) <= known:
        raise DocumentError(
            "the first line must be the header name,low,high, with fill and levels if wanted"
        )
    for number, line in enumerate(lines[1:], start=2):
        if len(line) != len(head):
            raise DocumentError(
                f"line {number} has {len(line)} fields, and the header has {len(head)}"
            )
    return [dict(zip(head, line, strict=True)) for line in lines[1:]]


def _of_lines(lines: list[dict[str, str]]) -> Dictionary:
    entries: list[NumberEntry | LevelEntry] = []
    for line in lines:
        name = from_sheets(line["name"])
        cells = {key: line.get(key, "") for key in HEAD[1:]}
        if cells["levels"] == ZERO_ONE:
            entries.append(_zeros_and_ones(name, cells))
            continue
        if cells["levels"]:
            given = {key: cells[key] for key in ("low", "high", "fill") if cells[key]}
            entries.append(_levels(name, cells["levels"].split(_BETWEEN), given))
            continue
        numbers = {key: _number(cells[key], key, name) for key in ("low", "high", "fill")}
        entries.append(_numbers(name, numbers))
    return _whole(entries)


def _of_json(document: object) -> Dictionary:
    if not isinstance(document, Mapping):
        raise DocumentError("the file must be an object that maps names of columns to their bounds")
    entries: list[NumberEntry | LevelEntry] = []
    for name, value in document.items():
        if isinstance(value, list):
            if len(value) != 2:
                raise DocumentError(f"the bounds of column {name!r} must be a list [low, high]")
            value = {"low": value[0], "high": value[1]}
        if value == ZERO_ONE:
            entries.append(_zeros_and_ones(name, {}))
            continue
        fields = Fields(value, f"the entry of column {name!r}")
        if "levels" in fields.names():
            levels = fields.texts("levels")
            entries.append(_levels(name, levels, fields.names()))
            continue
        numbers = {
            key: None
            if key not in fields.names() or fields.is_null(key)
            else real_float(f"{key} of column {name!r}", fields.take(key))
            for key in ("low", "high", "fill")
        }
        fields.end()
        entries.append(_numbers(name, numbers))
    return _whole(entries)


def _whole(entries: list[NumberEntry | LevelEntry]) -> Dictionary:
    if not entries:
        raise DocumentError("the file has no line for any column")
    return Dictionary(tuple(entries))


def _numbers(name: str, numbers: dict[str, float | None]) -> NumberEntry:
    if numbers["low"] is None and numbers["high"] is None:
        raise DocumentError(
            f"column {name!r} has no bounds; fill in low and high, or the levels of a text column"
        )
    return NumberEntry(name, numbers["low"], numbers["high"], numbers["fill"])


def _zeros_and_ones(name: str, cells: Mapping[str, str]) -> NumberEntry:
    if cells.get("low") or cells.get("high"):
        raise DocumentError(f"column {name!r} is of zeros and ones; leave its low and high empty")
    fill = _number(cells.get("fill", ""), "fill", name)
    return NumberEntry(name, 0.0, 1.0, fill, indicator=True)


def _levels(name: str, levels: list[str], besides: Iterable[str]) -> LevelEntry:
    if list(besides):
        raise DocumentError(
            f"column {name!r} has levels, which need no low, high or fill; leave these empty"
        )
    levels = [level.strip() for level in levels]
    if not all(levels):
        raise DocumentError(f"column {name!r} has an empty level; leave it out")
    return LevelEntry(name, tuple(levels))


def _number(text: str, key: str, name: str) -> float | None:
    if not text:
        return None
    try:
        return float(text)
    except ValueError:
        raise DocumentError(f"{key} of column {name!r} is not a number") from None
