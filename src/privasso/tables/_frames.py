"""Files that polars reads: CSV, Parquet, Arrow."""

from __future__ import annotations

import csv
from abc import abstractmethod
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from privasso.tables._table import Table, check_finite, missing_value

if TYPE_CHECKING:
    import polars as pl

#: Columns read at a time where the format allows it: what is held twice stays small.
_TOGETHER = 16
#: Rows of a CSV file from which the types of its columns are guessed; if the guess is wrong,
#: all of them are looked at.
_GUESSED_FROM = 10_000


class FrameTable(Table):
    """A file that polars reads, a few columns at a time."""

    together = _TOGETHER

    def _read(self, names: list[str]) -> np.ndarray:
        matrix: np.ndarray | None = None
        for start in range(0, len(names), self.together):
            frame = self._frame(names[start : start + self.together])
            if frame.height == 0:
                raise ValueError(f"{self.path} has no rows")
            if matrix is None:
                matrix = np.empty((frame.height, len(names)), order="F")
            for k, name in enumerate(names[start : start + self.together], start):
                # Taken out of the frame, so that its memory goes as the matrix fills.
                matrix[:, k] = numbers(frame.drop_in_place(name), name)
                check_finite(matrix[:, k], name)
        assert matrix is not None
        return matrix

    def _frame(self, names: list[str]) -> pl.DataFrame:
        import polars as pl

        try:
            return self._columns(names)
        except (pl.exceptions.PolarsError, OSError) as error:
            raise unreadable(self.path, error) from None

    @abstractmethod
    def _columns(self, names: list[str]) -> pl.DataFrame:
        """Read the columns with polars."""


class CsvTable(FrameTable):
    """Comma- or tab-separated text with a header; all columns in one reading of the text."""

    together = 1 << 30

    def __init__(self, path: Path, separator: str) -> None:
        self._separator = separator
        try:
            with path.open(encoding="utf-8-sig", newline="") as file:
                header = next(csv.reader(file, delimiter=separator), [])
        except (UnicodeDecodeError, csv.Error) as error:
            raise unreadable(path, error) from None
        super().__init__(path, header)

    def _columns(self, names: list[str]) -> pl.DataFrame:
        import polars as pl

        def read(rows: int | None) -> pl.DataFrame:
            return pl.read_csv(
                self.path, columns=names, separator=self._separator, infer_schema_length=rows
            )

        try:
            return read(_GUESSED_FROM)
        except pl.exceptions.ComputeError:
            return read(None)


class ParquetTable(FrameTable):
    """A Parquet file."""

    def __init__(self, path: Path) -> None:
        import polars as pl

        super().__init__(path, _schema(path, pl.read_parquet_schema))

    def _columns(self, names: list[str]) -> pl.DataFrame:
        import polars as pl

        return pl.read_parquet(self.path, columns=names, hive_partitioning=False)


class ArrowTable(FrameTable):
    """An Arrow IPC file, also called Feather version 2."""

    def __init__(self, path: Path) -> None:
        import polars as pl

        super().__init__(path, _schema(path, pl.read_ipc_schema))

    def _columns(self, names: list[str]) -> pl.DataFrame:
        import polars as pl

        return pl.read_ipc(self.path, columns=names)


def numbers(series: pl.Series, name: str) -> np.ndarray:
    """The values of a column as float64; refuses what is missing or is no number.

    >>> import polars as pl
    >>> numbers(pl.Series([True, False]), "smoker")
    array([1., 0.])
    """
    import polars as pl

    dtype = series.dtype
    if not (dtype.is_numeric() or dtype == pl.Boolean):
        if series.null_count() == len(series):
            raise missing_value(name, 0)
        where = ""
        if dtype == pl.String:
            bad = series.is_not_null() & series.cast(pl.Float64, strict=False).is_null()
            where = f", first in row {_first(bad) + 1}" if bad.any() else ""
        raise ValueError(
            f"column {name!r} holds {_kind(series)}{where}; turn it into numbers, or leave it out "
            "with --exclude"
        )
    if series.null_count():
        raise missing_value(name, _first(series.is_null()))
    return series.cast(pl.Float64).to_numpy()


def unreadable(path: Path, error: Exception) -> ValueError:
    """The error for a file that is not what its ending says."""
    reason = next((line for line in str(error).splitlines() if line.strip()), "no reason given")
    return ValueError(f"{path} cannot be read as {path.suffix.lstrip('.')}: {reason:.200}")


def _schema(path: Path, read: Callable[[Path], Iterable[str]]) -> list[str]:
    import polars as pl

    try:
        return list(read(path))
    except (pl.exceptions.PolarsError, OSError) as error:
        raise unreadable(path, error) from None


def _kind(series: pl.Series) -> str:
    import polars as pl

    if series.dtype in (pl.String, pl.Categorical, pl.Enum):
        return "text"
    return "dates or times" if series.dtype.is_temporal() else f"values of type {series.dtype}"


def _first(mask: pl.Series) -> int:
    return int(mask.arg_max() or 0)
