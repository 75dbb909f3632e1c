"""Gaussian noise rounded to integers, exactly, from random bits.

The integer k has the probability Φ((k+½)/S) − Φ((k−½)/S): that of a continuous Gaussian number of
standard deviation S rounded to the nearest integer. An integer statistic plus this noise is
therefore the rounded value of the statistic plus continuous noise, so that everything proved for
the Gaussian mechanism holds for the integers without any approximation.

Sampling is by rejection. Let t = 2^e with S ≤ t < 2S. A proposal is ±Y, Y = t·V + U, where U is
uniform on 0…t−1 and V is geometric with P(V = v) = 2^−(v+1); both come from bits directly. It is
accepted with probability

    p(Y) = 2^V · exp(−Y²/2S²) · (1 + r(Y)) / C,     1 + r = ∫_{−½}^{½} φ((Y+s)/S) ds / φ(Y/S),

where C ≥ 1 keeps p below 1 and |r| is of order 1/S². A uniform number of 64 bits is compared with p
in floating point. Where they are too close for the rounding errors to decide, which happens about
once in 10¹¹ proposals, the comparison is made in long decimal arithmetic with as many further bits
as it takes. Numbers beyond 64·t, which have a probability below e⁻²⁰⁴⁷, are never proposed.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from decimal import Decimal, localcontext
from typing import TypeAlias

import numpy as np
from numpy.typing import NDArray

#: Returns that many uniform 64-bit words.
BitSource: TypeAlias = Callable[[int], NDArray[np.uint64]]

#: Standard deviations for which the error bounds below hold and Y fits 64 bits.
SMALLEST_DEVIATION, LARGEST_DEVIATION = 2.0**30, 2.0**56
#: Relative error of p in floating point, and of 1 + r taken as 1: 2⁻⁴⁴ with a wide margin.
_MARGIN = 2.0**-40
#: C exceeds the largest value of the ratio by this, so that p stays below 1 with its error.
_ABOVE = 1.0 + 2.0**-30
#: Digits of the first decimal comparison; doubled until it decides.
_DIGITS = 60


def operating_system_bits(n: int) -> NDArray[np.uint64]:
    """Return words from the operating system's cryptographic generator."""
    import os

    return np.frombuffer(os.urandom(8 * n), dtype=np.uint64)


def generator_bits(rng: np.random.Generator) -> BitSource:
    """Return a reproducible source for experiments; not for releases."""
    return lambda n: np.frombuffer(rng.bytes(8 * n), dtype=np.uint64)


def bit_source(rng: np.random.Generator | None) -> BitSource:
    """Bits of the operating system, or of a generator, which is for experiments only."""
    return operating_system_bits if rng is None else generator_bits(rng)


def rounded_gaussian(
    deviation: float,
    size: int,
    bits: BitSource = operating_system_bits,
    *,
    margin: float = _MARGIN,
    finer: bool = False,
) -> np.ndarray:
    """Draw integers that are exactly rounded N(0, deviation²) numbers.

    Parameters
    ----------
    deviation : float
        S, between 2³⁰ and 2⁵⁶.
    size : int
        Number of draws.
    bits : callable
        Source of uniform 64-bit words; the operating system's by default.
    margin : float
        Relative distance at which a comparison is repeated in decimal arithmetic. A larger value
        changes nothing but the time, and lets a test take that path.
    finer : bool
        Draw integers of 2⁶⁴ times the deviation, which are Python's own.
    """
    if not SMALLEST_DEVIATION <= deviation <= LARGEST_DEVIATION:
        raise ValueError("deviation must be between 2**30 and 2**56")
    exponent = math.ceil(math.log2(deviation))
    exponent += 2.0**exponent < deviation
    out = np.empty(size, dtype=object if finer else np.int64)
    done = 0
    while done < size:
        # Between 31 % and 52 % of the proposals are accepted.
        found = _proposals(deviation, exponent, int(2.6 * (size - done)) + 16, bits, margin, finer)
        take = min(found.size, size - done)
        out[done : done + take] = found[:take]
        done += take
    return out


