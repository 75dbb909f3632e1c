"""A fit after the labels were read: the release, its covariates, and the models from it."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from functools import cached_property
from typing import cast

import numpy as np
from numpy.typing import ArrayLike

from privasso._clock import Clock
from privasso._tuned import LABEL_DEVIATIONS, LABEL_WIDTH, SELECT_LOSS
from privasso._types import Matrix
from privasso._validation import real_array
from privasso.accounting import GaussianLoss, log_gaussian_delta
from privasso.blocks import LabelsWithin
from privasso.fit._choose_lambda import choose_lambda
from privasso.fit._classes import Classes
from privasso.fit._denoised import Denoised
from privasso.fit._logistic import LogisticLasso
from privasso.fit._model import CoefficientPath, ReleasedModel
from privasso.fit._options import FitOptions, fixed_lambda
from privasso.fit._outcome import Outcome, Stated
from privasso.fit._postprocess import Postprocess, check_shape
from privasso.fit._release_law import MOST_COLUMNS, Posterior, ReleaseLaw, posterior_of, release_law
from privasso.fit._rows import prepared_rows, released_weights
from privasso.fit._selecting import selecting_lam
from privasso.operators import Covariates
from privasso.planning import Aim, LabelRelease
from privasso.privacy import LabelDP
from privasso.programs import Release
from privasso.solvers import SolveError

#: Covariates whose squared column norms differ by more than this, relatively, are refused; so is a
#: release whose sensitivity or δ exceeds what is stated by more than this.
_SAME = 1e-6
#: No sensitivity is as small as this.
_LEAST = 1e-300
#: Labels and rows are rounded to grids, which changes weights by no more than this part.
_ROUNDING = 1e-8


@dataclass(frozen=True, eq=False, repr=False, kw_only=True)
class KeptRelease(Stated, Release):
    """The result of the mechanism, with its guarantee, from which any λ can be solved.

    It holds neither labels nor noise, and its guarantee covers it, so keeping it costs nothing.
    Together with the public covariates it gives the coefficients at any λ.

    Attributes
    ----------
    column_squares : ndarray of shape (N,)
        Squared norms of the (centred) columns, by which the covariates are recognised.
    privacy : LabelDP
        What it was made under, with everything decided.
    guarantee : Guarantee
        The privacy statement, which covers the release.
    noise : NoiseDesign, Shaped or None
        The noise at the level that was used; None if a file could not describe it.
    feature_names : tuple of str or None
        Names of the columns, in the order of b, if the fit knew them.
    target : str or None
        Name of the labels.
    software : str
        Version of privasso that made it.
    encoding : Encoding or None
        How the columns of a table become the columns of X, if that is not as they are.
    intervals : Intervals or None
        Laws of the coefficients of the population, if the fit released what they follow from.

    Examples
    --------
    >>> import numpy as np, privasso as pv
    >>> privacy = pv.LabelDP(epsilon=1.0, delta=1e-6, y_bounds=(0, 1))
    >>> X = np.random.default_rng(0).standard_normal((60, 3))
    >>> kept = pv.PrivateLasso(lam=100.0, privacy=privacy).fit(X, X[:, 0] > 0).release_
    >>> kept
    KeptRelease(n_rows=60, n_features=3, intercept=True)
    >>> kept.open(X).solve(50.0).coef.shape  # another λ, no labels, no further cost
    (3,)
    """

    column_squares: np.ndarray

    def __post_init__(self) -> None:
        Release.__post_init__(self)
        if not self.privacy.covers_release or not self.guarantee.formal:
            raise ValueError(
                f"a release under a guarantee of kind {self.guarantee.kind!r} may not be kept: "
                "the guarantee does not cover it"
            )
        self._check_statement()

    def open(
        self,
        X: Matrix,
        *,
        sample_weight: ArrayLike | None = None,
        denoise: bool = True,
        method: str = "auto",
        tol: float = 1e-8,
        time_limit: float | None = None,
        classes: Classes | None = None,
        aim: Aim = "auto",
    ) -> Released:
        """Return the release with its covariates, ready to solve from; reads no labels.

        With `classes` the models are logistic regressions; the release must be of labels 0 and 1.
        Covariates or weights that differ from those of the release are refused, and so is a
        release whose noise is too small for its statement.
        """
        options = FitOptions(
            self.privacy,
            lam=None,
            fit_intercept=self.fit_intercept,
            method=method,
            tol=tol,
            denoise=denoise,
            time_limit=time_limit,
            classes=classes,
            aim=aim,
        )
        if classes is not None and sample_weight is not None:
            raise ValueError("logistic regression takes no sample_weight; leave it out")
        rows = prepared_rows(X, self.fit_intercept, sample_weight)
        self.check_covariates(rows)
        weights = self.checked_weights(rows)
        return Released(release=self, rows=rows, weights=weights, options=options, **self.told)

    def check_covariates(self, rows: Covariates) -> None:
        """Refuse covariates that the release was not made from."""
        check_shape(self, rows)
        off = np.abs(rows.squares - self.column_squares) > _SAME * self.column_squares
        if off.any():
            column = int(np.argmax(off))
            name = repr(self.feature_names[column]) if self.feature_names else str(column)
            raise ValueError(
                f"these are not the covariates that the release was made from: column {name} has "
                "other values; pass the covariates of the fit"
            )

    def checked_weights(self, rows: Covariates) -> np.ndarray | None:
        """Weights of the rows in the release; refuse noise that does not fit the statement.

        Where the noise is smaller than it was, rows would have to be shrunk more than they were,
        and the sum of the weights is another one. The tolerance is relative to the rows that are
        shrunk: one large row among millions must not go unnoticed.
        """
        weights = released_weights(self, rows, self.privacy)
        total, shrunk = float(rows.shape[0]), 0.0
        if weights is not None:
            given = 1.0 if rows.weights is None else rows.weights
            total, shrunk = float(np.sum(weights)), float(np.sum(weights[weights < given]))
        assert self.weight_sum is not None
        tolerance = _SAME * shrunk + _ROUNDING * self.weight_sum
        if not abs(total - self.weight_sum) <= tolerance:
            raise ValueError(
                "the noise of the release does not fit its statement: for one label to be hidden "
                f"by it, the rows must have weights that add up to {total:.7g}, not "
                f"{self.weight_sum:.7g} as in the release; either these are not the covariates of "
                "the fit, or the release has been changed"
            )
        return weights

    def _check_statement(self) -> None:
        """Refuse a sensitivity μ that gives more than the δ that is stated.

        A release from a perturbed objective has none: its guarantee states c and t instead, which
        are checked there.
        """
        if self.mu is None and not isinstance(self.guarantee.loss, GaussianLoss):
            return
        log_delta = math.inf
        if self.mu is not None and self.mu >= _LEAST:
            try:
                with np.errstate(all="ignore"):
                    log_delta = log_gaussian_delta(self.guarantee["epsilon"], self.mu)
            except ValueError:  # numbers far outside the range of any privacy
                pass
        if not log_delta <= math.log(self.guarantee["delta"]) + _SAME:
            raise ValueError(
                "the sensitivity mu of the release is not one that its epsilon and delta allow; "
                "the release has been changed, or is damaged"
            )


@dataclass(frozen=True, eq=False, kw_only=True)
class Released(Stated, Outcome):
    """The release together with the covariates; every λ is solved from these alone.

    `Plan.release` and `KeptRelease.open` make it.
    """

    release: Release
    rows: Covariates
    weights: np.ndarray | None
    options: FitOptions

    kept_as = "release"

    @property
    def public_rows(self) -> Covariates:
        """The covariates."""
        return self.rows

    @property
    def composition(self) -> str | None:
        """Gaussian releases add up in a closed form."""
        return self.privacy.composition(self.release.mu)

    @cached_property
    def post(self) -> Postprocess | Denoised | LogisticLasso:
        """The solving half of the fit."""
        if self.options.classes is not None:
            return LogisticLasso(self.release, self.rows, self.weights, tol=self.options.tol)
        if self.options.denoise and self.guess is not None:
            return Denoised(self.guess, self.rows, tol=self.options.tol)
        return Postprocess(
            self.release,
            self.rows,
            weights=self.weights,
            method=self.options.method,
            tol=self.options.tol,
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
        lam = selecting_lam(law[0], self.rows, noise, self.options.among)
        if lam <= predicting or self.options.aim == "select":
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

    @property
    def kept(self) -> KeptRelease | None:
        """The release in the form to keep, or None if the guarantee does not cover it."""
        made = self.release
        if isinstance(made, KeptRelease) or not self.privacy.covers_release:
            return made if isinstance(made, KeptRelease) else None
        return KeptRelease(**vars(made), column_squares=self.rows.squares, **self.told)

    def in_range(self, within: LabelsWithin) -> Released:
        """Everything is in the units of the labels then."""
        return replace(self, release=self.release.in_range(within), **self.placed(within))

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
        wanted = self.options.lam if lam is None else lam
        if wanted is None:
            raise ValueError("lam is missing: give λ as a number or 'auto'")
        clock, post = Clock(self.options.time_limit), self.post
        chosen, unit = fixed_lambda(wanted, self.privacy), self.release.unit
        if chosen is None:
            if isinstance(post, Denoised) and self.options.aim != "predict":
                chosen = unit * self._aimed(post, clock)
            elif not isinstance(post, Postprocess):
                chosen = unit * post.choose(clock)
            else:
                deviation = (self.privacy.label_deviation or 0.0) / unit
                chosen = unit * choose_lambda(post, self.guess, deviation**2, clock=clock)
            clock = Clock()  # this λ was solved in time, so that a second solve is short too
        coef, intercept = post.solve(chosen / unit, clock=clock)
        classes = self.options.classes
        return self.model(
            unit * coef,
            unit * intercept,
            chosen,
            denoised=not isinstance(post, Postprocess),
            coef_se=self._errors(coef, intercept) if self.intervals is None else None,
            classes=None if classes is None else classes.names,
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
        clock = Clock(self.options.time_limit)
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
