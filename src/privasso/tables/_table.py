"""What every data file can do: name its columns, and give some of them as one matrix."""

from __future__ import annotations

import re
from abc import ABC, abstractmethod
from collections import Counter
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from difflib import get_close_matches
from pathlib import Path
from typing import TypeAlias

import numpy as np

from privasso._files import fits_memory
from privasso._text import escaped, is_unicode
from privasso._validation import LABELS_REFUSED
from privasso.encoding import Columns, Dictionary, Encoding, NumberCode

#: Most columns a table may have; a larger number is a damaged or hostile file.
_MAX_COLUMNS = 10_000_000
#: Columns that are missing and named; of others only the number is said.
_NAMED = 8
#: Files whose first line names the columns, and what is no name in it.
_TEXT = (".csv", ".tsv")
_NUMBER = re.compile(r"[+-]?(\d+([.,]\d*)?|[.,]\d+)([eE][+-]?\d+)?")

#: Names of two classes, the negative one first.
Names: TypeAlias = tuple[str, str]


@dataclass(frozen=True)
class Asked:
    """What is read of a table: columns, and labels if there is a target.

    With `levels` cells are read as declared: as these levels in the columns that are named there,
    and as numbers elsewhere. With `classes` labels are these two names, as 0 and 1.
    """

    names: list[str]
    target: str | None = None
    categorical: Collection[str] = ()
    levels: Mapping[str, Sequence[str]] | None = None
    classes: Names | None = None