def _proposals(
    deviation: float, exponent: int, n: int, bits: BitSource, margin: float, finer: bool
) -> np.ndarray:
    """Make n proposals and return the accepted ones, in order."""
    words = bits((4 if finer else 3) * n).reshape(-1, n)
    sign = (words[0] & np.uint64(1)).astype(np.int64)
    U = (words[0] >> np.uint64(64 - exponent)).astype(np.int64)
    V = _trailing_zeros(words[1])
    Y = (V << exponent) + U
    a = words[2]
    u = a.astype(np.float64) * 2.0**-64
    x = Y.astype(np.float64) / deviation
    p = np.exp(V * math.log(2.0) - 0.5 * x * x) / _ceiling(deviation, exponent)
    accepted = u < p
    close = np.abs(u - p) <= margin * p + 2.0**-60
    if finer:
        # 64 more bits of U move x by less than 2⁻⁵⁰, and p by a part of its margin.
        Y = (Y.astype(object) << 64) + words[3].astype(object)
        deviation, exponent = math.ldexp(deviation, 64), exponent + 64
    for k in np.flatnonzero(close):
        accepted[k] = _decide(int(a[k]), int(Y[k]), int(V[k]), deviation, exponent, bits)
    # Zero would be counted with both signs; a word of zeros has no first one.
    accepted &= ((Y > 0) | (sign == 0)) & (words[1] > 0)
    return np.where(sign == 1, -Y, Y)[accepted]


def _ceiling(deviation: float, exponent: int) -> float:
    """C: the largest value of 2^V exp(−Y²/2S²), which is at V = 0 or V = 1, with a margin."""
    ratio = 2.0**exponent / deviation
    return max(1.0, 2.0 * math.exp(-0.5 * ratio * ratio)) * _ABOVE


def _trailing_zeros(words: NDArray[np.uint64]) -> NDArray[np.int64]:
    """Number of zero bits below the lowest one; zero for a word of zeros."""
    low = words & (~words + np.uint64(1))
    # A power of two is an exact double, whose exponent is the count.
    return np.maximum(np.frexp(low.astype(np.float64))[1].astype(np.int64) - 1, 0)


def _decide(a: int, Y: int, V: int, deviation: float, exponent: int, bits: BitSource) -> bool:
    """Whether the uniform number that begins with the 64 bits a is below p(Y).

    Both are enclosed in intervals of decimal numbers, which shrink until they are apart.
    """
    n, digits = 64, _DIGITS
    while True:
        low, high = _acceptance(Y, V, deviation, exponent, digits)
        with localcontext() as context:
            context.prec = digits + n
            unit = Decimal(2) ** -n
            if (a + 1) * unit <= low:
                return True
            if a * unit >= high:
                return False
        a = (a << 64) | int(bits(1)[0])
        n, digits = n + 64, 2 * digits


def _acceptance(
    Y: int, V: int, deviation: float, exponent: int, digits: int
) -> tuple[Decimal, Decimal]:
    """An interval that holds p(Y), about 10^−digits wide.

    With x = Y/S and He the Hermite polynomials,
    1 + r = Σ_j He_2j(x) / ((2j+1)! (2S)^2j), the Taylor series of φ integrated term by term.
    """
    with localcontext() as context:
        context.prec = digits + 30
        S, ceiling = Decimal(deviation), Decimal(_ceiling(deviation, exponent))
        x = Decimal(Y) / S
        total, term_size, j = Decimal(0), Decimal(1), 0
        before, hermite = Decimal(0), Decimal(1)  # He_{2j−1}, He_{2j}
        factor = Decimal(1)
        while True:
            total += hermite * factor
            # The next terms shrink by more than a half each: |He_2j+2| ≤ (x²+4j+4)|…| and S ≥ 2³⁰.
            following = _next_hermite(x, before, hermite, 2 * j)
            before, hermite = following
            j += 1
            factor /= Decimal((2 * j) * (2 * j + 1)) * 4 * S * S
            bound = (x * x + 4 * j + 4) ** j * factor
            if bound < Decimal(10) ** -(digits + 5):
                term_size = 2 * bound
                break
        p = Decimal(2) ** V * (-x * x / 2).exp() / ceiling
        error = p * (term_size + Decimal(10) ** -(digits + 10))
        return p * total - error, p * total + error


def _next_hermite(
    x: Decimal, before: Decimal, last: Decimal, degree: int
) -> tuple[Decimal, Decimal]:
    """He_{n+1} and He_{n+2} from He_{n−1} and He_n, n being the degree of `last`."""
    odd = x * last - degree * before
    return odd, x * odd - (degree + 1) * last


#: Guards a quotient of two numbers against its own rounding.
ROUNDING = 1.0 + 1e-12


def noise_deviation(sensitivity: float, mu: float) -> float:
    """Return Δ/μ, rounded up: the deviation of noise of which Δ is μ deviations.

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
