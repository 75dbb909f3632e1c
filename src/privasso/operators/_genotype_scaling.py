"""What the copies of an allele become when columns of genotypes are centred and scaled."""

from __future__ import annotations

from typing import Literal

import numpy as np
from numpy.typing import ArrayLike

from privasso._validation import real_array

Scaling = Literal["standard", "centre", "none"]
#: What a missing genotype counts as.
Missing = Literal["mean"] | ArrayLike


class GenotypeScaling:
    """An entry is factor·copies + offset, where a missing genotype has `fill` copies.

    - `counts` (N, 3): for each column how many rows have one copy, two copies and none known.
    - `n_rows`: M.
    - `scaling` ("standard", "centre", "none"): see `Genotypes`.
    - `fill` (N,): copies that a missing genotype counts as; None for the mean of its column.
    """

    def __init__(
        self, counts: np.ndarray, n_rows: int, scaling: Scaling, fill: np.ndarray | None
    ) -> None:
        one, two, self.n_missing = counts.T
        known, n = n_rows - self.n_missing, len(counts)
        self.copies = one + 2 * two  # in all rows of a column
        self.mean = self.copies / np.maximum(known, 1)
        squares = one * (1 - self.mean) ** 2 + two * (2 - self.mean) ** 2
        squares += (known - one - two) * self.mean**2
        self.deviation = np.sqrt(squares / n_rows)
        self.complete = self.n_missing == 0
        self.fill = self.mean if fill is None else fill
        levels = levels_of(self.fill)
        if scaling == "none":
            self.factor, self.offset, self.values = np.ones(n), np.zeros(n), levels
            self.squares = one + 4.0 * two + self.n_missing * self.fill**2
            return
        varies = (one > 0) & (one < known) | (two > 0) & (two < known)
        self.factor = varies.astype(np.float64)
        if scaling == "standard":
            self.factor = np.where(varies, 1.0 / np.where(varies, self.deviation, 1.0), 0.0)
        self.offset = -self.factor * self.mean
        self.squares = self.factor**2 * squares
        #: What the two bits of a genotype stand for.
        self.values = self.factor[:, None] * (levels - self.mean[:, None])


def levels_of(fill: np.ndarray) -> np.ndarray:
    """Copies that the two bits 00, 01, 10 and 11 stand for in columns with these fills."""
    n = fill.size
    return np.stack([np.full(n, 2.0), fill, np.ones(n), np.zeros(n)], axis=1)


def checked_fill(missing: Missing, n_columns: int) -> np.ndarray | None:
    """Copies that missing genotypes count as in each column; None for the means."""
    if isinstance(missing, str):
        if missing != "mean":
            raise ValueError(f"missing must be 'mean' or a number of copies, not {missing!r}")
        return None
    given = real_array("missing", missing)
    if given.shape not in ((), (n_columns,)):
        raise ValueError(f"missing must be one number, or one for each of {n_columns} columns")
    if np.min(given) < 0.0 or np.max(given) > 2.0:
        raise ValueError("missing must be a number of copies from 0 to 2")
    return np.broadcast_to(given, (n_columns,)).astype(np.float64)
