"""Label differential privacy: the covariates are public, the labels are not."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from typing import ClassVar

import numpy as np

from privasso._validation import label_bounds, positive_float, probability
from privasso.model import Model
from privasso.noise import Covariance, Noise, NoiseDesign, PowerLaw, Shaped
from privasso.operators import Covariates
from privasso.privacy._composition import ALONE
from privasso.privacy._exact_release import exact_release
from privasso.privacy._gaussian import sensitivity_for
from privasso.privacy._guarantee import Guarantee, register
from privasso.privacy._kind import Calibration, ReleasesProducts, Terms, register_kind
from privasso.privacy._label_claim import LABEL_CLAIM, ONE_ENTRY, ONE_LABEL
from privasso.privacy._objective_inverse import objective_sensitivity
from privasso.privacy._release import Release
from privasso.privacy._rounded_gaussian import BitSource
from privasso.privacy._row_weights import row_weights
from privasso.scales import Empirical

NEIGHBOURS = "replace-one-label"
#: Most columns for which the noise has a full covariance by default.
LARGEST_SHAPE = 2048
#: Widths of the label bounds up to 2^±_ORDINARY need no unit of their own.
_ORDINARY = 200
#: Coefficients of this size have lost digits to underflow.
_SMALLEST_EFFECT = 1e-290
#: Guards the calibrated sensitivity against the rounding of its own computation.
_ROUNDING = 1.0 + 1e-12


@register_kind
@dataclass(frozen=True)
class LabelDP(ReleasesProducts):
    """(ε, δ)-differential privacy of the labels, given public covariates F.

    For any two label vectors that differ in one entry, and any set of outputs A,
    P(A | y) ≤ e^ε P(A | y') + δ. Labels are clipped to `y_bounds`, which must be chosen before
    looking at the labels.

    Parameters
    ----------
    epsilon : float
        ε > 0.
    delta : float
        δ in (0, 1), well below one over the number of rows.
    y_bounds : (float, float)
        Smallest and largest label; values outside are clipped without notice, since a count of
        them would itself depend on the labels.
    neighbours : str
        The relation between neighbouring data sets; only ``"replace-one-label"``.

    Examples
    --------
    >>> from privasso import LabelDP
    >>> privacy = LabelDP(epsilon=1.0, delta=1e-6, y_bounds=(0, 10))
    >>> privacy
    LabelDP(epsilon=1.0, delta=1e-06, y_bounds=(0.0, 10.0))
    >>> round(privacy.mu, 4)
    0.2367
    """

    epsilon: float
    delta: float
    y_bounds: tuple[float, float]
    neighbours: str = NEIGHBOURS

    formal: ClassVar[bool] = True
    public_covariates: ClassVar[bool] = True
    covers_release: ClassVar[bool] = True
    automatic_lam: ClassVar[bool] = True
    compared_at: ClassVar[str] = "guarantee"

    def __post_init__(self) -> None:
        object.__setattr__(self, "epsilon", positive_float("epsilon", self.epsilon))
        object.__setattr__(self, "delta", probability("delta", self.delta))
        object.__setattr__(self, "y_bounds", label_bounds(self.y_bounds))
        if self.neighbours != NEIGHBOURS:
            raise ValueError(
                f"neighbours must be {NEIGHBOURS!r}, the only relation under which the covariates "
                f"may be used freely, not {self.neighbours!r}"
            )

    @property
    def mu(self) -> float:
        """The largest Mahalanobis sensitivity that (ε, δ) allows."""
        return sensitivity_for(self.epsilon, self.delta)

    def objective_noise(self, t: float) -> float:
        """Return σ/(κR) of objective perturbation with residuals clipped at κ and a ridge R²/t."""
        return 2.0 / objective_sensitivity(self.epsilon, self.delta, t, "labels")

    @property
    def width(self) -> float:
        """High minus low."""
        return self.y_bounds[1] - self.y_bounds[0]

    @property
    def unit(self) -> float:
        """The power of two in which labels are measured: 1 unless the bounds are extreme."""
        exponent = math.frexp(self.width)[1]
        return 1.0 if abs(exponent) <= _ORDINARY else math.ldexp(1.0, exponent)

    @property
    def centre(self) -> float:
        """The middle of the bounds."""
        return self.y_bounds[0] + 0.5 * self.width

    @property
    def label_width(self) -> float:
        """The same as `width`."""
        return self.width

    def default_noise(self, rows: Covariates) -> Noise:
        """The best covariance for the rows; with very many columns σ² ∝ √v, the best diagonal one.

        The best covariance has a dense root, whose size and cost grow with the square and the cube
        of the number of columns. Rows are shrunk where that is expected to pay.
        """
        from privasso.design import best_shrink

        if int(rows.live.sum()) > LARGEST_SHAPE:
            return PowerLaw(1.0, 0.5)
        deviation = self.label_deviation
        assert deviation is not None
        return Shaped(shrink=best_shrink(rows, self._bound, deviation / self.unit))

    def optimal_noise(self, model: Model, lam: float | None, rows: Covariates) -> NoiseDesign:
        """Return the power of v with the least predicted error at this budget.

        The prediction takes the number of rows and the scales of the columns from the covariates,
        which are public, and ρ and σ_ξ from the model; λ is optimised too where `lam` is None.

        Examples
        --------
        >>> import numpy as np, privasso as pv
        >>> rows = pv.operators.Covariates(np.random.default_rng(0).random((500, 9)), centre=True)
        >>> privacy = pv.LabelDP(epsilon=1.0, delta=1e-6, y_bounds=(0, 1))
        >>> 0.3 < privacy.optimal_noise(pv.Model(), None, rows).gamma < 1.0
        True
        """
        from privasso.design import optimal_design

        n, m = int(rows.live.sum()), rows.shape[0]
        if n == 0:
            return PowerLaw(1.0, 0.5)
        scales = Empirical(np.sqrt(rows.squares[rows.live] * (n / m)))
        data = replace(model, alpha=m / n, scales=scales)
        return optimal_design(data, label_dp=self, lam=lam, n_features=n).noise

    def calibrate(self, rows: Covariates, shape: Covariance, v: np.ndarray) -> Calibration:
        """Scale the noise Σ so that (hi − lo)·max_μ ‖f_μ‖_{Σ⁻¹} = μ(ε, δ).

        The maximum is taken over the rows of F exactly. With an intercept the rows are
        (f_μ − mean, 1): of the squared sensitivity the label sum takes the share 1/(1+√N), which
        costs the coefficients a factor 1 + 1/√N in variance whatever the units of F are.
        """
        largest_weight = 1.0 if rows.weights is None else float(np.max(rows.weights))
        budget = self._bound**2
        share = 1.0 / (1.0 + math.sqrt(shape.size)) if rows.centred else 0.0
        sigma_sum = largest_weight / math.sqrt(share * budget) if rows.centred else 0.0
        if shape.size == 0:
            return Calibration(shape, sigma_sum, self.mu, rows.weights)
        self._check_units(rows)
        squares = rows.squared_row_norms(shape)
        largest = float(np.max(squares if rows.weights is None else rows.weights**2 * squares))
        factor = largest / ((1.0 - share) * budget)
        if not math.isfinite(factor * float(np.max(shape.diagonal))):
            raise ValueError(_why_infinite(rows, shape))
        return Calibration(shape.scaled(factor), sigma_sum, self.mu, rows.weights)

    def calibrate_shaped(self, rows: Covariates, shrink: float) -> Calibration:
        """Noise of the best covariance, at the level where no row has a size above the bound.

        Rows that would exceed it are shrunk, see `row_weights`.
        """
        from privasso.design import release_shape

        self._check_units(rows)
        shape, bound = release_shape(rows, shrink), self._bound
        covariance, sigma_sum = shape.covariance.scaled(bound**-2), shape.sigma_sum / bound
        return Calibration(
            covariance, sigma_sum, self.mu, self.weights(rows, covariance, sigma_sum)
        )

    def weights(
        self, rows: Covariates, covariance: Covariance, sigma_sum: float
    ) -> np.ndarray | None:
        """Weights by which the largest rows are shrunk, so that the guarantee holds."""
        return row_weights(rows, covariance, sigma_sum, self._bound)

    @property
    def _bound(self) -> float:
        """Largest size of a row in units of the noise: labels have the range width/unit."""
        return self.mu / (self.width / self.unit) / _ROUNDING

    def _check_units(self, rows: Covariates) -> None:
        """Refuse units in which coefficients are no floating-point numbers."""
        with np.errstate(over="ignore", under="ignore"):
            effects = self.width / np.sqrt(rows.squares[rows.live] / rows.total)
        if not np.all(np.isfinite(effects) & (effects > _SMALLEST_EFFECT)):
            raise ValueError(
                "coefficients of labels with these bounds on these columns are beyond the range "
                "of floating-point numbers; change the units of the labels or of the columns"
            )

    def release(
        self, rows: Covariates, y: np.ndarray, calibration: Calibration, bits: BitSource
    ) -> Release:
        """Clip the labels and release them through the exact Gaussian mechanism."""
        if calibration.mu is None or calibration.mu > self.mu:
            raise ValueError(
                "the noise was calibrated for a weaker guarantee than this one; calibrate it anew"
            )
        return exact_release(rows, y, self.y_bounds, calibration, bits, unit=self.unit)

    def guarantee(self, terms: Terms) -> Guarantee:
        """State label differential privacy of a release and of all that is computed from it.

        Examples
        --------
        >>> import privasso as pv
        >>> from privasso.privacy import Terms
        >>> privacy = pv.LabelDP(1.0, 1e-6, y_bounds=(0, 1))
        >>> privacy.guarantee(Terms(fit_intercept=True, seeded=False, n_rows=100))["epsilon"]
        1.0
        """
        low, high = self.y_bounds
        label_sum = ("the noisy label sum",) if terms.fit_intercept else ()
        return Guarantee(
            kind=LABEL_CLAIM.kind,
            parameters=(
                ("delta", self.delta),
                ("epsilon", self.epsilon),
                ("mu", self.mu),
                ("n_rows", terms.n_rows),
                ("y_high", high),
                ("y_low", low),
            ),
            adjacency=ONE_ENTRY,
            assumptions=(
                "the covariates are public, and neither their choice nor the settings of the fit "
                "depend on the labels",
                "the label bounds were fixed before the labels were seen",
                ONE_LABEL,
                ALONE,
                terms.entropy,
            ),
            released=(
                "the noisy products of covariates and labels",
                *label_sum,
                "everything computed from these and the covariates, such as coefficients at any "
                "lambda",
            ),
            seeded=terms.seeded,
        )

    def composition(self, mu: float | None) -> str:
        """Gaussian mechanisms compose exactly: squared sensitivities add up."""
        here = "" if mu is None else f", here √k · {mu:.4g}"
        return (
            "Further fits on the same labels add to the loss: k releases like this one together "
            f"are a Gaussian mechanism of sensitivity √k · μ{here}. Solving again from the same "
            "release adds nothing."
        )

    def after_failure(self, kept: str) -> str:
        """The release is paid for and kept."""
        return (
            f"The privacy budget of this fit is spent, but nothing is lost: the release is kept "
            f"{kept}."
        )

    def __repr__(self) -> str:
        return (
            f"LabelDP(epsilon={self.epsilon!r}, delta={self.delta!r}, y_bounds={self.y_bounds!r})"
        )


def _why_infinite(rows: Covariates, shape: Covariance) -> str:
    silent = ~(shape.diagonal > 0.0)
    if silent.any():
        column = int(np.flatnonzero(rows.live)[np.flatnonzero(silent)[0]])
        return (
            f"the noise design gives column {column} no noise although it has non-zero entries, so "
            "no level of noise protects the labels; drop the column, or choose a design or scales "
            "that give every column noise"
        )
    return (
        "the noise that this design needs exceeds the largest float; choose a design that gives "
        "small columns more of it, such as PowerLaw(1.0, gamma=0.5)"
    )


def _privacy(guarantee: Guarantee) -> LabelDP:
    bounds = guarantee["y_low"], guarantee["y_high"]
    return LabelDP(guarantee["epsilon"], guarantee["delta"], bounds)


register(replace(LABEL_CLAIM, privacy=_privacy))