class Table(ABC):
    """A data file whose columns have names.

    Nothing but the names is read until a column is asked for, and then only those asked for.

    `names`: names of all columns, each once.
    """

    def __init__(self, path: Path, names: Sequence[str]) -> None:
        self.path = path
        self.names = tuple(names)
        if not self.names:
            raise ValueError(f"{escaped(path)} has no columns")
        for name in self.names:
            if not is_unicode(name):
                raise ValueError(
                    f"{escaped(path)} has the column {name!r}, whose name holds half a character "
                    "(a lone surrogate); rename it"
                )
        twice = [name for name, count in Counter(self.names).items() if count > 1]
        if twice:
            self.check_header()
            raise ValueError(
                f"{escaped(path)} has the column {twice[0]!r} twice; rename or drop one of them"
            )

    def matrix(self, names: Sequence[str]) -> np.ndarray:
        """Columns of finite numbers as a float64 array in Fortran order, shape (M, len(names)).

        Integers and booleans count as numbers. Text, missing and infinite values are refused
        with the name of the column and the number of the first such row, counted from 1.
        """
        numbers = Encoding(tuple(NumberCode(name) for name in names))
        return numbers.matrix(
            self.columns(names), settles="remove such rows or columns from the file"
        )

    def columns(self, names: Sequence[str], *, categorical: Collection[str] = ()) -> Columns:
        """Columns as numbers or levels; those of `categorical` as levels whatever they hold."""
        self.require([*names, *categorical])
        return self._read(Asked(list(names), categorical=categorical))[0]

    def columns_and_labels(
        self,
        names: Sequence[str],
        target: str,
        *,
        categorical: Collection[str] = (),
        classes: Names | None = None,
    ) -> tuple[Columns, np.ndarray]:
        """Columns as in `columns`, and the column of labels as a vector, in one reading.

        A label that is not a number, or with `classes` neither of these names, is NaN, each for
        itself, whatever the others are.
        """
        self.require([*names, target, *categorical])
        return self._read(Asked(list(names), target, categorical, classes=classes))

    def declared(
        self, dictionary: Dictionary, target: str | None = None, classes: Names | None = None
    ) -> tuple[Columns, np.ndarray]:
        """Columns and labels, if any, as a public dictionary says, each cell for itself.

        Nothing that a cell holds is refused: what is not as declared is missing, which in the
        labels is NaN. See `read_declared`, and for `classes` `columns_and_labels`.
        """
        self.require([*dictionary.names, *(() if target is None else (target,))])
        names, levels = list(dictionary.names), dictionary.levels
        return self._read(Asked(names, target, levels=levels, classes=classes))

    @property
    @abstractmethod
    def n_rows(self) -> int:
        """Number of rows; no value of a cell is looked at."""

    @property
    def types(self) -> dict[str, str]:
        """Which columns are ``"number"`` or ``"text"``, where the file itself states it."""
        return {}

    def require(self, names: Sequence[str]) -> None:
        """Refuse names of columns that are not there."""
        present = set(self.names)
        absent = [name for name in dict.fromkeys(names) if name not in present]
        if not absent:
            return
        hint = f"; {self._instead_of(absent[0])}"
        if len(absent) > 1:
            more = f" and {len(absent) - _NAMED} more" if len(absent) > _NAMED else ""
            hint = f", {', '.join(map(repr, absent[1:_NAMED]))}{more}"
        plural = "s" if len(absent) > 1 else ""
        raise ValueError(f"{escaped(self.path)} has no column{plural} {absent[0]!r}{hint}")

    def check_header(self) -> None:
        """Refuse a text file whose first line may be a record, or run on into one.

        One of its names reads as a number then. None is shown.
        """
        if self._doubtful:
            raise ValueError(
                f"{escaped(self.path)} has a number among the names of its columns; if its first "
                "line is a record, or a line break is lost, put a line of names there; otherwise "
                "rename such columns"
            )

    @property
    def _doubtful(self) -> bool:
        text = self.path.suffix.lower() in _TEXT
        return text and any(_NUMBER.fullmatch(name.strip()) for name in self.names)

    def _instead_of(self, name: str) -> str:
        """The column that was probably meant, or how many columns there are.

        All names are not shown: in a file whose first line is damaged or missing they hold the
        values of a record.
        """
        spelled = {each.casefold(): each for each in self.names}
        close = get_close_matches(name.casefold(), spelled, n=1)
        close = [one for one in close if not _NUMBER.fullmatch(one.removeprefix(name.casefold()))]
        if close and not self._doubtful:
            return f"did you mean {spelled[close[0]]!r}?"
        return f"it has {len(self.names)} columns, none with such a name"

    def feature_names(
        self,
        target: str | None,
        *,
        features: Sequence[str] | None = None,
        exclude: Sequence[str] | None = None,
    ) -> list[str]:
        """Names of the covariates: those asked for, or all but the target and those excluded."""
        if features is not None and exclude is not None:
            raise ValueError("give the features or those to exclude, not both")
        if features is not None:
            self.require(features)
            twice = [name for k, name in enumerate(features) if name in features[:k]]
            if twice:
                raise ValueError(f"the feature {twice[0]!r} is named twice")
            if target is not None and target in features:
                raise ValueError(f"the target {target!r} cannot be one of the features")
            chosen = list(features)
        else:
            left_out = set(exclude or ())
            self.require(sorted(left_out))
            chosen = [name for name in self.names if name != target and name not in left_out]
        if not chosen:
            raise ValueError(f"no column of {escaped(self.path)} is left as a feature")
        return chosen

    @abstractmethod
    def _read(self, asked: Asked) -> tuple[Columns, np.ndarray]:
        """Return the columns, which exist, and the labels, none where there is no target.

        A table without rows is refused.
        """


def check_labels(labels: np.ndarray) -> None:
    """Refuse labels that are not finite; the error tells neither a value nor a row."""
    if not np.isfinite(labels).all():
        raise ValueError(LABELS_REFUSED)


def not_numbers(path: Path, target: str) -> ValueError:
    """The error for labels whose type in the file is not one of numbers."""
    return ValueError(
        f"{escaped(path)}: the column {target!r} does not hold numbers by its type, as labels must"
    )


def check_size(path: Path, n_rows: int, n_columns: int) -> None:
    """Refuse a table without rows, with too many columns, or too large for the memory."""
    if n_rows == 0:
        raise ValueError(f"{escaped(path)} has no rows")
    if n_columns > _MAX_COLUMNS:
        raise ValueError(f"{escaped(path)} has more than {_MAX_COLUMNS} columns")
    if not fits_memory(8 * n_rows * n_columns):
        raise ValueError(
            f"{escaped(path)} has {n_rows} rows and {n_columns} columns to read, more numbers than "
            "fit into the memory of this machine"
        )
