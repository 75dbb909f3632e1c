"""Files that polars reads, in a process of its own: Parquet and Arrow."""

from __future__ import annotations

from pathlib import Path

import numpy as np

from privasso._apart import Reader, ReadFailedError
from privasso._text import escaped
from privasso.encoding import Columns, Levels, Numbers, Trouble
from privasso.tables._table import Asked, Table, check_size, not_numbers, unreadable


class FrameTable(Table):
    """A file that polars reads: Parquet, or an Arrow IPC file (Feather version 2), by `form`."""

    def __init__(self, path: Path, form: str) -> None:
        self._form = form
        self._reader: Reader | None = None
        self._types: dict[str, str] = {}
        super().__init__(path, self._names(path))

    def _names(self, path: Path) -> list[str]:
        try:
            answer = self._living().ask(format=self._form, path=str(path))
        except ReadFailedError:
            raise unreadable(path) from None
        self._types = answer["types"]
        return answer["names"]

    @property
    def types(self) -> dict[str, str]:
        """Types of the columns as the file states them."""
        return dict(self._types)

    @property
    def n_rows(self) -> int:
        """Number of rows; the first column is read, and only counted."""
        try:
            answer = self._living().ask(format=self._form, path=str(self.path), count=True)
        except ReadFailedError:
            raise unreadable(self.path) from None
        if answer["rows"] == 0:
            raise ValueError(f"{escaped(self.path)} has no rows")
        return answer["rows"]

    def _read(self, asked: Asked) -> tuple[Columns, np.ndarray]:
        names, target, reader = asked.names, asked.target, self._living()
        wanted = names if target is None else [*names, target]
        try:
            answer = reader.ask(
                format=self._form,
                path=str(self.path),
                columns=wanted,
                categorical=sorted(asked.categorical),
                labels=target is not None,
                levels=asked.levels,
            )
            m = answer["rows"]
            check_size(self.path, m, len(wanted))
            columns = _take(reader, names, m)
            labels = np.empty(m if target is not None else 0)
            if target is not None:
                if "wrong" in reader.next():  # by the type that the file states
                    raise not_numbers(self.path, target)
                reader.numbers(labels)
            return columns, labels
        except ReadFailedError:
            raise unreadable(self.path) from None
        except BaseException:
            reader.forget()
            raise

    def _living(self) -> Reader:
        """The process that reads the file; a new one if there is none that can answer."""
        if self._reader is None or not self._reader.alive:
            self._reader = Reader("privasso.tables._child")
        return self._reader


def _take(reader: Reader, names: list[str], m: int) -> Columns:
    """Take columns from the answer of the process.

    Numbers fill one matrix from the left. What is not filled of it is never touched, so that it
    takes no memory.
    """
    block, width = np.empty((m, len(names)), order="F"), 0
    columns: list[Numbers | Levels] = []
    troubles = []
    for name in names:
        answer = reader.next()
        if "wrong" in answer:
            troubles.append(Trouble(name, answer["wrong"], answer["row"], answer["count"]))
        elif "levels" in answer:
            codes = np.empty(m, dtype=np.int32)
            reader.numbers(codes)
            columns.append(Levels(name, codes, tuple(answer["levels"])))
        else:
            values = block[:, width]
            reader.numbers(values)
            columns.append(Numbers(name, values))
            width += 1
    whole = block if width == len(names) else block[:, :width]
    return Columns(tuple(columns), m, tuple(troubles), whole)
