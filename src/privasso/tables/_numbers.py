"""Files that hold nothing but numbers: NumPy's NPZ, and PLINK's .bed with its phenotypes."""

from __future__ import annotations

import warnings
import zipfile
from abc import abstractmethod
from collections.abc import Sequence
from pathlib import Path

import numpy as np
from numpy.lib.format import MAGIC_PREFIX, read_array

from privasso._files import fits_memory, open_regular, read_lines, unreadable
from privasso._text import escaped
from privasso.blocks import PHENOTYPE, Bed, Variants, phenotypes
from privasso.encoding import Columns, Numbers
from privasso.tables._table import Asked, Table, check_size

LABELS = "y"
#: Of the name of an array in the archive.
_ENDING = ".npy"


class NumberTable(Table):
    """A data file all of whose columns are numbers."""

    @property
    def types(self) -> dict[str, str]:
        """All columns are numbers."""
        return dict.fromkeys(self.names, "number")

    def _read(self, asked: Asked) -> tuple[Columns, np.ndarray]:
        if asked.categorical or asked.levels or asked.classes:
            raise ValueError(
                f"{escaped(self.path)}: columns of a {self.path.suffix} file are numbers; for "
                "levels save the table as CSV, Parquet or Arrow"
            )
        m, names = self.n_rows, asked.names
        check_size(self.path, m, len(names))
        block = np.empty((m, len(names)), order="F")
        self._fill(block, names)
        labels = np.empty(0) if asked.target is None else self.labels(asked.target)
        columns = tuple(Numbers(name, block[:, k]) for k, name in enumerate(names))
        return Columns(columns, m, block=block), labels

    @abstractmethod
    def _fill(self, block: np.ndarray, names: Sequence[str]) -> None:
        """Write these columns."""

    @abstractmethod
    def labels(self, target: str) -> np.ndarray:
        """A column of labels, which may be overwritten."""


class NpzTable(NumberTable):
    """An NPZ file with X of shape (M, N), y of shape (M,) if any, and `feature_names` if any.

    Without names the columns of X are x0, x1, …; the labels are the column y. Objects are never
    unpickled.
    """

    def __init__(self, path: Path) -> None:
        members = _members(path)
        if "X" not in members:
            raise ValueError(
                f"{escaped(path)} has no array X; save one with numpy.savez(path, X=X, y=y)"
            )
        self._X: np.ndarray | None = None
        if "feature_names" in members:
            names = _names(path)
            self._width = len(names)
        else:
            self._width = self._matrix(path).shape[1]
            names = [f"x{k}" for k in range(self._width)]
        super().__init__(path, [*names, LABELS] if LABELS in members else names)

    def _fill(self, block: np.ndarray, names: Sequence[str]) -> None:
        X = self._matrix(self.path)
        if X.shape[1] != self._width:
            raise ValueError(
                f"{escaped(self.path)}: feature_names has {self._width} names for {X.shape[1]} "
                "columns of X"
            )
        place = {name: k for k, name in enumerate(self.names)}
        for k, name in enumerate(names):
            block[:, k] = self._column(place[name])

    def labels(self, target: str) -> np.ndarray:
        """The array y, or a column of X."""
        return np.array(self._column(self.names.index(target)), dtype=np.float64)

    def _column(self, at: int) -> np.ndarray:
        X = self._matrix(self.path)
        return self._labels(X) if at == self._width else X[:, at]

    @property
    def n_rows(self) -> int:
        """Rows of X."""
        return self._matrix(self.path).shape[0]

    def _matrix(self, path: Path) -> np.ndarray:
        if self._X is None:
            self._X = _numeric(path, _array(path, "X"), "X", 2)
            check_size(path, *self._X.shape)
        return self._X

    def _labels(self, X: np.ndarray) -> np.ndarray:
        y = _numeric(self.path, _array(self.path, LABELS), "y", 1)
        if y.shape[0] != X.shape[0]:
            raise ValueError(
                f"{escaped(self.path)}: y has {y.shape[0]} entries for {X.shape[0]} rows of X"
            )
        return y


def _members(path: Path) -> set[str]:
    """Names of the arrays in the file."""
    with open_regular(path) as file:
        if file.read(len(MAGIC_PREFIX)) == MAGIC_PREFIX:
            raise ValueError(
                f"{escaped(path)} is a single array; save X and y with numpy.savez(path, X=X, y=y)"
            )
        try:
            with zipfile.ZipFile(file) as archive:
                return {name.removesuffix(_ENDING) for name in archive.namelist()}
        except Exception:  # of a dozen kinds
            raise unreadable(path) from None


