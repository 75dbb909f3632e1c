"""Differential privacy of whole records: covariates and labels are protected."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any, ClassVar, Literal, TypeAlias, get_args

import numpy as np

from privasso._validation import label_bounds, positive_float, probability, real_array, squarable
from privasso.accounting import GaussianLoss, Loss, sensitivity_beside, sensitivity_for
from privasso.design import ScreenedDesign, Sparse
from privasso.privacy._calibration import calibrate_objective, check_budget
from privasso.privacy._column_bounds import PRIVATE, bounds_of_columns, checked_bounds
from privasso.privacy._estimate import Estimate, widest_bounds
from privasso.privacy._guarantee import PREPARED, Guarantee
from privasso.privacy._kind import Privacy, Terms, check_relation, register_kind, stated
from privasso.privacy._label_level import Level, check_level, direct_level
from privasso.privacy._record_logistic import (
    PerturbedLogistic,
    check_binary,
    logistic_objective,
)
from privasso.privacy._record_rows import PerturbedObjective
from privasso.privacy._record_screening import screened_objective
from privasso.privacy._record_settings import (
    check_units,
    longest_row,
    usual_kappa,
    usual_lam,
    usual_row,
    usual_t,
)
from privasso.privacy._record_statistics import StatisticsMechanism
from privasso.privacy._screen import Screen, screening_settings
from privasso.privacy._screened_objective import ScreenedObjective
from privasso.privacy._screening_design import best_screening
from privasso.privacy._shaped_objective import ShapedObjective
from privasso.problem import Clipped, Huber
from privasso.queries import Neighbours, ObjectiveNoise, Relation

Mechanism: TypeAlias = Literal["objective", "statistics", "auto"]
#: What is released before the fit.
_BEFORE = (
    "noisy counts of the magnitudes of the columns",
    "noisy sums of the columns",
    "noisy sums of products of covariates and labels",
)
_HUBER = Huber()
#: Statistics are released by "auto" if they are predicted to lose no more R².
_LARGEST_LOSS = 0.01


@register_kind
@dataclass(frozen=True)
class RecordDP(Privacy):
    """(ε, δ)-differential privacy of whole records, by objective perturbation.

    Two data sets are neighbours if one is the other with one record replaced by an empty one,
    which contributes nothing, or by any other one; the number of rows is public. For such data sets
    D, D' and any set of outputs A, P(A | D) ≤ e^ε P(A | D') + δ. Only the coefficients at one λ are
    released, and a fit at another λ is another release.

    Parameters
    ----------
    epsilon : float
        ε > 0.
    delta : float
        δ in (0, 1), well below one over the number of rows.
    bounds : array_like of shape (N, 2), mapping of column names to (low, high), or "private"
        Smallest and largest value of each column; one pair (low, high) is for all columns. They
        must come from public knowledge, such as a data dictionary, not from the data.
        Values outside are clipped without notice, and a missing one (NaN) counts as the middle.
        With ``"private"``, ranges are found in the data with noise, at a share of the budget; a
        column whose range is lost in the noise has no coefficient.
    y_bounds : (float, float)
        Smallest and largest label, likewise. A record whose label is missing is an empty one.
    kappa : float, optional
        The largest residual that is not clipped, as a part of the range of the labels, after rows
        were shrunk with their labels. The noise grows with it. By default 0.05, and more where
        ε times the number of rows per column is above 100.
    t : float, optional
        Squared length of a row over the ridge: a larger one is a smaller ridge and more noise. By
        default 0.19·(e^ε − 1) up to ε = 1, and in proportion to ε^(4/3) beyond; for
        `PrivateLogisticLasso` half of that, and more where rows are many.
    scales : "private", optional
        Find ranges, centres and scales of the columns in the data with noise, within the bounds,
        at a share of the budget. It pays where bounds may be far too wide and rows are many.
    shape : "private" or array_like of shape (K, N), optional
        Let noise and ridge follow the correlations of the columns: those of public rows of the
        same columns, which cost nothing, or those of the data with noise, at a share of the budget,
        which also gives standard errors. It helps where columns are strongly correlated.
    share : float
        Part of the budget for what is found in the data before the fit: the squared sensitivity of
        these releases relative to that of a Gaussian mechanism with the whole budget. Nothing is
        spent unless something is ``"private"``.
    mechanism : {"objective", "statistics", "auto"}
        Release the minimiser of a perturbed objective, or noisy sums of products of covariates and
        labels, from which any λ is solved at no further cost. The sums need many more rows.
        ``"auto"`` takes them where the loss of R² that is predicted from the numbers of rows and
        columns and the budget is below 0.01.
    level : bool, optional
        Whether a noisy mean of the residuals corrects the intercept of a perturbed fit. Clipped
        residuals have their median at zero, and the mean differs where labels are skewed, or are
        zeros and ones. It takes a hundredth of the squared sensitivity that the budget allows. By
        default it is done where the budget and the number of rows leave so little noise in the
        mean that it helps; see `direct_level`.
    neighbours : {"emptied", "replaced"}
        Whether one record is emptied, or becomes any other one, which takes more noise for the
        same ε and δ.

    Examples
    --------
    >>> import numpy as np, privasso as pv
    >>> rng = np.random.default_rng(0)
    >>> X = rng.uniform(0, 1, (2000, 3)) * [1.0, 10.0, 1000.0]
    >>> y = 0.5 * X[:, 0] + 0.03 * X[:, 1] + 0.05 * rng.standard_normal(2000)
    >>> privacy = pv.RecordDP(1.0, 1e-6, bounds=[(0, 1), (0, 10), (0, 1000)], y_bounds=(0, 1))
    >>> est = pv.PrivateLasso(privacy=privacy, random_state=0).fit(X, y)
    >>> est.score(X, y) > 0.8, est.guarantee_.kind
    (True, 'record-dp')
    """

    epsilon: float
    delta: float
    bounds: Any = field(default=None, repr=False)
    y_bounds: tuple[float, float] = (0.0, 0.0)
    kappa: float | None = None
    t: float | None = None
    scales: Literal["private"] | None = None
    shape: Any = field(default=None, repr=False)
    share: float = 0.2
    mechanism: Mechanism = "objective"
    level: bool | None = None
    neighbours: Relation = "emptied"

    formal: ClassVar[bool] = True
    protects_records: ClassVar[bool] = True
    public_covariates: ClassVar[bool] = False
    covers_release: ClassVar[bool] = False
    automatic_lam: ClassVar[bool] = True
    compared_at: ClassVar[str] = "guarantee"

    def __post_init__(self) -> None:
        object.__setattr__(self, "epsilon", positive_float("epsilon", self.epsilon))
        object.__setattr__(self, "delta", probability("delta", self.delta))
        check_budget(self.epsilon, self.delta)
        object.__setattr__(self, "bounds", checked_bounds(self.bounds))
        if self.y_bounds == (0.0, 0.0):
            raise ValueError(
                "RecordDP needs y_bounds=(low, high), the smallest and largest label, from public "
                "knowledge: labels outside are clipped"
            )
        object.__setattr__(self, "y_bounds", label_bounds(self.y_bounds))
        if self.kappa is not None:
            object.__setattr__(
                self, "kappa", squarable("kappa", positive_float("kappa", self.kappa))
            )
        if self.t is not None:
            object.__setattr__(self, "t", squarable("t", positive_float("t", self.t)))
        if self.scales not in (None, PRIVATE):
            raise ValueError(f"scales must be 'private' or None, not {self.scales!r}")
        object.__setattr__(self, "shape", _checked_shape(self.shape))
        if self.shape is not None and self.mechanism != "objective":
            raise ValueError("shape belongs to mechanism='objective'; statistics need none")
        if self.mechanism not in get_args(Mechanism):
            known = ", ".join(map(repr, get_args(Mechanism)))
            raise ValueError(f"mechanism must be one of {known}, not {self.mechanism!r}")
        share = positive_float("share", self.share)
        if share >= 1.0:
            raise ValueError(f"share is a part of the budget, below 1, not {share!r}")
        object.__setattr__(self, "share", share)
        check_level(self.level)
        check_relation(self.neighbours)

    @property
    def pair(self) -> Neighbours:
        """How data sets differ."""
        return Neighbours("record", self.neighbours)

    @property
    def released_before(self) -> tuple[str, ...]:
        """What is released before the fit; all of it has the same sensitivity."""
        scales = self.scales == PRIVATE
        asked = (scales or self.bounds == PRIVATE, scales, self.shape == PRIVATE)
        return tuple(what for what, wanted in zip(_BEFORE, asked, strict=True) if wanted)

    @property
    def mu_before(self) -> float:
        """Sensitivity of all releases before the fit together; zero if there are none."""
        if not self.released_before:
            return 0.0
        return math.sqrt(self.share) * sensitivity_for(self.epsilon, self.delta)

    @property
    def mu_of_each(self) -> float:
        """Sensitivity of each release before the fit."""
        return self.mu_before / math.sqrt(max(len(self.released_before), 1)) * (1.0 - 1e-15)

    @property
    def label_width(self) -> float:
        """High minus low."""
        return self.y_bounds[1] - self.y_bounds[0]

    def objective_noise(self, t: float) -> float:
        """Return σ/(κR) of objective perturbation with residuals clipped at κ and a ridge R²/t.

        What is released before the fit is taken out of the budget.
        """
        kind = self.pair.of_objective
        return 1.0 / sensitivity_beside(self.epsilon, self.delta, t, self.mu_before, kind)

    def column_bounds(self, n_columns: int, names: Sequence[str] | None = None) -> np.ndarray:
        """Bounds of the columns, of shape (N, 2), by name where they were given by name."""
        return bounds_of_columns(self.bounds, n_columns, names)

    def objective(
        self,
        n_rows: int,
        n_columns: int,
        names: Sequence[str] | None,
        *,
        fit_intercept: bool,
        loss: Clipped = _HUBER,
    ) -> PerturbedObjective:
        """Noise, ridge and scaling, from the bounds and the shape of the table alone."""
        standard = self.scales == PRIVATE
        radius = usual_row(n_columns + fit_intercept, standard=standard)
        level = self._level(n_rows, fit_intercept, loss)
        return self._table(n_rows, n_columns, names, fit_intercept, radius, level, loss)

    def for_classes(self) -> RecordDP:
        """Refuse what a logistic regression on labels 0 and 1 does not have."""
        check_binary(self)
        return self

    def logistic(
        self, n_rows: int, n_columns: int, names: Sequence[str] | None, *, fit_intercept: bool
    ) -> PerturbedLogistic:
        """Noise, ridge and scaling of a logistic regression, for labels 0 and 1."""
        table = self._product_table(n_rows, n_columns, names, fit_intercept)
        return logistic_objective(self, table, n_rows, n_columns + fit_intercept)

    def _table(
        self,
        n_rows: int,
        n_columns: int,
        names: Sequence[str] | None,
        fit_intercept: bool,
        radius: float,
        level: Level | None = None,
        loss: Clipped = _HUBER,
    ) -> PerturbedObjective:
        """The scaling, and noise for rows of this length."""
        bounded, scales = self.bounds != PRIVATE, self.scales == PRIVATE
        bounds = self.column_bounds(n_columns, names) if bounded else widest_bounds(n_columns)
        if bounded:
            check_units(bounds, self.label_width)
        estimate = None
        if scales or not bounded:
            estimate = Estimate(self.mu_of_each, scales, bounded, self.pair)
        return PerturbedObjective(
            self._calibrated(radius, n_rows, n_columns + fit_intercept, level, loss),
            bounds,
            self.y_bounds,
            fit_intercept,
            usual_lam(n_rows, self.label_width),
            estimate=estimate,
            level=level,
        )

    def _product_table(
        self,
        n_rows: int,
        n_columns: int,
        names: Sequence[str] | None,
        fit_intercept: bool,
        level: Level | None = None,
    ) -> PerturbedObjective:
        """The scaling for sums of products."""
        radius = longest_row(n_columns + fit_intercept, standard=self.scales == PRIVATE)
        return self._table(n_rows, n_columns, names, fit_intercept, radius, level)

    def _level(self, n_rows: int, fit_intercept: bool, loss: Clipped) -> Level | None:
        """How the intercept is corrected, if there is one and it is."""
        if not (fit_intercept and loss.about_mean):
            return None
        return direct_level(
            self.epsilon, self.delta, n_rows, asked=self.level, neighbours=self.pair
        )

    @property
    def _t(self) -> float:
        return usual_t(self.epsilon) if self.t is None else self.t

    def _calibrated(
        self, radius: float, n_rows: int, n_columns: int, level: Level | None, loss: Clipped
    ) -> ObjectiveNoise:
        """The noise for rows of this length, beside what is released before the fit and after."""
        usual = usual_kappa(self.epsilon, n_rows, n_columns)
        return calibrate_objective(
            self.epsilon,
            self.delta,
            self.pair,
            loss=loss.suited(usual) if self.kappa is None else loss.clipped(self.kappa),
            radius=radius,
            t=self._t,
            n_rows=n_rows,
            mu=math.hypot(self.mu_before, 0.0 if level is None else level.mu),
        )

    def shaped(
        self,
        n_rows: int,
        n_columns: int,
        names: Sequence[str] | None,
        *,
        fit_intercept: bool,
        loss: Clipped = _HUBER,
    ) -> ShapedObjective | None:
        """The fit with noise that follows the correlations of the columns, if it was asked for."""
        if self.shape is None:
            return None
        width = n_columns + fit_intercept
        public = None if self.shape == PRIVATE else np.array(self.shape)
        if public is not None and public.shape[1] != n_columns:
            raise ValueError(f"shape must have the {n_columns} columns of X, not {public.shape[1]}")
        level = self._level(n_rows, fit_intercept, loss)
        return ShapedObjective(
            self._product_table(n_rows, n_columns, names, fit_intercept, level),
            self._calibrated(usual_row(width, standard=True), n_rows, width, level, loss),
            public,
            self.mu_of_each if public is None else None,
        )

    def screened(
        self,
        n_rows: int,
        n_columns: int,
        names: Sequence[str] | None,
        *,
        fit_intercept: bool,
        screen: Screen,
        loss: Clipped = _HUBER,
    ) -> ScreenedObjective | None:
        """The choice of columns and the fit of these, unless a fit of all is expected to be better.

        Everything is decided from the bounds and the shape of the table.
        """
        if self.released_before or self.shape is not None or self.mechanism != "objective":
            raise ValueError(
                "screen chooses columns by public bounds for a fit by mechanism='objective'; leave "
                "out bounds='private', scales, shape and other mechanisms, or screen"
            )
        settings = screening_settings(
            self.epsilon,
            self.delta,
            n_rows,
            n_columns,
            screen,
            fit_intercept=fit_intercept,
            neighbours=self.pair,
        )
        if settings is None:
            return None
        bounds = self.column_bounds(n_columns, names)
        check_units(bounds, self.label_width)
        return screened_objective(
            settings,
            bounds,
            self.y_bounds,
            n_rows,
            fit_intercept=fit_intercept,
            loss=loss if self.kappa is None else loss.clipped(self.kappa),
            t=self._t,
        )

    def screened_design(self, table: Sparse, screen: Screen) -> ScreenedDesign:
        """The choice of columns with the largest predicted R² for a table of a model."""
        return best_screening(self.epsilon, self.delta, self.pair, table, screen, self.label_width)

    def statistics(
        self,
        n_rows: int,
        n_columns: int,
        names: Sequence[str] | None,
        *,
        fit_intercept: bool,
        loss: Clipped = _HUBER,
    ) -> StatisticsMechanism | None:
        """The mechanism that releases statistics, if it is the one to use."""
        if not loss.about_mean and self.mechanism == "statistics":
            raise ValueError(f"{loss.about} cannot be found from statistics; leave mechanism out")
        if not loss.about_mean or self.mechanism == "objective":
            return None
        whole, before = sensitivity_for(self.epsilon, self.delta), self.mu_before
        mu = math.sqrt(whole**2 - before**2) * (1.0 - 1e-12)
        table = self._product_table(n_rows, n_columns, names, fit_intercept)
        found = StatisticsMechanism(table, mu, standard=self.scales == PRIVATE)
        few = self.mechanism == "auto" and found.predicted_loss(n_rows) > _LARGEST_LOSS
        return None if few else found

    def guarantee(
        self, terms: Terms, losses: Sequence[Loss] | None = None, released: Sequence[str] = ()
    ) -> Guarantee:
        """State record-level differential privacy of what was asked, and of all that follows.

        By default it is stated for one Gaussian mechanism that has the whole budget.
        """
        if losses is None:
            losses = [GaussianLoss(sensitivity_for(self.epsilon, self.delta))]
        given = "the bounds of the columns and of the labels"
        if self.bounds == PRIVATE:
            given = "the bounds of the labels"
        if self.shape is not None and self.shape != PRIVATE:
            given = f"{given}, the rows that the shape comes from"
        at_one_lam = any(not isinstance(loss, GaussianLoss) for loss in losses)
        what = "λ and all settings" if at_one_lam else "and all settings"
        assumptions = (
            f"{given}, {what} of the fit were chosen without looking at the data",
            "the number of rows and the names of the columns are public",
            PREPARED,
        )
        return stated(self, self.pair, terms, losses, assumptions, released)

    def check_release_use(self, what: str) -> None:
        """Refuse what needs a release, unless statistics are released."""
        if self.mechanism == "objective":
            super().check_release_use(what)

    def composition(self, mu: float | None) -> str:
        """Each fit is a release of its own."""
        if self.mechanism == "statistics":
            return "Further fits on the same records add to the loss; a ledger keeps count of them."
        return (
            "Further fits on the same records, at another λ too, add to the loss; a ledger keeps "
            "count of them."
        )

    def after_failure(self, kept: str) -> str:
        """Nothing was published."""
        return (
            "Nothing of this fit is published, but its noise has been drawn, so count its budget "
            "as spent."
        )


def _checked_shape(shape: Any) -> tuple[tuple[float, ...], ...] | str | None:
    """Public rows as values that can be compared and hashed."""
    if shape is None or (isinstance(shape, str) and shape == PRIVATE):
        return shape
    if isinstance(shape, str):
        raise ValueError(f"shape must be 'private', public rows or None, not {shape!r}")
    return tuple(tuple(row) for row in real_array("shape", shape, shape=(None, None)).tolist())
