"""Files that polars reads, in a process of its own: Parquet and Arrow."""

from __future__ import annotations

from pathlib import Path

import numpy as np

from privasso._apart import Reader, reading
from privasso._text import escaped
from privasso.encoding import (
    Columns,
    Levels,
    Numbers,
    Trouble,
    file_columns,
    file_rows,
    file_schema,
)
from privasso.tables._table import Asked, Table, check_size, not_numbers


class FrameTable(Table):
    """A file that polars reads: Parquet, or an Arrow IPC file (Feather version 2), by `form`."""

    def __init__(self, path: Path, form: str) -> None:
        self._form = form
        with reading(path) as reader:
            answer = reader.ask(file_schema, path, form=form)
        self._types: dict[str, str] = answer["types"]
        super().__init__(path, answer["names"])

    @property
    def types(self) -> dict[str, str]:
        """Types of the columns as the file states them."""
        return dict(self._types)

    @property
    def n_rows(self) -> int:
        """Number of rows; the first column is read, and only counted."""
        with reading(self.path) as reader:
            answer = reader.ask(file_rows, self.path, form=self._form)
        if answer["rows"] == 0:
            raise ValueError(f"{escaped(self.path)} has no rows")
        return answer["rows"]

    def _read(self, asked: Asked) -> tuple[Columns, np.ndarray]:
        names, target = asked.names, asked.target
        request = {
            "form": self._form,
            "columns": names if target is None else [*names, target],
            "categorical": sorted(asked.categorical),
            "labels": target is not None,
            "levels": asked.levels,
            "classes": asked.classes,
        }
        with reading(self.path) as reader:
            m = reader.ask(file_columns, self.path, **request)["rows"]
            check_size(self.path, m, len(names) + (target is not None))
            columns = _take(reader, names, m)
            labels = np.empty(m if target is not None else 0)
            if target is not None:
                if "wrong" in reader.next():  # by the type that the file states
                    raise not_numbers(self.path, target)
                reader.numbers(labels)
        return columns, labels


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
