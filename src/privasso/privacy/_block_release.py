"""The exact Gaussian mechanism for labels of blocks of rows.

Rows in units of the noise are rounded to integers, each by itself, as for an array in memory. Sums
of them times integer labels are exact, so that the release is the same to the last bit for any cut
and order of the rows. Labels leave the place where they are only as these sums.
"""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

import numpy as np

from privasso._blas import one_thread
from privasso.blocks import Chunk, Sums
from privasso.operators import (
    BlockCovariates,
    BlockWhitening,
    bits_of,
    largest_square,
    number_of,
)
from privasso.privacy._cells import bounded_labels
from privasso.privacy._integer_rows import EXACT, PARTS, SPLIT, TOO_LARGE, IntegerSums, label_parts
from privasso.privacy._kind import Calibration

#: Sums are kept in two parts of so many bits, so that no number of blocks overflows.
_HALF = 32
_EPS = np.finfo(np.float64).eps


@dataclass(frozen=True, eq=False)
class LabelSums:
    """A task: Σ_μ k_μ ℓ_μ for k_μ = rint(2^a Σ^(−½) f_μ), and the largest ‖k_μ‖².

    Attributes
    ----------
    whitening : BlockWhitening
        Rows in units of the noise.
    exponent : int
        a.
    bounds : (float, float)
        Of the labels, in `unit`.
    unit : float
        Of the labels.
    """

    whitening: BlockWhitening
    exponent: int
    bounds: tuple[float, float]
    unit: float

    def __call__(self, chunks: Iterable[Chunk], state: Any) -> Sums:
        """Return the sums."""
        from privasso.privacy._exact_release import integer_labels

        low, high = self.bounds
        sums = np.zeros((self.whitening.rank, PARTS, 2), dtype=np.int64)
        labels_sum, largest = np.zeros((PARTS, 1), dtype=np.int64), 0.0
        with one_thread():
            for X, y in chunks:
                y = np.ascontiguousarray(y, dtype=np.float64)
                scaled = bounded_labels(y, (low * self.unit, high * self.unit)) / self.unit
                parts = label_parts(integer_labels(scaled, low, high).values)
                factors = parts.astype(np.float64)
                for span, white in self.whitening.rows(X):
                    K = np.rint(np.ldexp(white, self.exponent))
                    bound = float(np.max(np.abs(K), initial=0.0)) * 2.0**SPLIT * len(K)
                    if not bound < EXACT:
                        raise ValueError(TOO_LARGE)
                    found = (K.T @ factors[span]).astype(np.int64)
                    sums[..., 0] += found & ((1 << _HALF) - 1)
                    sums[..., 1] += found >> _HALF
                    largest = max(largest, largest_square(np.ascontiguousarray(K)))
                labels_sum[:, 0] += parts.sum(axis=0)
        return {"products": sums, "labels": labels_sum, "largest square": bits_of(largest)}


def block_sums(
    rows: BlockCovariates,
    calibration: Calibration,
    bounds: tuple[float, float],
    unit: float,
    exponent: int,
    span: int,
) -> IntegerSums:
    """What `integer_sums` returns for an array, by one pass over the blocks."""
    covariance = calibration.covariance
    ones = float(np.rint(2.0**exponent / calibration.sigma_sum)) if rows.centred else 0.0
    task = LabelSums(rows.whitening(covariance), exponent, bounds, unit)
    found = rows.source.sum(task, None)
    products = [
        sum((low + (high << _HALF)) << (SPLIT * k) for k, (low, high) in enumerate(row))
        for row in found["products"].tolist()
    ]
    total = sum(value << (SPLIT * k) for k, (value,) in enumerate(found["labels"].tolist()))
    slack = 1.0 + (covariance.size + 16) * _EPS
    square = number_of(found["largest square"])
    largest = float(span) ** 2 * (square + ones**2) * slack
    if not math.isfinite(largest):
        raise ValueError(TOO_LARGE)
    return IntegerSums(products, int(ones) * total, largest)
