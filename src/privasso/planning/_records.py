"""Which program fits whole records, and with which settings: from public numbers alone."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import TypeAlias

import numpy as np

from privasso._tuned import MOST_STATISTICS_LOSS
from privasso.accounting import sensitivity_for
from privasso.planning._objective_noise import calibrate_logistic, calibrate_objective
from privasso.planning._record_screening import screened_objective
from privasso.planning._screening_settings import Screen, usual_screening
from privasso.planning._settings import (
    check_units,
    filled_columns,
    logistic_lam,
    logistic_lengths,
    logistic_t,
    longest_row,
    usual_kappa,
    usual_lam,
    usual_row,
    usual_t,
)
from privasso.privacy import PRIVATE, RecordDP
from privasso.problem import Clipped, Huber, Loss
from privasso.programs import (
    Estimate,
    Level,
    PerturbedLogistic,
    PerturbedObjective,
    ScreenedObjective,
    ShapedObjective,
    StatisticsMechanism,
    direct_level,
    widest_bounds,
)
from privasso.queries import ObjectiveNoise

#: A fit of whole records, with all its settings.
RecordProgram: TypeAlias = (
    PerturbedObjective | ScreenedObjective | ShapedObjective | StatisticsMechanism
)
_HUBER = Huber()


@dataclass(frozen=True)
class RecordTable:
    """All that a fit of whole records may know of a table beforehand.

    Attributes
    ----------
    privacy : RecordDP
        Budget and bounds.
    n_rows, n_columns : int
        Size of the table.
    names : sequence of str or None
        Names of the columns.
    fit_intercept : bool
        Whether there is a column of ones.
    loss : Loss
        What the fit is about.
    """

    privacy: RecordDP
    n_rows: int
    n_columns: int
    names: Sequence[str] | None = None
    fit_intercept: bool = True
    loss: Loss = _HUBER

    def direct(self) -> RecordProgram:
        """The fit of all columns that was asked for, or that is expected to be the best one."""
        if not isinstance(self.loss, Clipped):
            return self.logistic()
        return self.statistics() or self.shaped() or self.objective()

    def objective(self) -> PerturbedObjective:
        """The minimiser of a perturbed objective of clipped residuals."""
        return self._scaled(usual_row(self._filled, standard=self._standard), self._level)

    def logistic(self) -> PerturbedLogistic:
        """A perturbed logistic regression, for labels 0 and 1."""
        privacy = self.privacy.for_classes()
        radius, reach = logistic_lengths(self.width, standard=self._standard)
        usual = logistic_t(privacy.epsilon, self.n_rows, self.width)
        noise = calibrate_logistic(
            privacy.epsilon,
            privacy.delta,
            privacy.pair,
            radius=radius,
            reach=reach,
            t=usual if privacy.t is None else privacy.t,
            n_rows=self.n_rows,
            mu=privacy.mu_before,
        )
        lam = logistic_lam(self.n_rows)
        return PerturbedLogistic(
            noise,
            self.bounds,
            privacy.y_bounds,
            self.fit_intercept,
            lam,
            estimate=self._estimate,
            indicators=self.indicators,
            reach=reach,
        )

    def shaped(self) -> ShapedObjective | None:
        """The fit with noise that follows the correlations of the columns, if it was asked for."""
        shape = self.privacy.shape
        if shape is None:
            return None
        public = None if isinstance(shape, str) else np.array(shape)
        if public is not None and public.shape[1] != self.n_columns:
            raise ValueError(
                f"shape must have the {self.n_columns} columns of X, not {public.shape[1]}"
            )
        return ShapedObjective(
            self._products(self._level),
            self._noise(usual_row(self.width, standard=True), self._level),
            public,
            self.privacy.mu_of_each if public is None else None,
        )

    def statistics(self) -> StatisticsMechanism | None:
        """The release of statistics, if it is the one to use."""
        privacy, mean = self.privacy, self.loss.about_mean
        if not mean and privacy.mechanism == "statistics":
            raise ValueError(
                f"{self.loss.about} cannot be found from statistics; leave mechanism out"
            )
        if not mean or privacy.mechanism == "objective":
            return None
        whole, before = sensitivity_for(privacy.epsilon, privacy.delta), privacy.mu_before
        mu = math.sqrt(whole**2 - before**2) * (1.0 - 1e-12)
        found = StatisticsMechanism(self._products(), mu, standard=self._standard)
        few = (
            privacy.mechanism == "auto" and found.predicted_loss(self.n_rows) > MOST_STATISTICS_LOSS
        )
        return None if few else found

    def screened(self, screen: Screen | None) -> ScreenedObjective | None:
        """A choice of columns and their fit; None to fit all columns.

        It is considered wherever there is such a fit, and refused where it is asked for and there
        is none.
        """
        privacy = self.privacy
        other = privacy.released_before or privacy.shape is not None
        other = other or privacy.mechanism != "objective"
        if screen == "all" or (screen is None and other):
            return None
        if other:
            raise ValueError(
                "screen chooses columns by public bounds for a fit by mechanism='objective'; leave "
                "out bounds='private', scales, shape and other mechanisms, or screen"
            )
        settings = usual_screening(
            privacy.epsilon,
            privacy.delta,
            self.n_rows,
            self.n_columns,
            count=None if screen in (None, "auto") else int(screen),
            centred=self.fit_intercept,
            neighbours=privacy.pair,
            filled=round(self._filled) - self.fit_intercept,
        )
        if settings is None:
            return None
        return screened_objective(
            settings,
            self.bounds,
            privacy.y_bounds,
            self.n_rows,
            fit_intercept=self.fit_intercept,
            loss=self._clipped(privacy.kappa),
            t=self._t,
            indicators=self.indicators,
        )

    @property
    def width(self) -> int:
        """Entries of a row."""
        return self.n_columns + self.fit_intercept

    @property
    def _filled(self) -> float:
        """Entries of a row that make it long."""
        ones = self.indicators if self.fit_intercept and not self._standard else None
        return filled_columns(self.width, 0 if ones is None else int(ones.sum()))

    @cached_property
    def bounds(self) -> np.ndarray:
        """Of the columns; the widest where they are found in the data."""
        if self.privacy.bounds == PRIVATE:
            return widest_bounds(self.n_columns)
        bounds = self.privacy.column_bounds(self.n_columns, self.names)
        check_units(bounds, self.privacy.label_width)
        return bounds

    @property
    def indicators(self) -> np.ndarray | None:
        """Which columns are said to be of zeros and ones, if any."""
        return self.privacy.indicators(self.n_columns, self.names)

    @property
    def _standard(self) -> bool:
        """Whether columns are in units of their scales, not of their bounds."""
        return self.privacy.scales == PRIVATE

    @property
    def _t(self) -> float:
        return usual_t(self.privacy.epsilon) if self.privacy.t is None else self.privacy.t

    @property
    def _estimate(self) -> Estimate | None:
        """What is found about the columns first."""
        privacy, bounded = self.privacy, self.privacy.bounds != PRIVATE
        if bounded and not self._standard:
            return None
        return Estimate(privacy.mu_of_each, self._standard, bounded, privacy.pair)

    @cached_property
    def _level(self) -> Level | None:
        """How the intercept is corrected, if there is one and it is."""
        privacy = self.privacy
        if not (self.fit_intercept and self.loss.about_mean):
            return None
        return direct_level(
            privacy.epsilon,
            privacy.delta,
            self.n_rows,
            asked=privacy.level,
            neighbours=privacy.pair,
        )

    def _clipped(self, kappa: float | None) -> Clipped:
        """The loss, with κ if it is given."""
        assert isinstance(self.loss, Clipped)
        return self.loss if kappa is None else self.loss.clipped(kappa)

    def _noise(self, radius: float, level: Level | None) -> ObjectiveNoise:
        """The noise for rows of this length, beside what is released before the fit and after."""
        privacy = self.privacy
        usual = usual_kappa(privacy.epsilon, self.n_rows, self._filled)
        loss = self._clipped(privacy.kappa)
        return calibrate_objective(
            privacy.epsilon,
            privacy.delta,
            privacy.pair,
            loss=loss.suited(usual) if privacy.kappa is None else loss,
            radius=radius,
            t=self._t,
            n_rows=self.n_rows,
            mu=math.hypot(privacy.mu_before, 0.0 if level is None else level.mu),
        )

    def _scaled(self, radius: float, level: Level | None) -> PerturbedObjective:
        """The scaling, and noise for rows of this length."""
        privacy = self.privacy
        return PerturbedObjective(
            self._noise(radius, level),
            self.bounds,
            privacy.y_bounds,
            self.fit_intercept,
            usual_lam(self.n_rows, privacy.label_width),
            estimate=self._estimate,
            level=level,
            indicators=self.indicators,
        )

    def _products(self, level: Level | None = None) -> PerturbedObjective:
        """The scaling for sums of products."""
        ones = 0 if self.indicators is None or not self.fit_intercept else self.indicators.sum()
        radius = longest_row(self.width, standard=self._standard, indicators=int(ones))
        return self._scaled(radius, level)
