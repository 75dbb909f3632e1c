"""What comes of a fit: a model, or what models are solved from, such as noisy statistics."""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from dataclasses import Field, dataclass, field, fields, replace
from typing import ClassVar, Self, cast

import numpy as np
from numpy.typing import ArrayLike

from privasso._covariates import covariates
from privasso._types import Found, Passed
from privasso._validation import real_array
from privasso._version import __version__
from privasso.accounting import GaussianLoss
from privasso.blocks import LabelsWithin
from privasso.encoding import Encoding
from privasso.fit._model import CoefficientPath, ReleasedModel
from privasso.fit._options import fixed_lambda
from privasso.noise import Noise
from privasso.operators import Covariates
from privasso.privacy import Formal, Guarantee, Privacy
from privasso.programs import Intervals, RecordStatistics
from privasso.solvers import Status

#: Said where the coefficients at one λ are all that is released.
ONE_LAM = (
    "{} needs a release to solve from, and this fit released coefficients at one λ only; call fit "
    "again, which costs"
)


class AfterReleaseError(RuntimeError):
    """A step after the release failed; the message says what became of the release."""


@dataclass(frozen=True, eq=False, repr=False, kw_only=True)
class Stated:
    """What stands beside the numbers that a fit leaves, whatever these are.

    Attributes
    ----------
    privacy : Privacy
        The kind of privacy of the fit, with everything decided.
    guarantee : Guarantee
        The privacy statement.
    noise : NoiseDesign, Shaped or None
        The noise at the level that was used; None if a file could not describe it.
    feature_names : tuple of str or None
        Names of the columns, if the fit knew them.
    target : str or None
        Name of the labels.
    software : str
        Version of privasso that made it.
    encoding : Encoding or None
        How the columns of a table become the columns of X, if that is not as they are.
    intervals : Intervals or None
        Laws of the coefficients of the population, if the fit released what they follow from.
    """

    privacy: Privacy
    guarantee: Guarantee
    noise: Noise | None = None
    feature_names: tuple[str, ...] | None = None
    target: str | None = None
    software: str = __version__
    encoding: Encoding | None = None
    intervals: Intervals | None = None

    @property
    def told(self) -> dict[str, Passed]:
        """All of it."""
        return {one.name: getattr(self, one.name) for one in fields(Stated)}

    def placed(self, within: LabelsWithin) -> dict[str, Passed]:
        """What of it is about the labels themselves, from what is about their places in a range."""
        bounds, width, noise = (within.low, within.high), within.width, self.noise
        return {
            "privacy": replace(cast(Formal, self.privacy), y_bounds=bounds),
            "guarantee": self.guarantee.with_bounds(*bounds),
            "noise": None if noise is None else noise.with_sigma(width * noise.sigma),
            "intervals": None if self.intervals is None else self.intervals.scaled(width),
        }

    def model(
        self, coef: np.ndarray, intercept: float, lam: float, **more: Passed
    ) -> ReleasedModel:
        """A model with all of it."""
        told = self.told
        del told["privacy"]
        return ReleasedModel(coef, intercept, lam, **told, **more)


class Outcome(ABC):
    """What comes of a fit; whoever uses it need not know how it was released.

    Attributes
    ----------
    privacy : Privacy
        The kind of privacy of the fit.
    guarantee : Guarantee
        The statement.
    kept_as : "release", "statistics" or None
        What `kept` is.
    """

    __dataclass_fields__: ClassVar[dict[str, Field]]
    privacy: Privacy
    guarantee: Guarantee
    kept_as: ClassVar[str | None] = None

    @property
    def kept(self) -> Found:
        """What may be kept, so that models at any λ are solved from it later; None if nothing."""
        return None

    @property
    def final(self) -> ReleasedModel | None:
        """The model, where it is all that was released."""
        return None

    @property
    def public_rows(self) -> Covariates | None:
        """Public covariates that models are solved with."""
        return None

    @property
    def solves_again(self) -> bool:
        """Whether models at every λ may be published."""
        return self.kept is not None

    @property
    def composition(self) -> str | None:
        """How the loss of several such fits adds up, in words."""
        return self.privacy.composition(None)

    @property
    def ranges(self) -> np.ndarray | None:
        """Distances between bounds of the columns that were released."""
        return None

    @abstractmethod
    def solve(self, lam: float | str | None = None) -> ReleasedModel:
        """Return the model at λ, the one of the fit if none is given."""

    @abstractmethod
    def path(self, lams: ArrayLike) -> CoefficientPath:
        """Coefficients at each λ, at no further cost."""

    @abstractmethod
    def path_start(self, lam: float) -> float:
        """The largest λ of interest in a path around this one."""

    def chosen(self) -> Self:
        """The same without columns that were not chosen before the fit."""
        return self

    def encoded(self, encoding: Encoding | None) -> Self:
        """The same, with the way in which columns of a table became those of X."""
        return replace(self, encoding=encoding)

    def with_intervals(self, intervals: Intervals) -> Self:
        """The same, with intervals for the coefficients."""
        return replace(self, intervals=intervals)

    @abstractmethod
    def in_range(self, within: LabelsWithin) -> Self:
        """What comes of the labels themselves, where this is about their places in a range."""

    def failure(self, error: Exception, kept: str) -> Exception:
        """The error to raise when a step after the release fails.

        It says what became of the budget, then what happened; `kept` says where what was released
        is kept and how to go on from it.
        """
        happened = str(error).rstrip(".")
        return AfterReleaseError(f"{self.after_failure(kept)} What happened: {happened}.")

    def after_failure(self, kept: str) -> str:
        """Say what became of the budget and of what was released."""
        return self.privacy.after_failure(kept)


