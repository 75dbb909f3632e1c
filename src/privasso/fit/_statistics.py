"""A fit from noisy statistics of records: one release, from which any λ is solved."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from typing import Any, cast

import numpy as np
from numpy.typing import ArrayLike

from privasso._covariates import covariates
from privasso._validation import real_array
from privasso.accounting import GaussianLoss
from privasso.blocks import LabelsWithin
from privasso.encoding import Encoding
from privasso.fit._model import ReleasedModel
from privasso.fit._options import fixed_lambda
from privasso.fit._outcome import Outcome
from privasso.fit._path import CoefficientPath
from privasso.privacy import Guarantee, Privacy
from privasso.programs import Intervals, RecordStatistics
from privasso.solvers import Status

#: Noise that is smaller by less than this part is that of a file with rounded numbers.
_SAME = 1e-9
#: A path begins at so many times the λ of a model.
_PATH_START = 1000.0


@dataclass(frozen=True, eq=False, repr=False)
class KeptStatistics(Outcome):
    """Noisy statistics of records with their guarantee, from which any λ can be solved.

    It holds neither records nor noise, and its guarantee covers it, so keeping it costs nothing.
    No covariates are needed to solve from it.

    Attributes
    ----------
    statistics : RecordStatistics
        The result of the mechanism.
    privacy : Privacy
        The privacy value of the fit.
    guarantee : Guarantee
        The privacy statement.
    lam : float
        The λ of the fit.
    feature_names : tuple of str or None
        Names of the columns, if the fit knew them.
    software : str
        Version of privasso that made it.
    target : str or None
        Name of the labels.
    encoding : Encoding or None
        How the columns of a table become the columns of X, if that is not as they are.

    Examples
    --------
    >>> import numpy as np, privasso as pv
    >>> X = np.random.default_rng(0).uniform(0, 1, (20_000, 3))
    >>> privacy = pv.RecordDP(1.0, 1e-6, [(0, 1)] * 3, y_bounds=(0, 2), mechanism="statistics")
    >>> est = pv.PrivateLasso(privacy=privacy, random_state=0).fit(X, X[:, 0] + X[:, 1])
    >>> est.path(X, [1.0, 100.0]).coef.shape  # no further cost
    (3, 2)
    >>> bool(np.nanmax(np.abs(est.coef_ - [1, 1, 0]) / est.coef_se_) < 4)
    True
    """

    statistics: RecordStatistics
    privacy: Privacy
    guarantee: Guarantee
    lam: float
    feature_names: tuple[str, ...] | None
    software: str
    target: str | None = None
    encoding: Encoding | None = None
    intervals: Intervals | None = None

    kept_as = "statistics"

    def __post_init__(self) -> None:
        table, moments = self.statistics.table, self.statistics.moments
        longest = math.hypot(table.noise.radius, self.statistics.weight * table.view.largest_label)
        loss = self.guarantee.loss
        mu = loss.mu if isinstance(loss, GaussianLoss) else math.inf
        if not moments.sigma * mu >= longest**2 * (1.0 - _SAME):
            raise ValueError(
                "the noise of the statistics is too small for their statement; they have been "
                "changed, or are damaged"
            )

    def __repr__(self) -> str:
        return f"KeptStatistics(n_rows={self.n_rows}, n_features={self.n_features})"

    @property
    def n_rows(self) -> int:
        """Number of records."""
        return self.statistics.moments.n_rows

    @property
    def n_features(self) -> int:
        """Number of columns."""
        return len(self.statistics.table.bounds)

    @property
    def kept(self) -> KeptStatistics:
        """They may be kept."""
        return self

    @property
    def known_target(self) -> str | None:
        """As it was given."""
        return self.target

    @property
    def ranges(self) -> np.ndarray:
        """Public ones, or those that were found."""
        return np.diff(self.statistics.table.bounds, axis=1)[:, 0]

    def in_range(self, within: LabelsWithin) -> KeptStatistics:
        """The bounds of the labels are those of the range."""
        bounds, intervals = (within.low, within.high), self.intervals
        table = replace(self.statistics.table, y_bounds=bounds)
        return replace(
            self,
            statistics=replace(self.statistics, table=table),
            privacy=replace(cast(Any, self.privacy), y_bounds=bounds),
            guarantee=self.guarantee.with_bounds(*bounds),
            lam=within.width * self.lam,
            intervals=None if intervals is None else intervals.scaled(within.width),
        )

    def path_start(self, lam: float) -> float:
        """The largest λ of interest in a path around this one."""
        return _PATH_START * lam

    def open(self, X: object = None, *, sample_weight: ArrayLike | None = None) -> KeptStatistics:
        """Return the statistics, ready to solve from; covariates are not needed, nor read.

        The arguments are those of `KeptRelease.open`.
        """
        if sample_weight is not None:
            raise ValueError("statistics of records have no sample_weight; leave it out")
        if X is not None:
            shape = getattr(X, "shape", None) or covariates(X, finite=False).shape
            if tuple(shape[1:]) != (self.n_features,):
                raise ValueError(f"X must have the {self.n_features} columns of the fit")
        return self

    def solve(self, lam: float | str | None = None) -> ReleasedModel:
        """Return the model at λ, the one of the fit if none is given or with ``"auto"``."""
        chosen = self.lam if lam is None else fixed_lambda(lam, self.privacy)
        chosen = self.statistics.table.lam if chosen is None else chosen
        found = self.statistics.solve(chosen)
        return ReleasedModel(
            coef=found.coef,
            intercept=found.intercept,
            lam=chosen,
            guarantee=self.guarantee,
            noise=None,
            feature_names=self.feature_names,
            software=self.software,
            coef_se=found.coef_se if self.intervals is None else None,
            encoding=self.encoding,
            intervals=self.intervals,
            target=self.target,
        )

    def path(self, lams: ArrayLike) -> CoefficientPath:
        """Coefficients at each λ, at no further cost."""
        values = real_array("lams", lams, ndim=1)
        found = [self.statistics.solve(lam) for lam in values.tolist()]
        return CoefficientPath(
            values,
            np.array([one.coef for one in found]).reshape(len(found), self.n_features).T,
            np.array([one.intercept for one in found]),
            np.array([Status.CONVERGED] * len(found), dtype=object),
        )

    def after_failure(self, kept: str) -> str:
        """Say that the statistics are paid for and kept."""
        return f"The budget of this fit is spent, but nothing is lost: statistics are kept {kept}."
