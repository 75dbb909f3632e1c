"""Centres and scales of columns from noisy sums of values and of their squares."""

from __future__ import annotations

import math

import numpy as np

from privasso.queries import ROUNDING, BitSource, noise_deviation, noisy_integers

#: Values in [−1, 1] are integers of this many bits, and their squares of twice as many.
_BITS = 16
#: Numbers per block; sums of a block are exact in 64 bits.
_BLOCK = 1 << 20
#: Mean and variance of z² for z uniform in [−1, 1], and variance of z: what is believed beforehand.
_SQUARE, _SQUARE_VARIANCE, _VARIANCE = 1.0 / 3.0, 4.0 / 45.0, 1.0 / 3.0
#: A scale is not taken to be below this part of half the range.
_SMALLEST = 1.0 / 16.0


def noisy_scales(
    Z: np.ndarray, mu: float, bits: BitSource, *, centred: bool, n_rows: int
) -> tuple[np.ndarray, np.ndarray]:
    """Centre and scale of columns with values in [−1, 1], for a sensitivity of μ deviations.

    A record with the values z adds z_i to one sum and z_i² − ½ to another for each column; these
    have the squared length Σ_i z_i⁴ + ¼ ≤ 5N/4, and an empty record adds nothing. The sums become
    the means that are to be expected after them, for columns that are uniform in [−1, 1] as far as
    is known beforehand. So where the noise hides the moments, a column keeps the centre and the
    scale of its range.

    Parameters
    ----------
    Z : ndarray of shape (M, N)
        Columns divided by half their range, in [−1, 1], of the records that are not empty.
    mu : float
        No record changes the sums by more deviations of their noise.
    bits : BitSource
        Source of the noise.
    centred : bool
        Whether the scale is a deviation from the centre; if not, from zero, and the centre is zero.
    n_rows : int
        Number of all records, which is public.

    Examples
    --------
    >>> from privasso.queries import bit_source
    >>> Z = 0.5 + 0.1 * np.random.default_rng(0).standard_normal((9000, 1))
    >>> bits = bit_source(np.random.default_rng(1))
    >>> found = noisy_scales(Z, 0.2, bits, centred=True, n_rows=9000)
    >>> [x.round(2).tolist() for x in found]
    [[0.5], [0.1]]
    """
    n = Z.shape[1]
    sums = _sums(Z)
    deviation = noise_deviation(math.ldexp(math.sqrt(1.25 * n), 2 * _BITS) * ROUNDING, mu)
    noisy = noisy_integers(sums, deviation, 2 * _BITS, bits)
    # The means of all records; variance of their noise.
    first, second = noisy[:n] / n_rows, noisy[n:] / n_rows + 0.5
    variance = (math.ldexp(deviation, -2 * _BITS) / n_rows) ** 2
    first = np.clip(first * _VARIANCE / (_VARIANCE + variance), -1.0, 1.0)
    weight = _SQUARE_VARIANCE / (_SQUARE_VARIANCE + variance)
    second = _SQUARE + weight * (second - _SQUARE)
    if not centred:
        first = np.zeros(n)
    doubt = math.sqrt(weight * variance)
    squares = np.clip(second - first**2, max(doubt, _SMALLEST**2), 1.0)
    return first, np.sqrt(squares)


def _sums(Z: np.ndarray) -> list[int]:
    """Σ k·2^16 and Σ k² − 2^31 of the integers k = rint(2^16 z), in units of 2^−32."""
    m, n = Z.shape
    sums, squares = [0] * n, [0] * n
    step = max(1, _BLOCK // n)
    for start in range(0, m, step):
        k = np.rint(np.ldexp(Z[start : start + step], _BITS)).astype(np.int64)
        sums = [a + b for a, b in zip(sums, k.sum(axis=0).tolist(), strict=True)]
        squares = [a + b for a, b in zip(squares, (k * k).sum(axis=0).tolist(), strict=True)]
    middle = m << (2 * _BITS - 1)
    return [*(x << _BITS for x in sums), *(x - middle for x in squares)]
