"""A fit after the labels were read: the release, its covariates, and the models from it."""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any, cast

import numpy as np
from numpy.typing import ArrayLike

from privasso._clock import Clock
from privasso._tuned import LABEL_DEVIATIONS, LABEL_WIDTH, SELECT_LOSS
from privasso._validation import real_array
from privasso.blocks import LabelsWithin
from privasso.encoding import Encoding
from privasso.fit._choose_lambda import choose_lambda
from privasso.fit._classes import Classes
from privasso.fit._denoised import Denoised
from privasso.fit._kept import KeptRelease
from privasso.fit._logistic import LogisticLasso
from privasso.fit._model import ReleasedModel
from privasso.fit._options import fixed_lambda
from privasso.fit._outcome import Outcome
from privasso.fit._path import CoefficientPath
from privasso.fit._posterior import MOST_COLUMNS, Posterior, posterior_of, release_law
from privasso.fit._postprocess import Postprocess
from privasso.fit._release_law import ReleaseLaw
from privasso.fit._selecting import selecting_lam
from privasso.noise import Noise
from privasso.operators import Covariates
from privasso.planning import Aim, LabelRelease
from privasso.privacy import Guarantee, LabelDP, Privacy
from privasso.programs import Intervals, Release
from privasso.solvers import SolveError


