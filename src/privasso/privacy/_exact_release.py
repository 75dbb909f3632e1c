"""The exact Gaussian mechanism for bounded labels: integer sums plus rounded Gaussian noise."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from privasso.operators import Covariates
from privasso.privacy._integer_rows import integer_sums
from privasso.privacy._kind import Calibration
from privasso.privacy._release import Release
from privasso.privacy._rounded_gaussian import BitSource, rounded_gaussian

#: Labels are rounded to a grid of 2^26 to 2^27 steps between their bounds.
_LABEL_BITS = 27
#: Standard deviation of the integer noise, as a power of two, for sensitivities up to 1.
_NOISE_BITS = 54
#: Guards the final comparison of sensitivities against the rounding of its own few operations.
_ROUNDING = 1.0 + 1e-12


@dataclass(frozen=True, eq=False)
class IntegerLabels:
    """Labels as integers ℓ with y ≈ centre + grid·ℓ.

    Attributes
    ----------
    values : ndarray of int64
        ℓ, between the images of the bounds.
    grid : float
        A power of two.
    centre : float
        A multiple of the grid.
    span : int
        Largest minus smallest possible ℓ: by so much can one label change.
    """

    values: np.ndarray
    grid: float
    centre: float
    span: int


def integer_labels(y: np.ndarray, low: float, high: float) -> IntegerLabels:
    """Clip labels to their bounds and round them to a grid of powers of two.

    Rounding is monotone, so every label lies between the rounded bounds.

    Examples
    --------
    >>> labels = integer_labels(np.array([0.0, 0.25, 7.0]), 0.0, 1.0)
    >>> labels.values.tolist(), labels.span, labels.centre
    ([-33554432, -16777216, 33554432], 67108864, 0.5)
    """
    exponent = math.frexp(high - low)[1] - _LABEL_BITS
    centre = np.rint(math.ldexp(low / 2.0 + high / 2.0, -exponent))
    bounds = [int(np.rint(math.ldexp(bound, -exponent)) - centre) for bound in (low, high)]
    values = np.rint(np.ldexp(np.clip(y, low, high), -exponent)) - centre
    grid = math.ldexp(1.0, exponent)
    return IntegerLabels(values.astype(np.int64), grid, float(centre) * grid, bounds[1] - bounds[0])


def exact_release(
    rows: Covariates,
    y: np.ndarray,
    bounds: tuple[float, float],
    calibration: Calibration,
    bits: BitSource,
    *,
    unit: float = 1.0,
) -> Release:
    """Release Fᵀ(y − c) and the label sum with noise of the calibrated covariance.

    With integer rows k_μ and labels ℓ_μ the statistic T = Σ k_μ ℓ_μ is an integer vector, and one
    label moves it by at most span·max‖k_μ‖. Rounded Gaussian noise of deviation S is added, and the
    Mahalanobis sensitivity span·max‖k_μ‖/S is computed from these very integers. Where rounding of
    the rows made it larger than the calibrated one, S is raised. Everything else, such as b in the
    units of the data, is computed from the noisy integers.
    """
    assert calibration.mu is not None
    mu, covariance = calibration.mu, calibration.covariance
    labels = integer_labels(y / unit, bounds[0] / unit, bounds[1] / unit)
    noise_bits = _NOISE_BITS - max(0, math.ceil(math.log2(mu)))
    exponent = noise_bits + round(math.log2(labels.grid))
    sums = integer_sums(rows, covariance, calibration.sigma_sum, labels.values, exponent)
    deviation = 2.0**noise_bits
    sensitivity = labels.span * math.sqrt(sums.largest) / deviation
    factor = max(1.0, sensitivity / mu) * _ROUNDING
    achieved = sensitivity / factor
    if not (math.isfinite(factor) and 0.0 < achieved <= mu):
        raise ValueError(
            "the noise that these covariates and bounds need cannot be represented; change the "
            "units of the columns or of the labels"
        )
    noise = rounded_gaussian(deviation * factor, covariance.size + 1, bits)
    noisy = [total + int(z) for total, z in zip(sums.products, noise[:-1], strict=True)]
    white = np.array([math.ldexp(float(k), -noise_bits) for k in noisy], dtype=np.float64)
    b = np.zeros(rows.shape[1])
    b[rows.live] = covariance.colour(white)
    label_sum = sigma_sum = None
    if rows.centred:
        sigma_sum = calibration.sigma_sum * factor
        total = math.ldexp(float(sums.intercept + int(noise[-1])), -noise_bits)
        label_sum = calibration.sigma_sum * total
    return Release(
        b=b,
        covariance=covariance.scaled(factor * factor).embedded(rows.live),
        n_rows=rows.shape[0],
        centre=labels.centre,
        label_sum=label_sum,
        sigma_sum=sigma_sum,
        mu=achieved,
        unit=unit,
    )
