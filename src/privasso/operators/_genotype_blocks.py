"""Packed genotypes as a table in blocks of rows, decoded while they are read."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field

import numpy as np

from privasso.blocks import Chunk, Local, Part, RowBlocks
from privasso.operators._genotypes import Genotypes

#: Entries that are decoded at a time.
_CHUNK = 1 << 21
#: Rows times columns of a part.
_PART = 1 << 23


@dataclass(frozen=True, eq=False)
class GenotypePart(Part):
    """Some rows of a matrix of genotypes, and their labels."""

    F: Genotypes = field(repr=False)
    y: np.ndarray = field(repr=False)
    start: int
    stop: int

    @property
    def rows(self) -> int:  # pyright: ignore[reportIncompatibleVariableOverride]
        """Number of rows."""
        return self.stop - self.start

    def chunks(self) -> Iterator[Chunk]:
        """Decode some rows at a time."""
        step = max(1, _CHUNK // self.F.shape[1])
        for start in range(self.start, self.stop, step):
            part = slice(start, min(start + step, self.stop))
            yield self.F.rows(part), self.y[part]


def genotype_blocks(F: Genotypes, y: np.ndarray, names: Sequence[str] | None = None) -> RowBlocks:
    """Genotypes and labels in blocks of rows; entries are scaled as F says."""
    m, n = F.shape
    if y.shape != (m,):
        raise ValueError(f"y must have one label for each of the {m} rows, not {y.size}")
    step = max(1, _PART // n)
    parts = [GenotypePart(F, y, lo, min(lo + step, m)) for lo in range(0, m, step)]
    return RowBlocks((m, n), Local(parts), None if names is None else tuple(names))
