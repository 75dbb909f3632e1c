"""Steps of Newton's method from a point whose gradient is known exactly, in fixed-point numbers."""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass
from fractions import Fraction

import numpy as np

from privasso.solvers import _tuned as tuned
from privasso.solvers._clipped_face import cholesky, minimise_quadratic


@dataclass(frozen=True, eq=False)
class FixedPoint:
    """A vector of multiples of 2⁻ᵖ."""

    whole: tuple[int, ...]
    bits: int

    @classmethod
    def near(cls, values: np.ndarray, bits: int) -> FixedPoint:
        """The nearest multiples of 2^−bits; zero where a value is no number."""
        finite = np.where(np.isfinite(values), values, 0.0)
        return cls(tuple(_nearest(v, bits) for v in finite.tolist()), bits)

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


@dataclass(frozen=True, eq=False)
class ExactPoint:
    """A point with the exact gradient of the smooth part, in multiples of 1/scale.

    The scale is a multiple of the denominators of all thresholds.
    """

    x: FixedPoint
    gradient: list[int]
    scale: int
    values: np.ndarray


class Steps:
    """Steps for the penalty Σ_i t_i|x_i| beside a smooth part."""

    def __init__(self, thresholds: np.ndarray) -> None:
        self.thresholds = thresholds
        self.penalty = [Fraction(t) for t in thresholds.tolist()]

    def gradient(self, at: ExactPoint) -> Iterator[tuple[int, int, int]]:
        """Each entry of the gradient with its threshold, in the same unit, and the sign of x."""
        scale = at.scale
        whole = [t.numerator * (scale // t.denominator) for t in self.penalty]
        signs = [(k > 0) - (k < 0) for k in at.x.whole]
        return zip(at.gradient, whole, signs, strict=True)

    def residual(self, at: ExactPoint) -> np.ndarray:
        """The subgradient of P with the smallest entries, each correctly rounded."""
        scale = at.scale
        return np.array(
            [
                (g + t * s if s else max(g - t, 0) + min(g + t, 0)) / scale
                for g, t, s in self.gradient(at)
            ]
        )

    def direction(self, at: ExactPoint, H: np.ndarray) -> tuple[np.ndarray, np.ndarray | None]:
        """The step of the quadratic model, and which coefficients it sets to zero."""
        thresholds, x, scale = self.thresholds, at.values, at.scale
        sign = np.array([(k > 0) - (k < 0) for k in at.x.whole], dtype=np.float64)
        # Around x the penalty of every coefficient that is not zero is linear, and what remains
        # are small numbers: the step has all its digits, however small it is.
        slopes = np.array([(g + t * s) / scale for g, t, s in self.gradient(at)])
        free = np.where(sign == 0.0, thresholds, 0.0)
        d = minimise_quadratic(H, -slopes, free, np.zeros_like(x), tuned.EXACT_STEP)
        if not np.any((sign != 0.0) & (thresholds > 0.0) & (sign * (x + d) <= 0.0)):
            return self._polished(H, slopes, free, d), None
        gradient = np.array([g / scale for g in at.gradient])
        target = minimise_quadratic(H, H @ x - gradient, thresholds, x, tuned.EXACT_STEP)
        return target - x, target == 0.0

    @staticmethod
    def _polished(H: np.ndarray, slopes: np.ndarray, free: np.ndarray, d: np.ndarray) -> np.ndarray:
        """The step on its support by one solve, unless a sign changes."""
        active = np.flatnonzero((d != 0.0) | (free == 0.0))
        factor = cholesky(H, active) if active.size else None
        if factor is None:
            return d
        better = np.zeros_like(d)
        better[active] = -factor.solve(slopes[active] + free[active] * np.sign(d[active]))
        return d if np.any((free > 0.0) & (better * d < 0.0)) else better

    @staticmethod
    def moved(at: ExactPoint, step: np.ndarray, zeros: np.ndarray | None) -> FixedPoint:
        """X + step on the grid of x; where `zeros` says so, exactly zero."""
        unit = at.x.bits
        steps = [_nearest(d, unit) for d in step.tolist()]
        moved = [k + d for k, d in zip(at.x.whole, steps, strict=True)]
        if zeros is not None:
            moved = [0 if z else k for k, z in zip(moved, zeros.tolist(), strict=True)]
        return FixedPoint(tuple(moved), unit)

    def slope(self, at: ExactPoint, direction: np.ndarray, *, sign: int) -> float:
        """The derivative of P along the direction, from the right (1) or from the left (−1)."""
        ratios = [d.as_integer_ratio() for d in direction.tolist()]
        finest = max((below for _, below in ratios), default=1)  # powers of two
        total = 0
        for (g, t, s), (d, below) in zip(self.gradient(at), ratios, strict=True):
            if d:
                side = s or (sign if d > 0 else -sign)
                total += d * (finest // below) * (g + t * side)
        return total / (at.scale * finest)


def _nearest(value: float, bits: int) -> int:
    """A number in multiples of 2^−bits, rounded to the nearest, and halves to an even one."""
    try:
        return round(math.ldexp(value, bits))
    except OverflowError:
        return round(Fraction(value) * (1 << bits))
