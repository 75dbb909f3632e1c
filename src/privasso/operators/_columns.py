"""Columns copied out of a sparse matrix, centred or not, which stay sparse."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import scipy.sparse as sp


@dataclass(frozen=True, eq=False)
class Columns:
    """The columns f_i − r·mean_i.

    - `block` (M, n): f_1 … f_n.
    - `mean` (n,): zero unless the matrix is centred.
    - `roots` (M,): r.
    - `along` (n,): r·f_i.
    """

    block: Any
    mean: np.ndarray
    roots: np.ndarray
    along: np.ndarray

    @staticmethod
    def of(block: Any, mean: np.ndarray, roots: np.ndarray) -> Columns:
        """The columns with r·f_i computed."""
        along = block.T @ roots if mean.any() else np.zeros(mean.size)
        return Columns(block, mean, roots, along)

    @property
    def total(self) -> float:
        """r·r."""
        return float(self.roots @ self.roots)

    def arrays(self) -> tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray, np.ndarray]:
        """Entries, their rows, where each column starts, the means, and r·f_i."""
        return self.block.data, self.block.indices, self.block.indptr, self.mean, self.along

    def joined(self, other: Columns) -> Columns:
        """These columns, then the others."""
        return Columns(
            sp.hstack([self.block, other.block], format="csc"),
            np.concatenate([self.mean, other.mean]),
            self.roots,
            np.concatenate([self.along, other.along]),
        )

    def taken(self, keep: np.ndarray) -> Columns:
        """Some of these columns."""
        return Columns(self.block[:, keep], self.mean[keep], self.roots, self.along[keep])

    def matvec(self, x: np.ndarray) -> np.ndarray:
        """The sum of the columns times x."""
        w = self.block @ x
        return w - self.roots * float(self.mean @ x) if self.mean.any() else w

    def gram(self) -> np.ndarray:
        """Inner products of the columns, dense."""
        gram = (self.block.T @ self.block).toarray()
        if self.mean.any():
            cross = np.outer(self.along, self.mean)
            gram += self.total * np.outer(self.mean, self.mean) - cross - cross.T
        return gram
