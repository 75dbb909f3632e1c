"""What comes of a fit: a model, or what models are solved from."""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass, replace
from typing import Any, ClassVar, Self, cast

import numpy as np
from numpy.typing import ArrayLike

from privasso.blocks import LabelsWithin
from privasso.encoding import Encoding
from privasso.fit._model import ReleasedModel
from privasso.fit._path import CoefficientPath
from privasso.operators import Covariates
from privasso.privacy import Guarantee, Privacy
from privasso.programs import Intervals

#: Said where the coefficients at one λ are all that is released.
ONE_LAM = (
    "{} needs a release to solve from, and this fit released coefficients at one λ only; call fit "
    "again, which costs"
)


class AfterReleaseError(RuntimeError):
    """A step after the release failed; the message says what became of the release."""


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

    privacy: Privacy
    kept_as: ClassVar[str | None] = None

    @property
    def kept(self) -> Any:
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
    def known_target(self) -> str | None:
        """Name of the labels, where it was kept."""
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
        return replace(cast(Any, self), encoding=encoding)

    def with_intervals(self, intervals: Intervals) -> Self:
        """The same, with intervals for the coefficients."""
        return replace(cast(Any, self), intervals=intervals)

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

    @property
    def guarantee(self) -> Guarantee:
        """That of the model."""
        return self.model.guarantee

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
        privacy = replace(cast(Any, self.privacy), y_bounds=bounds)
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