def _array(path: Path, name: str) -> np.ndarray:
    """Read an array; what the libraries say of a damaged one may quote it, and is not passed on."""
    array: np.ndarray | None = None
    with open_regular(path) as file, warnings.catch_warnings():
        warnings.simplefilter("ignore")
        try:
            with zipfile.ZipFile(file) as archive, archive.open(name + _ENDING) as member:
                size = archive.getinfo(name + _ENDING).file_size  # no more is ever unpacked
                if fits_memory(size):
                    array = read_array(member, allow_pickle=False)
        except Exception:  # of a dozen kinds, from two libraries
            array = None
    if array is None:
        raise ValueError(
            f"{escaped(path)}: the array {name} cannot be read, because the file is damaged, holds "
            "objects, or is too large for this machine"
        )
    return array


def _names(path: Path) -> list[str]:
    names = _array(path, "feature_names")
    if names.dtype.kind == "U" and names.ndim == 1:
        try:
            return [str(name) for name in names]
        except ValueError:  # a number beyond the last character
            pass
    raise ValueError(f"{escaped(path)}: feature_names must be a vector of text")


def _numeric(path: Path, array: np.ndarray, name: str, ndim: int) -> np.ndarray:
    if array.dtype.kind not in "fiub":
        raise ValueError(f"{escaped(path)}: {name} does not hold numbers by its type")
    if array.ndim != ndim:
        raise ValueError(f"{escaped(path)}: {name} must have {ndim} dimensions, not {array.ndim}")
    return array


class BedTable(NumberTable):
    """A .bed file with its .bim and .fam files: copies of an allele, NaN where they are missing.

    The labels are the phenotypes of the .fam file, by the name ``pheno``, or columns of another
    file that names the people: those of `with_labels`. A label that is -9 or no number is NaN, and
    so is that of a person whom the file does not name.
    """

    def __init__(self, path: Path, labels: Path | None = None) -> None:
        self._bed = bed = Bed.of(path)
        self._place = {name: k for k, name in enumerate(bed.names)}
        bed.variants([])  # which checks the file
        own = {PHENOTYPE: bed.phenotypes}
        self._labels = own if labels is None else read_labels(labels, bed.people)
        super().__init__(path, [*bed.names, *self._labels])

    @property
    def n_rows(self) -> int:
        """Number of people."""
        return len(self._bed.people)

    def feature_names(
        self,
        target: str | None,
        *,
        features: Sequence[str] | None = None,
        exclude: Sequence[str] | None = None,
    ) -> list[str]:
        """As for every table; without `features` no phenotype is one."""
        left_out = None if features is not None else list(exclude or ())
        if left_out is not None:
            left_out += [name for name in self._labels if name not in (target, *left_out)]
        return super().feature_names(target, features=features, exclude=left_out)

    def variants(self, names: Sequence[str]) -> Variants:
        """Some variants, NaN where a genotype is missing."""
        every = tuple(names) == self._bed.names
        return self._bed.variants(None if every else [self._place[name] for name in names])

    def labels(self, target: str) -> np.ndarray:
        """A column of phenotypes."""
        self.require([target])
        if target not in self._labels:
            raise ValueError(f"{escaped(self.path)}: {target!r} is a variant, not a phenotype")
        return self._labels[target].copy()

    def _fill(self, block: np.ndarray, names: Sequence[str]) -> None:
        places = [k for k, name in enumerate(names) if name in self._place]
        for span, part in self.variants([names[k] for k in places]).column_blocks():
            block[:, places[span]] = part
        for k, name in enumerate(names):
            if name in self._labels:
                block[:, k] = self._labels[name]


def read_labels(path: Path, people: Sequence[tuple[str, str]]) -> dict[str, np.ndarray]:
    """Columns of a file that names people, in the order of these.

    It is a text file as PLINK's --pheno reads it: a line of names, which begins with FID and IID
    or with IID alone, then one line per person, with spaces, tabs or, in a .csv file, commas
    between the columns. A line with more or fewer columns is ignored. The identifiers are public.
    """
    comma = b"," if path.suffix.lower() == ".csv" else None
    lines = [line.strip().split(comma) for line in read_lines(path)]
    cells = [[cell.decode("utf-8", "replace").strip() for cell in line] for line in lines]
    header = [name.lstrip("\ufeff#") for name in cells[0]] if cells else []
    keys = 2 if header[:2] == ["FID", "IID"] else 1 if header[:1] == ["IID"] else 0
    if not keys or len(header) == keys:
        raise ValueError(
            f"{escaped(path)} must begin with a line of names: FID, IID, and at least one column"
        )
    cells = [line for line in cells[1:] if len(line) == len(header)]
    known = {one[-keys:]: k for k, one in enumerate(people)}
    named = [tuple(line[:keys]) for line in cells]
    if len(known) < len(people) or len(set(named)) < len(named):
        raise ValueError(f"{escaped(path)} or the .fam file names a person twice")
    rows = np.array([known.get(name, -1) for name in named], dtype=np.intp)
    found: dict[str, np.ndarray] = {}
    for k, name in enumerate(header[keys:], start=keys):
        found[name] = np.full(len(people), np.nan)
        values = phenotypes([line[k] for line in cells])
        found[name][rows[rows >= 0]] = values[rows >= 0]
    return found
