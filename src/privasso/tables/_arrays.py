"""NumPy's NPZ: arrays X and y, and names for the columns of X if there are any."""

from __future__ import annotations

import zipfile
from pathlib import Path

import numpy as np

from privasso.tables._frames import unreadable
from privasso.tables._table import Table, check_finite

LABELS = "y"


class NpzTable(Table):
    """An NPZ file with X of shape (M, N), y of shape (M,) if any, and `feature_names` if any.

    Without names the columns of X are x0, x1, …; the labels are the column y. Objects are never
    unpickled.
    """

    def __init__(self, path: Path) -> None:
        self._file = _opened(path)
        if "X" not in self._file:
            raise ValueError(f"{path} has no array X; save one with numpy.savez(path, X=X, y=y)")
        self._X: np.ndarray | None = None
        if "feature_names" in self._file:
            names = _array(path, self._file, "feature_names")
            if names.dtype.kind != "U" or names.ndim != 1:
                raise ValueError(f"{path}: feature_names must be a vector of text")
            names = [str(name) for name in names]
            self._width = len(names)
        else:
            self._width = self._matrix(path).shape[1]
            names = [f"x{k}" for k in range(self._width)]
        super().__init__(path, [*names, LABELS] if "y" in self._file else names)

    def _read(self, names: list[str]) -> np.ndarray:
        X = self._matrix(self.path)
        if X.shape[1] != self._width:
            raise ValueError(
                f"{self.path}: feature_names has {self._width} names for {X.shape[1]} columns of X"
            )
        position = {name: k for k, name in enumerate(self.names)}
        matrix = np.empty((X.shape[0], len(names)), order="F")
        for k, name in enumerate(names):
            matrix[:, k] = (
                self._labels(X) if position[name] == self._width else X[:, position[name]]
            )
            check_finite(matrix[:, k], name)
        return matrix

    def _matrix(self, path: Path) -> np.ndarray:
        if self._X is None:
            self._X = _numeric(path, _array(path, self._file, "X"), "X", 2)
        return self._X

    def _labels(self, X: np.ndarray) -> np.ndarray:
        y = _numeric(self.path, _array(self.path, self._file, "y"), "y", 1)
        if y.shape[0] != X.shape[0]:
            raise ValueError(f"{self.path}: y has {y.shape[0]} entries for {X.shape[0]} rows of X")
        return y


def _opened(path: Path) -> np.lib.npyio.NpzFile:
    try:
        file = np.load(path, allow_pickle=False)
    except (ValueError, EOFError, zipfile.BadZipFile) as error:
        raise unreadable(path, error) from None
    if not isinstance(file, np.lib.npyio.NpzFile):
        raise ValueError(f"{path} is a single array; save X and y with numpy.savez(path, X=X, y=y)")
    return file


def _array(path: Path, file: np.lib.npyio.NpzFile, name: str) -> np.ndarray:
    try:
        return file[name]
    except (ValueError, EOFError, zipfile.BadZipFile) as error:
        raise ValueError(f"{path}: the array {name} cannot be read: {error}") from None


def _numeric(path: Path, array: np.ndarray, name: str, ndim: int) -> np.ndarray:
    if array.dtype.kind not in "fiub":
        raise ValueError(f"{path}: {name} holds {array.dtype}, not real numbers")
    if array.ndim != ndim:
        raise ValueError(f"{path}: {name} must have {ndim} dimensions, not {array.ndim}")
    return array
