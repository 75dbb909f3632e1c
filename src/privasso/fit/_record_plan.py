"""A fit of whole records: the minimiser of a perturbed objective, or noisy statistics."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from functools import partial
from typing import Any

import numpy as np
import scipy.sparse as sp
from numpy.typing import ArrayLike

from privasso._covariates import covariates
from privasso._validation import real_labels
from privasso._version import __version__
from privasso.blocks import RowBlocks
from privasso.encoding import Encoding
from privasso.fit._model import ReleasedModel
from privasso.fit._options import FitOptions
from privasso.fit._path import CoefficientPath
from privasso.fit._plan import Plan, statement
from privasso.fit._released import AfterReleaseError
from privasso.fit._rows import prepared_rows
from privasso.fit._start import with_classes
from privasso.fit._statistics import KeptStatistics
from privasso.planning import (
    RecordProgram,
    RecordTable,
    ScreeningOutlook,
    check_room,
    labels_at_one_lam,
)
from privasso.privacy import Guarantee, LabelDP, Privacy, RecordDP, Terms
from privasso.problem import Clipped
from privasso.programs import (
    IntervalProgram,
    Intervals,
    IntervalSums,
    RecordFit,
    RecordFrame,
    RecordStatistics,
    ScreenedObjective,
    StatisticsMechanism,
)
from privasso.queries import Ask

#: Said where the coefficients at one λ are all that is released.
ONE_LAM = (
    "{} needs a release to solve from, and this fit released coefficients at one λ only; call fit "
    "again, which costs"
)


@dataclass(frozen=True, eq=False)
class Published:
    """The model of a perturbed fit.

    It answers like `Released`, but there is nothing to solve again.
    """

    model: ReleasedModel
    privacy: Privacy

    kept = None
    solves_again = False

    def encoded(self, encoding: Encoding | None) -> Published:
        """The same, with the way in which columns of a table became those of X."""
        return replace(self, model=replace(self.model, encoding=encoding))

    def with_intervals(self, intervals: Intervals) -> Published:
        """The same, with intervals for the coefficients that were fitted."""
        at = self.model.screened
        whole = intervals if at is None else intervals.widened(at, self.model.n_features)
        return replace(self, model=replace(self.model, intervals=whole))

    def solve(self, lam: float | str | None = None) -> ReleasedModel:
        """Return the model; another λ would be another release."""
        if lam is not None and lam != self.model.lam:
            raise ValueError(ONE_LAM.format("another λ"))
        return self.model

    def path(self, lams: ArrayLike) -> CoefficientPath:
        """Refuse: each λ would be a release of its own."""
        raise ValueError(ONE_LAM.format("a path over λ"))

    def failure(self, error: Exception, kept: str) -> Exception:
        """Return the error to raise when a step after the release fails."""
        happened = str(error).rstrip(".")
        return AfterReleaseError(f"{self.after_failure(kept)} What happened: {happened}.")

    def after_failure(self, kept: str) -> str:
        """Say what became of the budget, and of the model, which is kept as `kept` says."""
        if not kept:
            return self.privacy.after_failure("")
        return (
            "The privacy budget of this fit is spent, but nothing is lost: the model is kept "
            f"{kept}."
        )


@dataclass(frozen=True, eq=False)
class RecordPlan(Plan):
    """Everything that is decided about a fit of records before the data are read.

    Attributes
    ----------
    options : FitOptions
        What was asked for.
    objective : PerturbedObjective, ScreenedObjective, ShapedObjective or StatisticsMechanism
        Noise, ridge and scaling, and how columns are chosen where they are.
    lam : float
        λ.
    guarantee : Guarantee
        What a fit will state.
    seeded : bool
        Whether the noise comes from a fixed random state.
    """

    options: FitOptions
    objective: RecordProgram
    lam: float
    guarantee: Guarantee = field(repr=False)
    seeded: bool
    X: Any = field(repr=False)
    names: tuple[str, ...] | None = field(default=None, repr=False)

    noise = None

    @property
    def shape(self) -> tuple[int, int]:
        """Rows and columns."""
        return self.X.shape

    @property
    def solves_again(self) -> bool:
        """Whether statistics are released, and not a minimiser."""
        return isinstance(self.objective, StatisticsMechanism)

    @property
    def outlook(self) -> ScreeningOutlook | None:
        """What is predicted of the choice and of the fit, and of a fit of all columns."""
        if not isinstance(self.objective, ScreenedObjective):
            return None
        return ScreeningOutlook.of(self.objective.settings, *self.shape)

    def table(self, y: ArrayLike | None) -> RowBlocks:
        """The records; one whose label is NaN is empty."""
        if isinstance(self.X, RowBlocks):
            return self.X
        return RowBlocks.of_arrays(self.X, real_labels(y, self.X.shape[0]))

    def worst(self, y: np.ndarray) -> list[tuple[Plan, np.ndarray, str]]:
        """Those that bounds allow, where whole records are protected."""
        if self.neighbours.unit == "label":
            return []
        found = self.objective.worst(self.X, y)
        return [(replace(self, X=X), labels, name) for X, labels, name in found]

    def program(self, ask: Ask) -> RecordFit | RecordStatistics:
        """The objective at λ."""
        return self.objective(ask, self.lam)

    def interval_sums(
        self, ask: Ask, found: RecordFit | RecordStatistics, mu: float
    ) -> IntervalSums:
        """At the coefficients; given the columns, where some were chosen."""
        options, privacy = self.options, self.options.privacy
        assert isinstance(privacy, RecordDP)
        fit = found.solve(self.lam) if isinstance(found, RecordStatistics) else found
        bounds = privacy.column_bounds(self.shape[1], self.names)
        at = np.arange(len(bounds)) if fit.screened is None else fit.screened
        frame = RecordFrame(bounds[at], options.fit_intercept, fit.screened)
        program = IntervalProgram(
            frame, mu, self.neighbours, options.targets, privacy.y_bounds, self.objective.kappa
        )
        return program(ask, fit.coef[at], fit.intercept)

    def published(
        self,
        found: RecordFit | RecordStatistics,
        feature_names: tuple[str, ...] | None,
        target: str | None,
    ) -> Published | KeptStatistics:
        privacy, classes = self.options.privacy, self.options.classes
        if isinstance(found, RecordStatistics):
            return KeptStatistics(
                found, privacy, self.guarantee, self.lam, feature_names, __version__, target
            )
        model = ReleasedModel(
            coef=found.coef,
            intercept=found.intercept,
            coef_se=found.coef_se,
            screened=found.screened,
            lam=self.lam,
            guarantee=self.guarantee,
            noise=None,
            feature_names=feature_names,
            software=__version__,
            classes=None if classes is None else classes.names,
        )
        return Published(model, privacy)


def plan_perturbed(
    X: Any,
    options: FitOptions,
    privacy: RecordDP,
    *,
    seeded: bool,
    feature_names: tuple[str, ...] | None,
) -> RecordPlan:
    """Determine noise, ridge, λ and statement from public numbers; only the shape of X is used."""
    if isinstance(X, RowBlocks):
        feature_names = X.names
    else:
        X = covariates(X, finite=False)
    m, n = X.shape
    table = RecordTable(privacy, m, n, feature_names, options.fit_intercept, options.loss)
    program = None if options.screen is None else table.screened(options.screen)
    if program is None:
        if sp.issparse(X):
            raise ValueError(
                f"{type(privacy).__name__} moves each column to the middle of its bounds, which "
                "fills a sparse matrix; pass X.toarray(), or choose some columns first with screen="
            )
        check_room(n)
        program = table.direct()
    return replace(planned(X, options, program, seeded=seeded), names=feature_names)


def plan_labels_at_one_lam(
    X: Any, options: FitOptions, privacy: LabelDP, *, seeded: bool
) -> RecordPlan:
    """The same for labels of public covariates and a loss that is not about their mean."""
    rows = prepared_rows(X, options.fit_intercept)
    if rows.sparse:
        raise ValueError("a fit at one λ fills a sparse matrix; pass X.toarray()")
    X = X if isinstance(X, RowBlocks) else covariates(X, finite=False)
    assert isinstance(options.loss, Clipped)
    return planned(X, options, labels_at_one_lam(privacy, rows, options.loss), seeded=seeded)


def planned(X: Any, options: FitOptions, objective: RecordProgram, *, seeded: bool) -> RecordPlan:
    """The plan that asks what the objective needs."""
    privacy, intercept = options.privacy, options.fit_intercept
    terms = Terms(fit_intercept=intercept, seeded=seeded, n_rows=X.shape[0])
    lam = objective.lam if options.fixed_lam is None else options.fixed_lam
    what = "the coefficients and the intercept" if intercept else "the coefficients"
    at = "every λ" if isinstance(objective, StatisticsMechanism) else "one λ"
    guarantee = statement(privacy, partial(objective, lam=lam), terms, (f"{what} at {at}",))
    guarantee = with_classes(guarantee, options.classes)
    return RecordPlan(options, objective, lam, guarantee, seeded, X)
