"""NumPy's NPZ: arrays X and y, and names for the columns of X if there are any."""

from __future__ import annotations

import warnings
import zipfile
from collections.abc import Sequence
from pathlib import Path

import numpy as np
from numpy.lib.format import MAGIC_PREFIX, read_array

from privasso._files import fits_memory, open_regular, unreadable
from privasso._text import escaped
from privasso.tables._table import NumberTable, check_size

LABELS = "y"
#: Of the name of an array in the archive.
_ENDING = ".npy"


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
