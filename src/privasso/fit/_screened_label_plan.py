"""A fit of labels on columns that are chosen first."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property, lru_cache, partial
from typing import Any

import numpy as np
import scipy.sparse as sp
from numpy.typing import ArrayLike

from privasso._clock import Clock
from privasso._covariates import covariates
from privasso._validation import real_labels
from privasso.blocks import RowBlocks
from privasso.fit._denoised import Denoised
from privasso.fit._label_plan import COMPUTED, LabelPlan, plan_fit
from privasso.fit._model import ReleasedModel
from privasso.fit._options import FitOptions
from privasso.fit._plan import Plan, statement
from privasso.fit._posterior import Posterior
from privasso.fit._record_plan import Published
from privasso.fit._rows import prepared_rows
from privasso.noise import Shaped
from privasso.planning import (
    MOST_COMPONENTS,
    PrincipalComponents,
    ScreenedLabels,
    ScreeningOutlook,
    screened_labels,
)
from privasso.privacy import Guarantee, LabelDP, Terms
from privasso.programs import IntervalSums, Peeled, check_size
from privasso.queries import Ask, Beside

#: Components are considered where there are more columns than this part of the rows.
_WIDE = 0.25
#: Most plans for chosen columns that are remembered.
_PLANS = 256


@dataclass(frozen=True, eq=False)
class ScreenedLabelPlan(Plan):
    """Everything that is decided about a fit of chosen columns before a label is read.

    Attributes
    ----------
    options : FitOptions
        What was asked for.
    screened : ScreenedLabels
        How columns are chosen, and the privacy of the fit of these.
    guarantee : Guarantee
        What a fit will state.
    seeded : bool
        Whether the noise comes from a fixed random state.
    X : ndarray or sparse matrix
        The covariates.
    components : PrincipalComponents or None
        Those of the covariates that are fitted beside the chosen columns.
    source : RowBlocks or None
        The table that the covariates come from, with its labels.
    """

    options: FitOptions
    screened: ScreenedLabels
    guarantee: Guarantee = field(repr=False)
    seeded: bool
    X: Any = field(repr=False)
    components: PrincipalComponents | None = field(default=None, repr=False)
    source: RowBlocks | None = field(default=None, repr=False)

    noise = None

    @property
    def n_fitted(self) -> int:
        """Number of chosen columns and components."""
        d = 0 if self.components is None else self.components.count
        return self.screened.screening.count + d

    @cached_property
    def peeled(self) -> Peeled:
        """The columns to choose from."""
        return Peeled(self.X, None if self.components is None else self.components.scores)

    def fitted_columns(self, columns: Sequence[int] | np.ndarray) -> np.ndarray:
        """The chosen columns and the components, of which the fit is."""
        chosen = self.X[:, list(columns)]
        chosen = np.asarray(chosen.toarray() if sp.issparse(chosen) else chosen, dtype=np.float64)
        if self.components is None:
            return chosen
        return np.hstack([chosen, self.components.scores])

    @property
    def outlook(self) -> ScreeningOutlook:
        """What is predicted of the choice and of the fit, and of a fit of all columns."""
        return ScreeningOutlook.of(self.screened.settings, *self.X.shape)

    @property
    def shape(self) -> tuple[int, int]:
        """Rows and columns."""
        return self.X.shape

    def table(self, y: ArrayLike | None) -> RowBlocks:
        """The labels alone: the covariates are part of the questions."""
        own = self.source.labels if y is None and self.source is not None else None
        labels = real_labels(y, self.shape[0]) if own is None else own
        return RowBlocks.of_arrays(np.empty((labels.size, 0)), labels)

    def worst(self, y: np.ndarray) -> list[tuple[Plan, np.ndarray, str]]:
        """A label that decides between columns that are otherwise tied."""
        found = self.screened.worst(len(y))
        return [(replace(self, X=X, components=None), labels, name) for X, labels, name in found]

    def program(self, ask: Ask) -> tuple[ReleasedModel, np.ndarray]:
        """Choose columns, fit them, and correct the intercept.

        It returns the fit of the chosen columns and of the components, and which were chosen.
        """
        chosen = np.sort(self.screened.screening.order(ask, self.peeled))
        plan = self._fit_of(tuple(chosen.tolist()))
        beside = Beside(ask, self.fitted_columns(chosen))
        few = plan.published(plan.program(beside)).solve()
        if self.options.fit_intercept:
            residuals = partial(self.screened.residuals, coef=few.coef, intercept=few.intercept)
            level = self.screened.level.correction(beside, residuals)
            few = replace(few, intercept=few.intercept + level)
        return few, chosen

    def interval_sums(
        self, ask: Ask, found: tuple[ReleasedModel, np.ndarray], mu: float
    ) -> IntervalSums:
        """For the model of the chosen columns."""
        few, chosen = found
        plan = plan_fit(
            prepared_rows(self.X[:, chosen], bool(self.options.fit_intercept)),
            replace(self.options, privacy=self.screened.fit, ledger=None, screen=None),
            seeded=self.seeded,
        )
        at = self.fitted_columns(chosen)[:, : chosen.size]
        asking = plan.interval_program(mu)
        return asking(Beside(ask, at), few.coef[: chosen.size], few.intercept)

    def published(
        self,
        found: tuple[ReleasedModel, np.ndarray],
        feature_names: tuple[str, ...] | None,
        target: str | None,
    ) -> Published:
        """The model of all columns."""
        few, chosen = found
        whole = self._model(few, chosen, feature_names)
        if self.components is not None:
            whole = self._sparse(whole, few, self.components)
        return Published(whole, self.options.privacy)

    @cached_property
    def _fit_of(self) -> Callable[[tuple[int, ...]], LabelPlan]:
        """`fit_of`, which is remembered for the next run of the program."""
        return lru_cache(_PLANS)(self.fit_of)

    def fit_of(self, columns: tuple[int, ...]) -> LabelPlan:
        """The plan for the fit of chosen columns, and of the components if there are any.

        The covariates are public and so is the choice: it is a fit like any other.
        """
        inner = replace(self.options, privacy=self.screened.fit, ledger=None, screen=None)
        rows = prepared_rows(self.fitted_columns(columns), bool(self.options.fit_intercept))
        if self.components is not None:
            inner = replace(inner, noise=Shaped(shrink=self.screened.shrink(rows)), lam="auto")
        return plan_fit(rows, inner, seeded=self.seeded)

    def _model(
        self, few: ReleasedModel, chosen: np.ndarray, feature_names: tuple[str, ...] | None
    ) -> ReleasedModel:
        """The model of all columns: coefficients of those that were not chosen are zero."""
        coef = np.zeros(self.X.shape[1])
        coef[chosen] = few.coef[: chosen.size]
        errors = None
        if few.coef_se is not None and self.components is None:
            errors = np.full(coef.size, np.nan)
            errors[chosen] = few.coef_se
        return replace(
            few,
            coef=coef,
            coef_se=errors,
            screened=chosen,
            guarantee=self.guarantee,
            feature_names=feature_names,
            noise=None,
        )

    def _sparse(
        self, whole: ReleasedModel, few: ReleasedModel, components: PrincipalComponents
    ) -> ReleasedModel:
        """The sparsest model of all columns that predicts practically as components do.

        The components are combinations of all columns. Nothing but public covariates and what was
        released is used.
        """
        beside = components.coefficients(few.coef[-components.count :])
        coef = whole.coef + beside
        level = whole.intercept - float(components.mean @ beside)
        rows = prepared_rows(self.X, fit_intercept=True)
        mean = level + float(rows.mean @ coef)
        guess = Posterior(coef[rows.live], np.zeros(int(rows.live.sum())), mean)
        lasso = Denoised(guess, rows, tol=self.options.tol)
        clock, lam = Clock(self.options.time_limit), self.options.fixed_lam
        lam = lasso.choose(clock) if lam is None else lam
        coef, intercept = lasso.solve(lam, clock=clock)
        return replace(whole, coef=coef, intercept=intercept, lam=lam)


def plan_screened_labels(
    X: Any, options: FitOptions, privacy: LabelDP, *, seeded: bool
) -> ScreenedLabelPlan | None:
    """Determine choice, fit and statement from the size of the table; None to fit all columns."""
    assert options.screen is not None
    if options.noise != "auto" or options.scales is not None:
        raise ValueError("screen comes with noise of its own; leave noise and scales out")
    source = X if isinstance(X, RowBlocks) else None
    X = covariates(X if source is None else source.gathered()[0])
    m, n = X.shape
    components = None
    if options.screen == "auto" and options.fit_intercept and n > _WIDE * m:
        check_size(m, n)
        components = PrincipalComponents.of(X, MOST_COMPONENTS)
    screened = screened_labels(privacy, m, n, screen=options.screen, components=components)
    if screened is None:
        return None
    terms = Terms(fit_intercept=options.fit_intercept, seeded=seeded, n_rows=m)
    d = screened.settings.components
    components = components.first(d) if components is not None and d else None
    beside = (f"fitted beside them: the first {d} principal components of the covariates",)
    plan = ScreenedLabelPlan(
        options, screened, privacy.guarantee(terms), seeded, X, components, source
    )
    then = (*(beside if d else ()), COMPUTED)
    return plan.stating(statement(privacy, plan.program, terms, then))
