"""The lines of a text file, split and read one by one by compiled code."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING

import numpy as np

from privasso._fields import COMMA, POINT, WORD, line_ends, numbers, split_lines
from privasso._text import escaped
from privasso.encoding import MISSING, Numbers, read_labels
from privasso.tables._table import Table

if TYPE_CHECKING:
    import polars as pl

#: Cells that are looked at together.
_CELLS = 1 << 17
_QUOTE = ord('"')


def _words() -> np.ndarray:
    """What stands for a missing value as bytes, each after its length."""
    found = np.zeros((len(MISSING), 1 + max(map(len, MISSING))), dtype=np.uint8)
    for line, word in zip(found, MISSING, strict=True):
        line[: 1 + len(word)] = [len(word), *word.encode()]
    return found


_MISSING = _words()


class TextLines:
    """The bytes of a text file, and where its lines end."""

    def __init__(self, table: Table, content: bytes, separator: str, row_names: bool) -> None:
        self.path, self.names, self.row_names = table.path, table.names, row_names
        self.separator, self.comma = ord(separator), separator == ";"
        self.content, self.data = content, np.frombuffer(content, dtype=np.uint8)
        self.start = content.find(b"\n") + 1 or len(content)
        self.ends = line_ends(self.data, self.start)
        self.n_rows = self.ends.size

    def cells(
        self, names: Sequence[str], *, strict: bool
    ) -> Iterator[tuple[slice, list[tuple[np.ndarray, np.ndarray]]]]:
        """Some rows at a time, and where the cells of these columns begin and end in them.

        With `strict` a line that does not fit is refused; its cells are empty otherwise.
        """
        place = {name: k for k, name in enumerate(self.names, start=int(self.row_names))}
        slots = np.full(len(self.names) + self.row_names, -1)
        for k, name in enumerate(names):
            slots[place[name]] = k
        step = min(self.n_rows, max(1, _CELLS // max(1, len(names))))
        start = self.start
        for first in range(0, self.n_rows, step):
            lines = self.ends[first : first + step]
            begins, ends = np.empty((2, len(names), lines.size), dtype=np.int64)
            fits = np.empty(lines.size, dtype=bool)
            split_lines(self.data, start, lines, self.separator, slots, begins, ends, fits)
            if strict and not fits.all():
                raise ValueError(
                    f"{escaped(self.path)}: line {first + int(np.argmin(fits)) + 2} does not fit "
                    "the header, because it has more fields or a quote that does not open and "
                    "close one; if each line begins with the name of its row, as R's write.table "
                    "writes it, add --row-names"
                )
            start = lines[-1] + 1
            yield slice(first, first + lines.size), list(zip(begins, ends, strict=True))

    def numbers(
        self,
        values: np.ndarray,
        begins: np.ndarray,
        ends: np.ndarray,
        *,
        closely: bool,
        classes: Sequence[str] | None = None,
    ) -> int:
        """Read cells as numbers, and return the marks of what they hold.

        What is not plainly a number is read as declared if one looks `closely`. With `classes` all
        cells are labels of these.
        """
        other = np.empty(begins.size, dtype=bool)
        marks = numbers(self.data, begins, ends, self.comma, _MISSING, values, other)
        if classes is not None:
            other[:] = True
        if classes is not None or (closely and marks & WORD):
            cells = self._series("", begins[other], ends[other])
            found = read_labels(cells, classes, decimal_comma=self.comma)
            assert isinstance(found, Numbers)
            values[other] = found.values
        return marks

    def is_text(self, marks: int) -> bool:
        """Whether a column holds something else than numbers that are all written in one way."""
        return bool(marks & WORD) or marks == POINT | COMMA

    def series(self, names: Sequence[str], strict: bool) -> Iterator[tuple[str, pl.Series]]:
        """Columns of text; with `strict` bytes that are not UTF-8 are refused."""
        import polars as pl

        parts: dict[str, list[pl.Series]] = {name: [] for name in names}
        for rows, cells in self.cells(names, strict=strict) if names else ():
            for name, (begins, ends) in zip(names, cells, strict=True):
                line = rows.start + 2 if strict else None
                parts[name].append(self._series(name, begins, ends, line))
        for name in names:
            yield name, pl.concat(parts.pop(name))

    def _series(
        self, name: str, begins: np.ndarray, ends: np.ndarray, line: int | None = None
    ) -> pl.Series:
        """Cells as text; if these are the lines from `line` on, bytes must be UTF-8."""
        import polars as pl

        whole, found = self.content, []
        errors = "replace" if line is None else "strict"
        try:
            for begin, end in zip(begins.tolist(), ends.tolist(), strict=True):
                cell = whole[begin:end]
                if b'"' in cell and whole[begin - 1] == _QUOTE:
                    cell = cell.replace(b'""', b'"')
                found.append(cell.decode("utf-8", errors))
        except UnicodeDecodeError:
            raise ValueError(
                f"{escaped(self.path)}: line {(line or 0) + len(found)} is not text in UTF-8; save "
                "the file in this encoding"
            ) from None
        return pl.Series(name, found, dtype=pl.String)
