"""The exact Gaussian mechanism for bounded labels: integer sums plus rounded Gaussian noise."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace

import numpy as np

from privasso.operators import BlockCovariates, Covariates
from privasso.privacy._block_release import block_sums
from privasso.privacy._cells import bounded_labels
from privasso.privacy._integer_rows import IntegerSums, integer_sums, stays_sparse
from privasso.privacy._kind import Calibration
from privasso.privacy._release import Release
from privasso.queries import BitSource, rounded_gaussian

#: Labels are rounded to a grid of 2^26 to 2^27 steps between their bounds.
_LABEL_BITS = 27
#: Standard deviation of the integer noise, as a power of two, for sensitivities up to 1.
_NOISE_BITS = 54
#: Guards the final comparison of sensitivities against the rounding of its own few operations.
_ROUNDING = 1.0 + 1e-12
#: Rounding of the rows raises the noise by far less than this.
_LARGEST_FACTOR = 1.01


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
    low, high : int
        Images of the bounds.
    span : int or ndarray of int64
        Largest minus smallest possible ℓ, of all labels or of each: by so much can one change.
    """

    values: np.ndarray
    grid: float
    centre: float
    low: int
    high: int
    span: int | np.ndarray

    def weighted(self, weights: np.ndarray) -> IntegerLabels:
        """Return w_μ ℓ_μ rounded to integers, on a coarser grid if a weight is above 1.

        Rounding is monotone, so the images of the bounds bound the weighted labels. Each weight is
        lowered by one step of the grid first, so that rounding never makes the range of a weighted
        label larger than w_μ times the range of the labels.

        Examples
        --------
        >>> labels = IntegerLabels(np.array([-4, 4]), 0.25, 0.0, low=-4, high=4, span=8)
        >>> found = labels.weighted(np.array([1.0, 0.5]))
        >>> found.values.tolist(), found.span.tolist()  # weights 7/8 and 3/8
        ([-4, 2], [8, 4])
        """
        shift = max(0, math.ceil(math.log2(float(np.max(weights)))))
        w = np.maximum(np.ldexp(weights, -shift) - 1.0 / (self.high - self.low), 0.0)
        span = np.rint(w * self.high) - np.rint(w * self.low)
        values = np.rint(w * self.values)
        return replace(
            self,
            values=values.astype(np.int64),
            grid=math.ldexp(self.grid, shift),
            span=span.astype(np.int64),
        )


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
    first, last = (int(np.rint(math.ldexp(bound, -exponent)) - centre) for bound in (low, high))
    values = np.rint(np.ldexp(np.clip(y, low, high), -exponent)) - centre
    grid = math.ldexp(1.0, exponent)
    return IntegerLabels(
        values.astype(np.int64), grid, float(centre) * grid, first, last, last - first
    )


@dataclass(frozen=True, eq=False)
class IntegerStatistic:
    """The statistic before its noise, in integers, and the noise that it needs.

    Attributes
    ----------
    values : list of int
        T = Σ_μ k_μ ℓ_μ in whitened coordinates, and for the column of ones as last entry.
    noise_bits : int
        T is in units of 2^−noise_bits standard deviations of the calibrated noise.
    factor : float
        The noise has the deviation 2^noise_bits·factor; slightly above 1 because rows are rounded.
    mu : float
        Mahalanobis sensitivity with that noise: no label can move T by more deviations.
    centre : float
        Subtracted from the labels.
    """

    values: list[int]
    noise_bits: int
    factor: float
    mu: float
    centre: float

    @property
    def deviation(self) -> float:
        """Standard deviation of the integer noise."""
        return 2.0**self.noise_bits * self.factor


