"""Label differential privacy: the covariates are public, the labels are not."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import ClassVar, Literal

import numpy as np

from privasso._validation import check_coded, label_bounds, positive_float, probability, squarable
from privasso.accounting import GaussianLoss, Loss, sensitivity_for
from privasso.design import PrincipalComponents, ScreenedDesign, Sparse
from privasso.model import Model
from privasso.noise import Covariance, Noise, NoiseDesign, PowerLaw, Shaped
from privasso.operators import BlockCovariates, Covariates
from privasso.privacy._calibration import calibrate_objective
from privasso.privacy._component_settings import component_screening
from privasso.privacy._estimate import widest_bounds
from privasso.privacy._guarantee import Guarantee
from privasso.privacy._kind import (
    Calibration,
    ReleasesProducts,
    Terms,
    check_relation,
    register_kind,
    stated,
)
from privasso.privacy._label_level import Level, check_level
from privasso.privacy._label_mechanism import LabelBudget, LabelMechanism
from privasso.privacy._label_objective import LabelObjective
from privasso.privacy._label_products import LabelProducts
from privasso.privacy._label_settings import default_kappa
from privasso.privacy._record_rows import PerturbedObjective
from privasso.privacy._record_settings import usual_lam, usual_row, usual_t
from privasso.privacy._release import Release
from privasso.privacy._screen import Screen, screening_settings
from privasso.privacy._screened_labels import ScreenedLabels, budget_of_fit, label_screening
from privasso.privacy._screening_design import best_screening
from privasso.problem import Clipped
from privasso.queries import Ask, Neighbours, Relation
from privasso.scales import Empirical

#: Most columns for which the noise has a full covariance by default.
LARGEST_SHAPE = 2048
#: Most entries of a table, and largest ε, for which "auto" perturbs the objective: whitened rows
#: are held in memory, and at large ε the noise does not matter.
_LARGEST_TABLE, _LARGEST_EPSILON = 1 << 28, 50.0
#: Widths of the label bounds up to 2^±_ORDINARY need no unit of their own.
_ORDINARY = 200
_MECHANISMS = ("auto", "objective", "release")


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
        them would itself depend on the labels. A missing label (NaN) counts as the middle.
    mechanism : {"auto", "objective", "release"}
        ``"objective"`` perturbs the objective of a regression with clipped residuals, whose noise
        is proportional to a residual. ``"release"`` adds Gaussian noise to the products of
        covariates and labels, proportional to the range of the labels. Coefficients at any λ are
        computed from either at no further cost. ``"auto"`` is ``"objective"``, except for more
        than 2^28 entries, for ε > 50, and for a noise design that is given.
    kappa : float, optional
        Of objective perturbation: the largest residual that is not clipped, as a part of the
        range of the labels. By default 0.1, and 0.1·√(ε/3) for ε > 3, at most 0.5.
    t : float, optional
        Of objective perturbation: squared length of a row over the ridge. By default it is chosen
        from the covariates, see `clipped_settings`.
    level : bool, optional
        Of objective perturbation: whether a noisy mean of the labels corrects the intercept.
        Clipped residuals have their median at zero, and the mean differs where labels are skewed,
        or are zeros and ones. It takes a hundredth of the squared sensitivity that the budget
        allows. By default it is done where the budget and the number of rows leave so little
        noise in the mean that it helps, and no row has a weight of its own; see `direct_level`.
    neighbours : {"replaced", "emptied"}
        Whether one label becomes any other one, or is emptied: a record without a label then
        contributes nothing. That takes about half of the noise for the same ε and δ.

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
    level: bool | None = None
    neighbours: Relation = "replaced"

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
        check_level(self.level)
        for name in ("kappa", "t", "level"):
            given = getattr(self, name)
            if given is not None:
                if name != "level":
                    object.__setattr__(self, name, squarable(name, positive_float(name, given)))
                if self.mechanism == "release":
                    raise ValueError(
                        f"{name} belongs to objective perturbation; leave it out, or choose "
                        "mechanism='objective'"
                    )
        check_relation(self.neighbours)

    @property
    def pair(self) -> Neighbours:
        """How data sets differ."""
        return Neighbours("label", self.neighbours)

    @property
    def budget(self) -> LabelBudget:
        """What mechanisms need to know."""
        return LabelBudget(self.epsilon, self.delta, self.y_bounds, self.unit, self.pair)

    @property
    def mu(self) -> float:
        """The largest Mahalanobis sensitivity that (ε, δ) allows."""
        return sensitivity_for(self.epsilon, self.delta)

    def objective_noise(self, t: float) -> float:
        """Return σ/(κR) of objective perturbation with residuals clipped at κ and a ridge R²/t."""
        return 2.0 / self.budget.label_sensitivity(t)

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
        if int(rows.live.sum()) > LARGEST_SHAPE:
            return PowerLaw(1.0, 0.5)
        if isinstance(rows, BlockCovariates):
            return Shaped(shrink=0.0)
        return Shaped(shrink=self._for_shaped(rows).shrink(rows))

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
        """Scale noise of a given shape; see `LabelProducts` and `LabelObjective`.

        A design that is given asks for Gaussian noise of exactly that shape, so that products are
        released unless the objective is to be perturbed by name.
        """
        return self._mechanism.calibrate(rows, shape)

    def calibrate_shaped(self, rows: Covariates, shrink: float) -> Calibration:
        """Noise of the best covariance, at the level where no row has a size above the bound.

        Rows that would exceed it are shrunk, see `row_weights`.
        """
        if isinstance(rows, BlockCovariates) and shrink > 0.0:
            raise ValueError(
                "rows in blocks are not shrunk; leave noise out, or choose Shaped(shrink=0.0) or a "
                "design such as PowerLaw(1.0, gamma=0.5)"
            )
        return self._for_shaped(rows).calibrate_shaped(rows, shrink)

    def for_classes(self) -> LabelDP:
        """Release products: the logistic loss depends on the labels through them alone.

        So nothing is gained by perturbing its objective, which needs the same Gaussian noise.
        """
        check_coded(self.y_bounds)
        if self.mechanism == "objective":
            raise ValueError(
                "mechanism='objective' is for linear models: a perturbed logistic regression needs "
                "the same noise as the release of products, which serves every λ; leave mechanism "
                "out"
            )
        return replace(self, mechanism="release")

    def settled(self, calibration: Calibration) -> LabelDP:
        """Return the privacy with the mechanism, κ and t that the calibration has decided."""
        noise = calibration.objective
        if noise is None:
            return replace(self, mechanism="release", kappa=None, t=None, level=None)
        level = noise.mu > 0.0
        return replace(self, mechanism="objective", kappa=noise.kappa, t=noise.t, level=level)

    def rescaled(
        self, calibration: Calibration, epsilon: float, n_rows: int
    ) -> tuple[LabelDP, Calibration]:
        """Return the privacy at another ε, and the same shape of noise at the level for it."""
        changed = self.settled(calibration)._mechanism.rescaled(calibration, epsilon, n_rows)
        return replace(self, epsilon=epsilon).settled(changed), changed

    def calibrated(
        self,
        covariance: Covariance,
        sigma_sum: float,
        mu: float | None,
        weights: np.ndarray | None,
        n_rows: int,
    ) -> Calibration:
        """The calibration of a release that was made with this noise under settled privacy."""
        mechanism = self._mechanism
        noise = mechanism.noise(n_rows) if isinstance(mechanism, LabelObjective) else None
        return Calibration(covariance, sigma_sum, mu, weights, noise)

    def weights(
        self, rows: Covariates, covariance: Covariance, sigma_sum: float
    ) -> np.ndarray | None:
        """Weights by which the largest rows are shrunk, so that the guarantee holds."""
        return self._mechanism.weights(rows, covariance, sigma_sum)

    def program(self, rows: Covariates, calibration: Calibration) -> Callable[[Ask], Release]:
        """That of the mechanism which was calibrated."""
        return self.settled(calibration)._mechanism.program(rows, calibration)

    def _for_shaped(self, rows: Covariates) -> LabelMechanism:
        """The mechanism with noise of the best covariance for these rows."""
        if isinstance(rows, BlockCovariates):
            enough = rows.shape[0] > rows.shape[1]
            if self.mechanism == "auto" and enough and self.epsilon <= _LARGEST_EPSILON:
                return replace(self, mechanism="objective")._mechanism
            return self._mechanism
        entries = rows.shape[0] * (rows.shape[1] + 1)
        small = entries <= _LARGEST_TABLE and self.epsilon <= _LARGEST_EPSILON
        if self.mechanism == "auto" and small:
            return replace(self, mechanism="objective")._mechanism
        return self._mechanism

    @property
    def _mechanism(self) -> LabelMechanism:
        """The mechanism by name; products are released where it is still open."""
        budget = self.budget
        if self.mechanism != "objective":
            return LabelProducts(budget)
        kappa = default_kappa(self.epsilon) if self.kappa is None else self.kappa
        return LabelObjective(budget, kappa, self.t, self.level)

    def guarantee(
        self, terms: Terms, losses: Sequence[Loss] | None = None, released: Sequence[str] = ()
    ) -> Guarantee:
        """State label differential privacy of what was asked, and of all that follows from it.

        By default it is stated for one Gaussian mechanism that has the whole budget.

        Examples
        --------
        >>> import privasso as pv
        >>> from privasso.privacy import Terms
        >>> privacy = pv.LabelDP(1.0, 1e-6, y_bounds=(0, 1))
        >>> privacy.guarantee(Terms(fit_intercept=True, seeded=False, n_rows=100))["epsilon"]
        1.0
        """
        losses = [GaussianLoss(self.mu)] if losses is None else losses
        assumptions = (
            "the covariates are public, and neither their choice nor the settings of the fit "
            "depend on the labels",
            "the label bounds were fixed before the labels were seen",
        )
        return stated(self, self.pair, terms, losses, assumptions, released)

    def objective(self, rows: Covariates, loss: Clipped) -> PerturbedObjective:
        """Noise, ridge and scaling for a fit at one λ, from covariates, which are public.

        Columns are measured from their means, in units of their deviations.
        """
        if self.mechanism == "release" or self.level:
            raise ValueError(
                f"{loss.about} cannot be found from noisy products or corrected by a mean; leave "
                "mechanism and level out"
            )
        n, intercept = rows.shape[1], rows.centred
        usual = loss.suited(default_kappa(self.epsilon))
        noise = calibrate_objective(
            self.epsilon,
            self.delta,
            self.pair,
            loss=usual if self.kappa is None else loss.clipped(self.kappa),
            radius=usual_row(n + intercept, standard=True),
            t=usual_t(self.epsilon) if self.t is None else self.t,
            n_rows=rows.shape[0],
        )
        scale = np.where(rows.live, np.sqrt(rows.squares / rows.total), 0.0)
        lam = usual_lam(rows.shape[0], self.width)
        bounds, scaling = widest_bounds(n), (rows.mean, scale)
        return PerturbedObjective(noise, bounds, self.y_bounds, intercept, lam, scaling)

    def screened(
        self,
        n_rows: int,
        n_columns: int,
        *,
        fit_intercept: bool,
        screen: Screen,
        components: PrincipalComponents | None = None,
    ) -> ScreenedLabels | None:
        """The choice of columns and the privacy of the fit of these; None where all are fitted.

        Both are decided from the size of the table and, where they are given, from the principal
        components of the covariates, some of which are then fitted beside the chosen columns.
        """
        if self.mechanism == "release":
            raise ValueError("screen needs mechanism='objective'; leave mechanism or screen out")
        if components is None:
            settings = screening_settings(
                self.epsilon, self.delta, n_rows, n_columns, screen, neighbours=self.pair
            )
        else:
            settings = component_screening(
                self.epsilon, self.delta, components, n_columns, neighbours=self.pair
            )
        if settings is None:
            return None
        epsilon, kappa, t = budget_of_fit(settings, n_rows, self.kappa, self.t)
        given = {"level": False, "neighbours": self.neighbours}
        fit = LabelDP(epsilon, self.delta, self.y_bounds, "objective", kappa, t, **given)
        level = Level(settings.mu_level, self.width, neighbours=self.pair)
        screening = label_screening(settings, self.y_bounds)
        return ScreenedLabels(screening, fit, n_columns, level, settings)

    def screened_design(self, table: Sparse, screen: Screen) -> ScreenedDesign:
        """The choice of columns with the largest predicted R² for a table of a model."""
        return best_screening(self.epsilon, self.delta, self.pair, table, screen, self.width)

    def composition(self, mu: float | None) -> str:
        """How several releases add up depends on the mechanism."""
        return self._mechanism.composition(mu)

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
        for name in ("kappa", "t", "level"):
            value = getattr(self, name)
            given += [] if value is None else [f"{name}={value!r}"]
        given += [] if self.neighbours == "replaced" else [f"neighbours={self.neighbours!r}"]
        return f"LabelDP({', '.join(given)})"
