"""Label differential privacy: the covariates are public, the labels are not."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from functools import lru_cache
from typing import ClassVar, Literal

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
from privasso.privacy._label_claim import LABEL_CLAIM, ONE_ENTRY, ONE_LABEL, perturbed
from privasso.privacy._label_objective import clipped_release
from privasso.privacy._objective_claim import objective_parameters
from privasso.privacy._objective_inverse import objective_sensitivity
from privasso.privacy._perturbed_objective import ObjectiveNoise, calibrate_objective
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
#: Most entries of a table, and largest ε, for which "auto" perturbs the objective: whitened rows
#: are held in memory, and at large ε the noise does not matter.
_LARGEST_TABLE, _LARGEST_EPSILON = 1 << 28, 50.0
#: Values of t to choose from, relative to ε.
_RIDGES = (0.02, 0.05, 0.1, 0.2, 0.4)
_MECHANISMS = ("auto", "objective", "release")
#: Rows are whitened to this length at most.
_RADIUS = 1.0


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
    mechanism : {"auto", "objective", "release"}
        ``"objective"`` perturbs the objective of a regression with clipped residuals, whose noise
        is proportional to a residual. ``"release"`` adds Gaussian noise to the products of
        covariates and labels, proportional to the range of the labels. Coefficients at any λ are
        computed from either at no further cost. ``"auto"`` is ``"objective"``, except for more
        than 2^28 entries, for ε > 50, and for a noise design that is given.
    kappa : float, optional
        Of objective perturbation: the largest residual that is not clipped, as a part of the
        range of the labels. By default 0.1, and more for ε > 3: see `default_kappa`.
    t : float, optional
        Of objective perturbation: squared length of a row over the ridge. By default it is chosen
        from the covariates, see `clipped_settings`.
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
    mechanism: Literal["auto", "objective", "release"] = "auto"
    kappa: float | None = None
    t: float | None = None
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
        if self.mechanism not in _MECHANISMS:
            raise ValueError(
                f"mechanism must be one of {', '.join(_MECHANISMS)}, not {self.mechanism!r}"
            )
        for name in ("kappa", "t"):
            given = getattr(self, name)
            if given is not None:
                object.__setattr__(self, name, positive_float(name, given))
                if self.mechanism == "release":
                    raise ValueError(
                        f"{name} belongs to objective perturbation; leave it out, or choose "
                        "mechanism='objective'"
                    )
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
        from privasso.design import best_shrink, clipped_settings

        if int(rows.live.sum()) > LARGEST_SHAPE:
            return PowerLaw(1.0, 0.5)
        if self._perturbs(rows):
            if not rows.live.any():
                return Shaped(shrink=0.0)
            settings = clipped_settings(rows, self._kappa, self._sensitivities())
            return Shaped(shrink=settings.shrink)
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
        if self.mechanism == "objective":
            return self._calibrate_objective(rows, *self._unit_shape(rows, shape))
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
        from privasso.design import clipped_settings, release_shape, row_roots

        self._check_units(rows)
        if self._perturbs(rows):
            shape, t = release_shape(rows, shrink, row_roots(rows)), self.t
            if t is None and rows.live.any():
                t = clipped_settings(rows, self._kappa, self._sensitivities(), (shrink,)).t
            return self._calibrate_objective(rows, shape.covariance, shape.sigma_sum, t)
        shape, bound = release_shape(rows, shrink), self._bound
        covariance, sigma_sum = shape.covariance.scaled(bound**-2), shape.sigma_sum / bound
        weights = row_weights(rows, covariance, sigma_sum, bound)
        return Calibration(covariance, sigma_sum, self.mu, weights)

    def _calibrate_objective(
        self, rows: Covariates, covariance: Covariance, sigma_sum: float, t: float | None = None
    ) -> Calibration:
        """Scale noise under which rows have at most the size 1, and choose a ridge."""
        chosen = replace(
            self, mechanism="objective", kappa=self._kappa, t=t or self.t or 0.1 * self.epsilon
        )
        noise = chosen.objective_for(rows.shape[0])
        level = noise.sigma * (self.width / self.unit)
        covariance, sigma_sum = covariance.scaled(level**2), sigma_sum * level
        weights = chosen.weights(rows, covariance, sigma_sum)
        return Calibration(covariance, sigma_sum, None, weights, noise)

    def _unit_shape(self, rows: Covariates, shape: Covariance) -> tuple[Covariance, float]:
        """Scale a shape so that no row (√w f, √w) is larger than 1; its share as in `calibrate`."""
        weights = np.ones(rows.shape[0]) if rows.weights is None else rows.weights
        share = 1.0 / (1.0 + math.sqrt(shape.size)) if rows.centred else 0.0
        sigma_sum = math.sqrt(float(np.max(weights)) / share) if rows.centred else 0.0
        if shape.size == 0:
            return shape, sigma_sum
        self._check_units(rows)
        factor = float(np.max(weights * rows.squared_row_norms(shape))) / (1.0 - share)
        if not math.isfinite(factor * float(np.max(shape.diagonal))):
            raise ValueError(_why_infinite(rows, shape))
        return shape.scaled(factor), sigma_sum

    def settled(self, calibration: Calibration) -> LabelDP:
        """Return the privacy with the mechanism, κ and t that the calibration has decided."""
        noise = calibration.objective
        if noise is None:
            return replace(self, mechanism="release", kappa=None, t=None)
        return replace(self, mechanism="objective", kappa=noise.kappa, t=noise.t)

    def weights(
        self, rows: Covariates, covariance: Covariance, sigma_sum: float
    ) -> np.ndarray | None:
        """Weights by which the largest rows are shrunk, so that the guarantee holds.

        Those of a perturbed objective need a κ and a t that are settled.
        """
        if self.mechanism != "objective":
            return row_weights(rows, covariance, sigma_sum, self._bound)
        level = self.objective_for(rows.shape[0]).sigma * (self.width / self.unit)
        return row_weights(rows, covariance, sigma_sum, _RADIUS / level, power=2)

    def rescaled(
        self, calibration: Calibration, epsilon: float, n_rows: int
    ) -> tuple[LabelDP, Calibration]:
        """Return the privacy at another ε, and the same shape of noise at the level for it."""
        old = self.settled(calibration)
        if calibration.objective is None:
            new = replace(old, epsilon=epsilon)
            ratio, mu, noise = old.mu / new.mu, new.mu, None
        else:
            assert old.kappa is not None
            assert old.t is not None
            larger = default_kappa(epsilon) / default_kappa(old.epsilon)
            t = old.t * epsilon / old.epsilon
            new = replace(old, epsilon=epsilon, kappa=min(0.5, old.kappa * larger), t=t)
            noise = new.objective_for(n_rows)
            ratio, mu = noise.sigma / calibration.objective.sigma, None
        return new, Calibration(
            calibration.covariance.scaled(ratio**2),
            ratio * calibration.sigma_sum,
            mu,
            calibration.weights,
            noise,
        )

    def calibrated(
        self,
        covariance: Covariance,
        sigma_sum: float,
        mu: float | None,
        weights: np.ndarray | None,
        n_rows: int,
    ) -> Calibration:
        """The calibration of a release that was made with this noise under settled privacy."""
        objective = self.objective_for(n_rows) if self.mechanism == "objective" else None
        return Calibration(covariance, sigma_sum, mu, weights, objective)

    def objective_for(self, n_rows: int) -> ObjectiveNoise:
        """Noise and ridge of the perturbed objective, once κ and t are settled."""
        assert self.kappa is not None
        assert self.t is not None
        return _objective_noise(self.epsilon, self.delta, self.kappa, self.t, n_rows)

    def _perturbs(self, rows: Covariates) -> bool:
        """Whether the objective is perturbed, with noise of the best covariance for these rows."""
        if self.mechanism != "auto":
            return self.mechanism == "objective"
        entries = rows.shape[0] * (rows.shape[1] + 1)
        return entries <= _LARGEST_TABLE and self.epsilon <= _LARGEST_EPSILON

    @property
    def _kappa(self) -> float:
        return default_kappa(self.epsilon) if self.kappa is None else self.kappa

    def _sensitivities(self) -> dict[float, float]:
        """Values of t to choose from, and the c that (ε, δ) allows for each."""
        values = [part * self.epsilon for part in _RIDGES] if self.t is None else [self.t]
        return {t: 2.0 / self.objective_noise(t) for t in values}

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
        """Clip the labels and release them through the mechanism that was calibrated."""
        if calibration.objective is not None:
            settled = self.settled(calibration)
            if calibration.objective != settled.objective_for(rows.shape[0]):
                raise ValueError(
                    "the noise was calibrated for another guarantee or another number of rows; "
                    "calibrate it anew"
                )
            return clipped_release(rows, y, self.y_bounds, calibration, bits, unit=self.unit)
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
        if self.mechanism == "objective":
            noise = self.objective_for(terms.n_rows)
            numbers = objective_parameters(noise.c, noise.t, noise.shift)
            numbers |= {"kappa": noise.kappa}
            first = ("the minimiser of the perturbed objective",)
            certified = (
                "no fit ended in an error for want of a certificate; whether one does depends on "
                "the labels",
            )
        else:
            numbers, certified = {"mu": self.mu}, ()
            label_sum = ("the noisy label sum",) if terms.fit_intercept else ()
            first = ("the noisy products of covariates and labels", *label_sum)
        budget = {"delta": self.delta, "epsilon": self.epsilon}
        labels = {"n_rows": float(terms.n_rows), "y_high": high, "y_low": low}
        return Guarantee(
            kind=LABEL_CLAIM.kind,
            parameters=tuple({**budget, **numbers, **labels}.items()),
            adjacency=ONE_ENTRY,
            assumptions=(
                "the covariates are public, and neither their choice nor the settings of the fit "
                "depend on the labels",
                "the label bounds were fixed before the labels were seen",
                ONE_LABEL,
                ALONE,
                *certified,
                terms.entropy,
            ),
            released=(
                *first,
                "everything computed from "
                + ("it" if self.mechanism == "objective" else "these")
                + " and the covariates, such as coefficients at any lambda",
            ),
            seeded=terms.seeded,
        )

    def composition(self, mu: float | None) -> str:
        """Gaussian mechanisms compose exactly: squared sensitivities add up."""
        if self.mechanism == "objective":
            return (
                "Further fits on the same labels add to the loss, and a ledger keeps count of "
                "them. Solving again from the same release adds nothing."
            )
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
        given = [
            f"epsilon={self.epsilon!r}",
            f"delta={self.delta!r}",
            f"y_bounds={self.y_bounds!r}",
        ]
        given += [] if self.mechanism == "auto" else [f"mechanism={self.mechanism!r}"]
        for name in ("kappa", "t"):
            value = getattr(self, name)
            given += [] if value is None else [f"{name}={value!r}"]
        return f"LabelDP({', '.join(given)})"


def default_kappa(epsilon: float) -> float:
    """The largest residual that is not clipped, as a part of the range of the labels.

    A smaller one means less noise. But where labels are skewed, clipped residuals pull predictions
    from the mean of the labels towards their median, which costs more than noise at large ε.

    >>> default_kappa(1.0), default_kappa(12.0), default_kappa(1000.0)
    (0.1, 0.2, 0.5)
    """
    return min(0.5, 0.1 * max(1.0, math.sqrt(epsilon / 3.0)))


@lru_cache(maxsize=64)
def _objective_noise(
    epsilon: float, delta: float, kappa: float, t: float, n_rows: int
) -> ObjectiveNoise:
    return calibrate_objective(
        epsilon, delta, "labels", kappa=kappa, radius=_RADIUS, t=t, n_rows=n_rows
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
    epsilon, delta = guarantee["epsilon"], guarantee["delta"]
    bounds = guarantee["y_low"], guarantee["y_high"]
    if not perturbed(guarantee):
        return LabelDP(epsilon, delta, bounds, mechanism="release")
    kappa, t = guarantee["kappa"], guarantee["t"]
    return LabelDP(epsilon, delta, bounds, mechanism="objective", kappa=kappa, t=t)


register(replace(LABEL_CLAIM, privacy=_privacy))
