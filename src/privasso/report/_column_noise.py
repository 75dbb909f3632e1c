"""The noise of each column. It shows the scales of the covariates, so these must be public."""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np

from privasso._blas import one_thread
from privasso.fit import Denoised, Postprocess
from privasso.noise import Covariance
from privasso.operators import Covariates

#: What is shown of numbers that each column has.
QUANTILES = {
    "smallest": 0.0,
    "lower quartile": 0.25,
    "median": 0.5,
    "upper quartile": 0.75,
    "largest": 1.0,
}
#: Supports larger than this get the noise of uncorrelated columns: the inverse is cubic in size.
_LARGEST_SUPPORT = 2000


@dataclass(frozen=True, eq=False)
class ColumnNoise:
    """Scale and noise of each column.

    - `scale` (N,): root mean square of the (centred) column, ‖F_i‖/√M.
    - `sigma` (N,): standard deviation of the noise in its entry of b; zero for a column without
      data.
    - `share` (N,): its share of the squared sensitivity, on average over the rows: ‖F_i‖²·(Σ⁻¹)_ii
      divided by the sum over the columns.
    - `in_label_units` (N,): effect of the noise of a column on a prediction: the noise of the
      coefficient of an uncorrelated column, σ_i/‖F_i‖², times its scale. Zero for a column without
      data.
    """

    scale: np.ndarray = field(repr=False)
    sigma: np.ndarray = field(repr=False)
    share: np.ndarray = field(repr=False)
    in_label_units: np.ndarray = field(repr=False)

    @property
    def live(self) -> np.ndarray:
        """Which columns have data."""
        return self.scale > 0.0

    def table(self) -> list[list[str]]:
        """A line for each number that columns have, with its `QUANTILES`."""
        lines = {
            "scale of the column": self.scale,
            "noise in its entry of Fᵀy": self.sigma,
            "effect on a prediction, label units": self.in_label_units,
        }
        return [
            [what, *(f"{x:.3g}" for x in quantiles(values[self.live]).values())]
            for what, values in lines.items()
        ]

    def in_words(self) -> str:
        """The effect of the noise on predictions, in words."""
        found = quantiles(self.in_label_units[self.live])
        return (
            "Effect of the noise of one column on a prediction, in label units: median "
            f"{found['median']:.3g}, from {found['smallest']:.3g} to {found['largest']:.3g} (for "
            "uncorrelated columns)."
        )


def quantiles(values: np.ndarray) -> dict[str, float]:
    """The `QUANTILES` of numbers, by their names."""
    return {word: float(np.quantile(values, q)) for word, q in QUANTILES.items()}


def column_noise(rows: Covariates, covariance: Covariance) -> ColumnNoise:
    """Describe the columns under noise of this covariance, which is over the live ones."""
    norms = np.sqrt(rows.squares)
    sigma, part, own = np.zeros_like(norms), np.zeros_like(norms), np.zeros_like(norms)
    sigma[rows.live] = covariance.sigma
    part[rows.live] = rows.squares[rows.live] * covariance.precisions
    own[rows.live] = covariance.sigma / norms[rows.live]
    total = part.sum()
    known = np.isfinite(total) and total > 0.0
    return ColumnNoise(
        scale=norms / np.sqrt(rows.shape[0]),
        sigma=sigma,
        share=part / total if known else np.zeros_like(part),
        in_label_units=own / np.sqrt(rows.shape[0]),
    )


def coefficient_noise(post: Postprocess | Denoised, coef: np.ndarray) -> np.ndarray:
    """Standard deviation of each non-zero coefficient due to the noise, NaN elsewhere.

    Where the LASSO ran on the best guess from the release, it is the posterior deviation of that
    guess. Otherwise, on the support S and its signs x_S = (F_SᵀF_S)⁻¹(b_S − λ sgn), so that the
    noise of b gives x_S the covariance (F_SᵀF_S)⁻¹ Σ_SS (F_SᵀF_S)⁻¹. That the support itself
    depends on the noise is ignored. If the support is too large or collinear, the result is
    σ_i/‖F_i‖².
    """
    noise = np.full(coef.size, np.nan)
    support = np.flatnonzero(coef)
    if isinstance(post, Denoised):
        deviation = np.zeros(coef.size)
        deviation[post.rows.live] = post.guess.deviation
        noise[support] = deviation[support]
        return noise
    if support.size == 0 or post.op is None:
        return noise
    position = np.cumsum(post.rows.live) - 1
    covariance = post.covariance.restricted(position[support])
    noise[support] = covariance.sigma / post.rows.squares[support]
    if support.size <= _LARGEST_SUPPORT:
        with one_thread():
            found = post.gram_and_inverse(position[support])
        if found is not None:
            noise[support] = np.sqrt(covariance.propagated(found[1]))
    return noise
