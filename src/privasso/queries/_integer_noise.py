"""The exact Gaussian mechanism for vectors of integers."""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np

from privasso.queries._rounded_gaussian import (
    LARGEST_DEVIATION,
    SMALLEST_DEVIATION,
    BitSource,
    rounded_gaussian,
)

#: Guards a quotient of two numbers against its own rounding.
ROUNDING = 1.0 + 1e-12


def noise_deviation(sensitivity: float, mu: float) -> float:
    """Return Δ/μ, rounded up: the deviation of noise that makes Δ the μ-th part of it.

    Examples
    --------
    >>> 2.0**40 < noise_deviation(2.0**39, 0.5) < 2.0**40 + 8
    True
    """
    deviation = sensitivity / mu * ROUNDING
    if not SMALLEST_DEVIATION <= deviation <= LARGEST_DEVIATION:
        raise ValueError(
            "this budget and number of columns need noise that cannot be represented; choose a "
            "larger share or fewer columns"
        )
    return deviation


def noisy_integers(
    values: Sequence[int] | np.ndarray, deviation: float, unit: int, bits: BitSource
) -> np.ndarray:
    """Add Gaussian noise, rounded to integers, and return the sums as multiples of 2^unit.

    Rounding of a sum of an integer and a continuous number is the integer plus the rounded number.
    The result is therefore computed from what a Gaussian mechanism with this deviation releases.

    Parameters
    ----------
    values : sequence of int
        The statistic; of any size.
    deviation : float
        Standard deviation of the noise, between 2³⁰ and 2⁵⁶.
    unit : int
        The integers count multiples of 2^−unit.
    bits : BitSource
        Source of the noise.

    Examples
    --------
    >>> from privasso.queries import bit_source
    >>> bits = bit_source(np.random.default_rng(0))
    >>> found = noisy_integers([3 << 40, -1 << 40], 2.0**35, 40, bits)
    >>> bool(np.abs(found - [3, -1]).max() < 0.2)
    True
    """
    noise = rounded_gaussian(deviation, len(values), bits).tolist()
    return np.array(
        [math.ldexp(float(int(k) + z), -unit) for k, z in zip(values, noise, strict=True)]
    )
