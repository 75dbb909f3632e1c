"""A fit of labels on columns that are chosen first."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property, lru_cache, partial
from typing import Any

import numpy as np

from privasso._covariates import covariates
from privasso._tuned import MOST_COMPONENTS, WIDE_PART
from privasso._types import Matrix
from privasso.blocks import RowBlocks
from privasso.fit._label_plan import COMPUTED, plan_fit
from privasso.fit._options import FitOptions
from privasso.fit._plan import Plan, statement
from privasso.fit._posterior import MOST_COLUMNS
from privasso.fit._published import FewColumns, dense_columns
from privasso.fit._rows import held_in_blocks, prepared_rows
from privasso.noise import Shaped
from privasso.planning import (
    PrincipalComponents,
    ScreenedLabels,
    screened_labels,
)
from privasso.privacy import LabelDP, Terms
from privasso.programs import Peeled, Program, Table, check_size
from privasso.queries import Ask, beside

#: Most plans for chosen columns that are remembered.
_PLANS = 256


@dataclass(frozen=True, eq=False)
class ChosenLabels(Program):
    """Choose columns of public covariates, fit them, and correct the intercept.

    Attributes
    ----------
    options : FitOptions
        Of the fit.
    screened : ScreenedLabels
        How columns are chosen, and the privacy of the fit of these.
    seeded : bool
        Whether the noise comes from a fixed random state.
    X : ndarray or sparse matrix
        The covariates.
    components : PrincipalComponents or None
        Those of the covariates that are fitted beside the chosen columns.
    """

    options: FitOptions
    screened: ScreenedLabels
    seeded: bool
    X: Matrix = field(repr=False)
    components: PrincipalComponents | None = field(default=None, repr=False)

    labels_alone = True

    @property
    def kappa(self) -> float:
        """Of the fit."""
        assert self.screened.fit.kappa is not None
        return self.screened.fit.kappa

    @property
    def choosing(self) -> Any:
        """How columns are chosen."""
        return self.screened.settings

    def on(self, X: Matrix) -> ChosenLabels:
        """Without components, which would be others."""
        return replace(self, X=X, components=None)

    def worst(self, X: np.ndarray, y: np.ndarray) -> list[Table]:
        """A label that decides between columns that are otherwise tied."""
        return self.screened.worst(len(y))

    def __call__(self, ask: Ask, lam: float = 0.0) -> FewColumns:
        """Return the fit of the chosen columns and of the components, and which were chosen."""
        chosen = np.sort(self.screened.screening.order(ask, self.peeled))
        plan = self._fit_of(tuple(chosen.tolist()))
        ask = beside(ask, self.fitted_columns(chosen))
        few = plan.published(plan.program(ask)).solve()
        if self.options.fit_intercept:
            residuals = partial(self.screened.residuals, coef=few.coef, intercept=few.intercept)
            level = self.screened.level.correction(ask, residuals)
            few = replace(few, intercept=few.intercept + level)
        return FewColumns(few, chosen, self.components)

    @cached_property
    def peeled(self) -> Peeled:
        """The columns to choose from."""
        return Peeled(self.X, None if self.components is None else self.components.scores)

    def fitted_columns(self, columns: Sequence[int] | np.ndarray) -> np.ndarray:
        """The chosen columns and the components, of which the fit is."""
        chosen = dense_columns(self.X, list(columns))
        return chosen if self.components is None else np.hstack([chosen, self.components.scores])

    @cached_property
    def _fit_of(self) -> Callable[[tuple[int, ...]], Plan]:
        """`fit_of`, which is remembered for the next run of the program."""
        return lru_cache(_PLANS)(self.fit_of)

    def fit_of(self, columns: tuple[int, ...]) -> Plan:
        """The plan for the fit of chosen columns, and of the components if there are any.

        The covariates are public and so is the choice: it is a fit like any other.
        """
        inner = replace(self.options, privacy=self.screened.fit, ledger=None, screen="all")
        # Chosen columns are few already.
        aim = "select" if inner.aim == "select" else "predict"
        inner = replace(inner, among=self.X.shape[1], aim=aim)
        rows = prepared_rows(self.fitted_columns(columns), self.options.fit_intercept)
        if self.components is not None:
            noise = Shaped(shrink=self.screened.shrink(rows))
            inner = replace(inner, noise=noise, lam="auto")
        return plan_fit(rows, inner, seeded=self.seeded)


def plan_chosen_labels(X: Matrix, options: FitOptions, privacy: LabelDP, *, seeded: bool) -> Plan:
    """Determine choice, fit and statement from the table; of all columns if that is better."""
    if options.noise != "auto" or options.scales is not None:
        raise ValueError("screen comes with noise of its own; leave noise and scales out")
    given, source = X, X if isinstance(X, RowBlocks) else None
    X = covariates(X if source is None else source.gathered()[0])
    m, n = X.shape
    components = None
    both = options.fit_intercept and options.aim != "select"
    if options.screen in (None, "auto") and both and n > WIDE_PART * m:
        check_size(m, n)
        components = PrincipalComponents.of(X, MOST_COMPONENTS)
    decide = options.screen in (None, "auto") and components is None and n <= MOST_COLUMNS
    decide = decide and not held_in_blocks(X)
    rows = prepared_rows(X, options.fit_intercept) if decide else None
    screened = None
    if rows is None or rows.live.any():
        screened = screened_labels(
            privacy, m, n, screen=options.screen, components=components, rows=rows
        )
    if screened is None:
        return plan_fit(given, options, seeded=seeded, rows=rows)
    d = screened.settings.components
    components = components.first(d) if components is not None and d else None
    asking = ChosenLabels(options, screened, seeded, X, components)
    beside = (f"fitted beside them: the first {d} principal components of the covariates",)
    terms, then = Terms(options.fit_intercept, seeded, m), (*(beside if d else ()), COMPUTED)
    guarantee = statement(privacy, partial(asking, lam=0.0), terms, then)
    return Plan(options, X, asking, guarantee, seeded, source=source)
