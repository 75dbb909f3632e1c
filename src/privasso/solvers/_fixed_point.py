"""Vectors of fixed-point numbers, and their digits."""

from __future__ import annotations

import math
from dataclasses import dataclass
from fractions import Fraction

import numpy as np


@dataclass(frozen=True, eq=False)
class FixedPoint:
    """A vector of multiples of 2⁻ᵖ."""

    whole: tuple[int, ...]
    bits: int

    @classmethod
    def near(cls, values: np.ndarray, bits: int) -> FixedPoint:
        """The nearest multiples of 2^−bits; zero where a value is no number."""
        finite = np.where(np.isfinite(values), values, 0.0)
        return cls(tuple(round(Fraction(v) * (1 << bits)) for v in finite.tolist()), bits)

    def with_bits(self, bits: int) -> FixedPoint:
        """The nearest numbers with so many bits after the point."""
        return FixedPoint(tuple(self.in_steps_of(-bits)), bits)

    @property
    def values(self) -> np.ndarray:
        """The nearest floating-point numbers."""
        return np.array([math.ldexp(float(k), -self.bits) for k in self.whole])

    def in_steps_of(self, exponent: int) -> list[int]:
        """The nearest multiples of 2^exponent, as integers."""
        finer = self.bits + exponent
        if finer <= 0:
            return [k << -finer for k in self.whole]
        return [(k + (1 << (finer - 1))) >> finer for k in self.whole]

    def digits(self, width: int) -> tuple[np.ndarray, ...]:
        """Vectors d₀, d₁, … of small integers with x = Σ_k d_k 2^(k·width − p)."""
        rest, found = list(self.whole), []
        half, base = 1 << (width - 1), 1 << width
        while any(rest):
            low = [((k + half) % base) - half for k in rest]
            found.append(np.array(low, dtype=np.float64))
            rest = [(k - d) >> width for k, d in zip(rest, low, strict=True)]
        return tuple(found)


def digit_width(n_columns: int) -> int:
    """Bits of a digit of x, such that products of a row and a digit stay below 2⁵³."""
    return 34 - max(1, math.ceil(math.log2(n_columns)))
