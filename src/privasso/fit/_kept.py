"""A release with everything needed to solve from it again without the labels."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import ArrayLike

from privasso._types import Matrix
from privasso.accounting import GaussianLoss, log_gaussian_delta
from privasso.encoding import Encoding
from privasso.fit._classes import Classes
from privasso.fit._postprocess import check_shape
from privasso.fit._rows import prepared_rows, released_weights
from privasso.noise import Noise
from privasso.operators import Covariates
from privasso.planning import Aim
from privasso.privacy import Guarantee, Privacy
from privasso.programs import Intervals, Release

if TYPE_CHECKING:
    from privasso.fit._released import Released

#: Covariates whose squared column norms differ by more than this, relatively, are refused; so is a
#: release whose sensitivity or δ exceeds what is stated by more than this.
_SAME = 1e-6
#: No sensitivity is as small as this.
_LEAST = 1e-300
#: Labels and rows are rounded to grids, which changes weights by no more than this part.
_ROUNDING = 1e-8


@dataclass(frozen=True, eq=False, repr=False, kw_only=True)
class KeptRelease(Release):
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
    privacy: Privacy
    guarantee: Guarantee
    noise: Noise | None
    feature_names: tuple[str, ...] | None = None
    target: str | None = None
    software: str
    encoding: Encoding | None = None
    intervals: Intervals | None = None

    def __post_init__(self) -> None:
        super().__post_init__()
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
        from privasso.fit._released import Released

        if classes is not None:
            self.privacy.for_classes()
            if sample_weight is not None:
                raise ValueError("logistic regression takes no sample_weight; leave it out")
        rows = prepared_rows(X, self.fit_intercept, sample_weight)
        self.check_covariates(rows)
        return Released(
            release=self,
            rows=rows,
            weights=self.checked_weights(rows),
            denoise=denoise,
            privacy=self.privacy,
            guarantee=self.guarantee,
            noise=self.noise,
            feature_names=self.feature_names,
            target=self.target,
            software=self.software,
            method=method,
            tol=tol,
            time_limit=time_limit,
            encoding=self.encoding,
            intervals=self.intervals,
            classes=classes,
            aim=aim,
        )

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