@dataclass(frozen=True, eq=False)
class Published(Outcome):
    """A model at one λ, which is all that was released."""

    model: ReleasedModel
    privacy: Privacy
    guarantee: Guarantee = field(init=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "guarantee", self.model.guarantee)

    @property
    def final(self) -> ReleasedModel:
        """The model."""
        return self.model

    @property
    def composition(self) -> str:
        """Each fit is a release of its own."""
        what = "records" if self.privacy.protects_records else "labels"
        return (
            f"Further fits on the same {what}, at another λ too, add to the loss; a ledger keeps "
            "count of them."
        )

    def chosen(self) -> Published:
        """The model of the chosen columns, if some were chosen."""
        few = None if self.model.screened is None else self.model.chosen()
        return self if few is None else replace(self, model=few)

    def encoded(self, encoding: Encoding | None) -> Published:
        """The model is encoded."""
        return replace(self, model=replace(self.model, encoding=encoding))

    def with_intervals(self, intervals: Intervals) -> Published:
        """Columns that were not fitted have none."""
        at = self.model.screened
        whole = intervals if at is None else intervals.widened(at, self.model.n_features)
        return replace(self, model=replace(self.model, intervals=whole, coef_se=None))

    def in_range(self, within: LabelsWithin) -> Published:
        """The model of the labels themselves."""
        bounds = (within.low, within.high)
        privacy = replace(cast(Formal, self.privacy), y_bounds=bounds)
        return Published(self.model.in_range(within), privacy)

    def solve(self, lam: float | str | None = None) -> ReleasedModel:
        """Return the model; another λ would be another release."""
        if lam is not None and lam != self.model.lam:
            raise ValueError(ONE_LAM.format("another λ"))
        return self.model

    def path(self, lams: ArrayLike) -> CoefficientPath:
        """Refuse: each λ would be a release of its own."""
        raise ValueError(ONE_LAM.format("a path over λ"))

    def path_start(self, lam: float) -> float:
        """There is no path."""
        return lam

    def after_failure(self, kept: str) -> str:
        """The model itself is kept."""
        if not kept:
            return self.privacy.after_failure("")
        return (
            "The privacy budget of this fit is spent, but nothing is lost: the model is kept "
            f"{kept}."
        )


#: Noise that is smaller by less than this part is that of a file with rounded numbers.
_SAME = 1e-9
#: A path begins at so many times the λ of a model.
_PATH_START = 1000.0


@dataclass(frozen=True, eq=False, repr=False, kw_only=True)
class KeptStatistics(Stated, Outcome):
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
    lam: float

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
    def ranges(self) -> np.ndarray:
        """Public ones, or those that were found."""
        return np.diff(self.statistics.table.bounds, axis=1)[:, 0]

    def in_range(self, within: LabelsWithin) -> KeptStatistics:
        """The bounds of the labels are those of the range."""
        table = replace(self.statistics.table, y_bounds=(within.low, within.high))
        statistics = replace(self.statistics, table=table)
        lam = within.width * self.lam
        return replace(self, statistics=statistics, lam=lam, **self.placed(within))

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
        errors = found.coef_se if self.intervals is None else None
        return self.model(found.coef, found.intercept, chosen, coef_se=errors)

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