@dataclass(frozen=True, eq=False)
class Released(Outcome):
    """The release together with the covariates; every λ is solved from these alone.

    `Plan.release` and `KeptRelease.open` make it.
    """

    release: Release
    rows: Covariates
    weights: np.ndarray | None
    denoise: bool
    privacy: Privacy
    guarantee: Guarantee
    noise: Noise | None
    feature_names: tuple[str, ...] | None
    target: str | None
    software: str
    lam: float | str | None = None
    aim: Aim = "predict"
    among: int | None = None
    method: str = "auto"
    tol: float = 1e-8
    time_limit: float | None = None
    encoding: Encoding | None = None
    classes: Classes | None = None
    intervals: Intervals | None = None

    kept_as = "release"

    @property
    def public_rows(self) -> Covariates:
        """The covariates."""
        return self.rows

    @property
    def known_target(self) -> str | None:
        """As it was given."""
        return self.target

    @property
    def composition(self) -> str | None:
        """Gaussian releases add up in a closed form."""
        return self.privacy.composition(self.release.mu)

    @cached_property
    def post(self) -> Postprocess | Denoised | LogisticLasso:
        """The solving half of the fit."""
        if self.classes is not None:
            return LogisticLasso(self.release, self.rows, self.weights, tol=self.tol)
        if self.denoise and self.guess is not None:
            return Denoised(self.guess, self.rows, tol=self.tol)
        return Postprocess(
            self.release, self.rows, weights=self.weights, method=self.method, tol=self.tol
        )

    @cached_property
    def guess(self) -> Posterior | None:
        """The best guess of the coefficients; None with too many columns, or unbounded labels."""
        if self._law is None:
            return None
        return posterior_of(self.release, self.rows, *self._law)

    def _aimed(self, post: Denoised, clock: Clock) -> float:
        """λ that selects, in the unit of the release; see `selecting_lam`."""
        predicting, law = post.choose(clock), self._law
        if law is None or clock.expired():
            return predicting
        noise, privacy = None, cast(LabelDP, self.privacy)
        if privacy.mechanism == "objective":
            noise = LabelRelease(privacy).objective_noise(self.rows.shape[0])
        lam = selecting_lam(law[0], self.rows, noise, self.among)
        if lam <= predicting or self.aim == "select":
            return max(lam, predicting)
        lost, explained = post.lost(np.array([lam, predicting]), clock)
        # Labels that vary less around their predictions are not supposed.
        least = (law[0].label_deviation * LABEL_DEVIATIONS[0] * LABEL_WIDTH) ** 2
        cheap = lost[0] - lost[1] <= SELECT_LOSS * (explained + least)
        return lam if cheap else predicting

    @cached_property
    def _law(self) -> tuple[ReleaseLaw, np.ndarray] | None:
        """The law of the release and what it is about, where `guess` is known."""
        deviation, columns = self.privacy.label_deviation, int(self.rows.live.sum())
        if deviation is None or not 0 < columns <= MOST_COLUMNS:
            return None
        unit = self.release.unit
        return release_law(self.release, self.rows, self.weights, deviation / unit)

    def _errors(self, coef: np.ndarray, intercept: float) -> np.ndarray | None:
        """Standard errors of the coefficients that are not zero; see `ReleaseLaw.errors`."""
        if isinstance(self.post, LogisticLasso):
            return self.post.errors(coef, intercept)
        if self._law is None:
            return None
        law, b = self._law
        live = self.rows.live
        errors = np.full(coef.size, np.nan)
        errors[live] = self.release.unit * law.errors(b, coef[live] != 0.0)
        return errors

    @cached_property
    def kept(self) -> KeptRelease | None:  # pyright: ignore[reportIncompatibleMethodOverride]
        """The release in the form to keep, or None if the guarantee does not cover it."""
        made = self.release
        if isinstance(made, KeptRelease) or not self.privacy.covers_release:
            return made if isinstance(made, KeptRelease) else None
        return KeptRelease(
            **vars(made),
            column_squares=self.rows.squares,
            privacy=self.privacy,
            guarantee=self.guarantee,
            noise=self.noise,
            feature_names=self.feature_names,
            target=self.target,
            software=self.software,
            encoding=self.encoding,
            intervals=self.intervals,
        )

    def in_range(self, within: LabelsWithin) -> Released:
        """Everything is in the units of the labels then."""
        width, noise, intervals = within.width, self.noise, self.intervals
        return replace(
            self,
            release=self.release.in_range(within),
            privacy=replace(cast(Any, self.privacy), y_bounds=(within.low, within.high)),
            guarantee=self.guarantee.with_bounds(within.low, within.high),
            noise=None if noise is None else noise.with_sigma(width * noise.sigma),
            intervals=None if intervals is None else intervals.scaled(width),
        )

    def path_start(self, lam: float) -> float:
        """The largest λ of interest in a path around this one: that of the first coefficient."""
        return max(self.post.largest_lam, lam)

    def solve(self, lam: float | str | None = None) -> ReleasedModel:
        """Return the model at λ, the one of the fit if none is given.

        Parameters
        ----------
        lam : float, "auto" or None
            λ; ``"auto"`` chooses it from the release.

        Raises
        ------
        SolveError
            No minimiser exists, or none was found.
        """
        wanted = self.lam if lam is None else lam
        if wanted is None:
            raise ValueError("lam is missing: give λ as a number or 'auto'")
        clock, post = Clock(self.time_limit), self.post
        chosen, unit = fixed_lambda(wanted, self.privacy), self.release.unit
        if chosen is None:
            if isinstance(post, Denoised) and self.aim != "predict":
                chosen = unit * self._aimed(post, clock)
            elif not isinstance(post, Postprocess):
                chosen = unit * post.choose(clock)
            else:
                deviation = (self.privacy.label_deviation or 0.0) / unit
                chosen = unit * choose_lambda(post, self.guess, deviation**2, clock=clock)
            clock = Clock()  # this λ was solved in time, so that a second solve is short too
        coef, intercept = post.solve(chosen / unit, clock=clock)
        return ReleasedModel(
            coef=unit * coef,
            intercept=unit * intercept,
            lam=chosen,
            guarantee=self.guarantee,
            noise=self.noise,
            feature_names=self.feature_names,
            denoised=not isinstance(post, Postprocess),
            software=self.software,
            encoding=self.encoding,
            coef_se=self._errors(coef, intercept) if self.intervals is None else None,
            classes=None if self.classes is None else self.classes.names,
            intervals=self.intervals,
            target=self.target,
        )

    @property
    def start(self) -> tuple[np.ndarray, float]:
        """The best guess of coefficients and intercept, without a penalty."""
        if isinstance(self.post, LogisticLasso):
            return self.post.rows.in_units(self.post.guess)
        guess, rows, coef = self.guess, self.rows, np.zeros(self.rows.shape[1])
        assert guess is not None
        coef[rows.live] = self.release.unit * guess.coef
        level = self.release.unit * guess.mean_label
        return coef, level - float(rows.mean @ coef) if rows.centred else 0.0

    def path(self, lams: ArrayLike) -> CoefficientPath:
        """Coefficients at each λ; the guarantee must cover the release.

        A λ at which no minimiser exists, or none is found in the time limit, has NaN and a status.
        """
        self.privacy.check_release_use("a path over λ")
        unit = self.release.unit
        clock = Clock(self.time_limit)
        found = self.post.path(real_array("lams", lams, ndim=1) / unit, clock=clock)
        return CoefficientPath(
            unit * found.lams, unit * found.coef, unit * found.intercept, found.status
        )

    def failure(self, error: Exception, kept: str) -> Exception:
        """A solver's error keeps its kind and its solution."""
        found = super().failure(error, kept)
        if isinstance(error, SolveError):
            return type(error)(replace(error.solution, message=str(found)))
        return found