def integer_statistic(
    rows: Covariates, y: np.ndarray, bounds: tuple[float, float], calibration: Calibration
) -> IntegerStatistic:
    """Sum rows times labels in integers, and find the noise for the calibrated sensitivity.

    The label of row μ moves T by at most span_μ‖k_μ‖. Both factors are computed from the very
    integers that are summed, the second one rounded up. Where rounding of the rows made the
    sensitivity larger than the calibrated one, the noise is raised.

    Weights multiply the rows, so that no row is large in units of the noise. Only where rows stay
    sparse, and have absent entries in common, they multiply the labels.
    """
    assert calibration.mu is not None
    labels = integer_labels(y, *bounds)
    weights = calibration.weights
    if weights is not None and stays_sparse(rows, calibration.covariance):
        labels, weights = labels.weighted(weights), None
    noise_bits = _noise_bits(calibration.mu)
    exponent = noise_bits + round(math.log2(labels.grid))
    sums = integer_sums(
        rows,
        calibration.covariance,
        calibration.sigma_sum,
        labels.values,
        exponent,
        labels.span,
        weights,
    )
    return _with_noise(sums, noise_bits, calibration.mu, labels.centre)


def _noise_bits(mu: float) -> int:
    return _NOISE_BITS - max(0, math.ceil(math.log2(mu)))


def block_statistic(
    rows: BlockCovariates, bounds: tuple[float, float], calibration: Calibration, unit: float
) -> IntegerStatistic:
    """The same for blocks of rows, which hold their labels."""
    assert calibration.mu is not None
    grid = integer_labels(np.empty(0), *bounds)
    assert isinstance(grid.span, int)
    noise_bits = _noise_bits(calibration.mu)
    exponent = noise_bits + round(math.log2(grid.grid))
    sums = block_sums(rows, calibration, bounds, unit, exponent, grid.span)
    return _with_noise(sums, noise_bits, calibration.mu, grid.centre)


def _with_noise(sums: IntegerSums, noise_bits: int, mu: float, centre: float) -> IntegerStatistic:
    """The statistic with the noise for its sensitivity, which is raised where rounding asks it."""
    sensitivity = math.sqrt(sums.largest) / 2.0**noise_bits
    factor = max(1.0, sensitivity / mu) * _ROUNDING
    achieved = sensitivity / factor
    if not (math.isfinite(factor) and 0.0 <= achieved <= mu):
        raise ValueError(
            "the noise that these covariates and bounds need cannot be represented; change the "
            "units of the columns or of the labels"
        )
    if factor > _LARGEST_FACTOR:
        raise ValueError(
            "the noise was calibrated for other covariates or label bounds; calibrate it anew"
        )
    values = [*sums.products, sums.intercept]
    return IntegerStatistic(values, noise_bits, factor, achieved, centre)


def exact_release(
    rows: Covariates,
    y: np.ndarray | None,
    bounds: tuple[float, float],
    calibration: Calibration,
    bits: BitSource,
    *,
    unit: float = 1.0,
) -> Release:
    """Release Fᵀ(y − c) and the label sum with noise of the calibrated covariance.

    Rounded Gaussian noise is added to the integer statistic. Everything else, such as b in the
    units of the data, is computed from the noisy integers alone.
    """
    within = bounds[0] / unit, bounds[1] / unit
    if isinstance(rows, BlockCovariates):
        statistic = block_statistic(rows, within, calibration, unit)
    else:
        assert y is not None
        # Clipped first: a label far outside of its bounds must not overflow, which would be
        # noticed.
        scaled = bounded_labels(y, bounds) / unit
        statistic = integer_statistic(rows, scaled, within, calibration)
    noise = rounded_gaussian(statistic.deviation, len(statistic.values), bits)
    white = np.array(
        [
            math.ldexp(float(value + int(z)), -statistic.noise_bits)
            for value, z in zip(statistic.values, noise, strict=True)
        ]
    )
    covariance, sigma_sum = calibration.covariance, calibration.sigma_sum
    weights = calibration.weights
    b = np.zeros(rows.shape[1])
    b[rows.live] = covariance.colour(white[:-1])
    return Release(
        b=b,
        covariance=covariance.scaled(statistic.factor**2).embedded(rows.live),
        n_rows=rows.shape[0],
        centre=statistic.centre,
        label_sum=float(sigma_sum * white[-1]) if rows.centred else None,
        sigma_sum=sigma_sum * statistic.factor if rows.centred else None,
        mu=statistic.mu,
        weight_sum=rows.shape[0] if weights is None else float(weights.sum()),
        unit=unit,
    )
