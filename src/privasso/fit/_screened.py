"""A fit of labels on columns that are chosen first."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from privasso._validation import finite_labels
from privasso.fit._model import ReleasedModel
from privasso.fit._options import FitOptions
from privasso.fit._perturbed import Published
from privasso.fit._plan import plan_fit
from privasso.fit._start import account, check_length, check_run, fit_in_words
from privasso.privacy import (
    Guarantee,
    LabelDP,
    ScreenedLabels,
    ScreeningOutlook,
    Terms,
    bit_source,
)


@dataclass(frozen=True, eq=False)
class ScreenedLabelPlan:
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
    """

    options: FitOptions
    screened: ScreenedLabels
    guarantee: Guarantee = field(repr=False)
    seeded: bool
    X: Any = field(repr=False)

    noise = None

    @property
    def outlook(self) -> ScreeningOutlook:
        """What is predicted of the choice and of the fit, and of a fit of all columns."""
        return ScreeningOutlook.of(self.screened.settings, *self.X.shape)

    def release(
        self,
        y: ArrayLike,
        *,
        rng: np.random.Generator | None = None,
        feature_names: tuple[str, ...] | None = None,
        target: str | None = None,
        charged: bool = False,
    ) -> Published:
        """Read the labels, choose columns with noise, fit them with noise, and solve.

        The ledger, if there is one, is charged before any noise is drawn, for both together, unless
        that was done already or nothing will be published (`charged`).
        """
        check_run(rng, self.seeded, feature_names, target)
        labels = finite_labels(y)
        shape, privacy = self.X.shape, self.screened.fit
        check_length(labels, shape[0])
        if not charged:
            what = fit_in_words(shape, target, self.seeded)
            account(labels, self.guarantee, self.options.ledger, what)
        chosen = self.screened.screening.choose(self.X, labels, bit_source(rng))
        # The covariates are public and so is the choice: what follows is a fit like any other.
        inner = replace(self.options, privacy=self.screened.fit, ledger=None, screen=None)
        plan = plan_fit(self.X[:, chosen], inner, seeded=self.seeded)
        few = plan.release(labels, rng=rng, charged=True).solve()
        if self.options.fit_intercept:
            part = self.X[:, chosen]
            residuals = np.clip(labels, *privacy.y_bounds) - part @ few.coef - few.intercept
            level = self.screened.level.release(np.asarray(residuals).ravel(), bit_source(rng))
            few = replace(few, intercept=few.intercept + level)
        return Published(self._model(few, chosen, feature_names), self.options.privacy)

    def _model(
        self, few: ReleasedModel, chosen: np.ndarray, feature_names: tuple[str, ...] | None
    ) -> ReleasedModel:
        """The model of all columns: coefficients of those that were not chosen are zero."""
        coef = np.zeros(self.X.shape[1])
        coef[chosen] = few.coef
        errors = None
        if few.coef_se is not None:
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


def plan_screened_labels(
    X: Any, options: FitOptions, privacy: LabelDP, *, seeded: bool
) -> ScreenedLabelPlan | None:
    """Determine choice, fit and statement from the size of the table; None to fit all columns."""
    assert options.screen is not None
    if options.noise != "auto" or options.scales is not None:
        raise ValueError("screen comes with noise of its own; leave noise and scales out")
    m, n = X.shape
    screened = privacy.screened(m, n, fit_intercept=options.fit_intercept, screen=options.screen)
    if screened is None:
        return None
    terms = Terms(fit_intercept=options.fit_intercept, seeded=seeded, n_rows=m)
    guarantee = privacy.guarantee_for_screened(screened, terms)
    return ScreenedLabelPlan(options, screened, guarantee, seeded, X)
