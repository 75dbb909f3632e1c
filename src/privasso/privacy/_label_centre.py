"""A centre of the labels, from noisy sums."""

from __future__ import annotations

import math

import numpy as np

from privasso.privacy._integer_noise import noise_deviation, noisy_integers
from privasso.privacy._rounded_gaussian import BitSource

#: Clipped labels are integers of this many bits.
_BITS = 34
#: Sums that are released: one of all labels, the others of labels clipped around the centre so far.
STEPS = 3
#: Which part of the labels is taken not to be clipped.
_INSIDE = 0.6


def noisy_centre(
    y: np.ndarray,
    y_bounds: tuple[float, float],
    radius: float,
    mu: float,
    bits: BitSource,
    *,
    replaced: bool = False,
) -> float:
    """Return a centre c for which Σ_μ clip(y_μ − c, ±r) is near zero, from three noisy sums.

    Each is a Gaussian mechanism with the sensitivity μ/√3, so that all have μ together. The first
    one gives the mean; the others are steps of Newton's method towards the centre of the clipped
    labels, with a public guess of the slope.

    Parameters
    ----------
    y : ndarray of shape (M,)
        Labels.
    y_bounds : (float, float)
        Their bounds.
    radius : float
        r.
    mu : float
        Sensitivity of the three sums together.
    bits : BitSource
        Source of the noise.
    replaced : bool
        Whether neighbours differ in a label that was replaced. Otherwise it is left out.

    Examples
    --------
    >>> from privasso.privacy import bit_source
    >>> y = np.random.default_rng(0).exponential(1.0, 20_000)
    >>> bits = bit_source(np.random.default_rng(1))
    >>> 0.7 < noisy_centre(y, (0.0, 10.0), 0.5, 0.2, bits) < 0.95  # mean 1, median 0.69
    True
    """
    low, high = y_bounds
    half = 0.5 * high - 0.5 * low
    centre, within, slope = low + half, half, 1.0
    sensitivity = math.ldexp(2.0 if replaced else 1.0, _BITS)
    deviation = noise_deviation(sensitivity, mu / math.sqrt(STEPS) * (1.0 - 1e-15))
    for _ in range(STEPS):
        whole = clipped_integers(y, centre, within, 1 << _BITS)
        total = sum(part.sum().item() for part in np.array_split(whole, whole.size // 2**20 + 1))
        mean = noisy_integers([total], deviation, _BITS, bits)[0] / y.size
        step = min(max(float(mean) / slope, -1.0), 1.0)
        centre = min(max(centre + within * step, low), high)
        within, slope = min(radius, half), _INSIDE
    return centre


def clipped_integers(y: np.ndarray, centre: float, radius: float, largest: int) -> np.ndarray:
    """The integers nearest to clip(y − c, ±r)·largest/r, for each label by itself.

    A label that is NaN becomes zero: its record is an empty one and contributes nothing.

    Examples
    --------
    >>> clipped_integers(np.array([0.0, 1.25, 9.0, np.nan]), 1.0, 0.5, 1000).tolist()
    [-1000, 500, 1000, 0]
    """
    relative = np.clip((y - centre) / radius, -1.0, 1.0)
    return np.rint(np.where(np.isnan(relative), 0.0, relative) * largest).astype(np.int64)
