"""The plan of a fit, by what is private."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property, lru_cache, partial
from typing import cast

import numpy as np
import scipy.sparse as sp
from numpy.typing import ArrayLike

from privasso._covariates import covariates
from privasso._tuned import MOST_COMPONENTS, WIDE_PART
from privasso._types import Matrix
from privasso.accounting import GaussianLoss, Loss
from privasso.blocks import RowBlocks
from privasso.fit._label_plan import COMPUTED, plan_fit
from privasso.fit._options import FitOptions
from privasso.fit._plan import Plan, check_asked, statement, with_classes
from privasso.fit._published import FewColumns, dense_columns
from privasso.fit._release_law import MOST_COLUMNS
from privasso.fit._rows import held_in_blocks, prepared_rows
from privasso.noise import Shaped
from privasso.planning import (
    PrincipalComponents,
    RecordProgram,
    RecordTable,
    ScreenedLabels,
    ScreeningSettings,
    aimed_lam,
    check_room,
    divided,
    interval_sensitivity,
    labels_at_one_lam,
    screened_labels,
)
from privasso.privacy import PRIVATE, Formal, LabelDP, RecordDP, Terms
from privasso.problem import Clipped
from privasso.programs import LabelRange, Peeled, Program, Table, check_size, too_large
from privasso.queries import Ask, beside, declared

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
    def choosing(self) -> ScreeningSettings:
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
        inner = replace(
            self.options,
            privacy=self.screened.fit,
            ledger=None,
            screen="all",
            among=self.X.shape[1],
            # Chosen columns are few already.
            aim="select" if self.options.aim == "select" else "predict",
        )
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
    also = (f"fitted beside them: the first {d} principal components of the covariates",)
    terms, then = Terms(options.fit_intercept, seeded, m), (*(also if d else ()), COMPUTED)
    guarantee = statement(privacy, partial(asking, lam=0.0), terms, then)
    return Plan(options, X, asking, guarantee, seeded, source=source)


def plan_records(
    X: Matrix | RowBlocks,
    options: FitOptions,
    privacy: RecordDP,
    *,
    seeded: bool,
    feature_names: tuple[str, ...] | None,
) -> Plan:
    """Determine noise, ridge, λ and statement from public numbers; only the shape of X is used."""
    if isinstance(X, RowBlocks):
        feature_names = X.names
    else:
        X = covariates(X, finite=False)
    m, n = X.shape
    table = RecordTable(privacy, m, n, feature_names, options.fit_intercept, options.loss)
    program = table.screened(options.choice(n))
    if program is None:
        if sp.issparse(X):
            raise ValueError(
                f"{type(privacy).__name__} moves each column to the middle of its bounds, which "
                "fills a sparse matrix; pass X.toarray(), or choose some columns first with screen="
            )
        check_room(n)
        program = table.direct()
    return _planned(X, options, program, seeded=seeded, names=feature_names)


def plan_labels_at_one_lam(
    X: Matrix | RowBlocks, options: FitOptions, privacy: LabelDP, *, seeded: bool
) -> Plan:
    """The same for labels of public covariates and a loss that is not about their mean."""
    rows = prepared_rows(X, options.fit_intercept)
    if rows.sparse:
        raise ValueError("a fit at one λ fills a sparse matrix; pass X.toarray()")
    X = X if isinstance(X, RowBlocks) else covariates(X, finite=False)
    assert isinstance(options.loss, Clipped)
    return _planned(X, options, labels_at_one_lam(privacy, rows, options.loss), seeded=seeded)


def _planned(
    X: Matrix | RowBlocks,
    options: FitOptions,
    asking: RecordProgram,
    *,
    seeded: bool,
    names: tuple[str, ...] | None = None,
) -> Plan:
    intercept, classes = options.fit_intercept, options.classes
    lam = options.fixed_lam
    if lam is None:
        lam = aimed_lam(asking, options.aim, X.shape[0])
    what = "the coefficients and the intercept" if intercept else "the coefficients"
    then = f"{what} at {'every' if asking.again else 'one'} λ"
    terms = Terms(fit_intercept=intercept, seeded=seeded, n_rows=X.shape[0])
    guarantee = statement(options.privacy, partial(asking, lam=lam), terms, (then,))
    return Plan(options, X, asking, with_classes(guarantee, classes), seeded, lam=lam, names=names)


#: What intervals are called among what is released.
_ALSO = "intervals for the coefficients"


def plan_for(
    X: Matrix | RowBlocks,
    options: FitOptions,
    *,
    sample_weight: ArrayLike | None = None,
    seeded: bool = False,
    feature_names: tuple[str, ...] | None = None,
) -> Plan:
    """Plan a fit; it has what is left of the budget beside a range of the labels and intervals."""
    given = sample_weight, seeded, feature_names
    finds = options.privacy.formal and cast(Formal, options.privacy).finds_range
    if options.intervals or finds:
        return _divided(X, options, *given)
    return _alone(X, options, *given)


def _alone(
    X: Matrix | RowBlocks,
    options: FitOptions,
    sample_weight: ArrayLike | None,
    seeded: bool,
    feature_names: tuple[str, ...] | None,
) -> Plan:
    privacy = options.privacy
    if isinstance(X, RowBlocks) and not privacy.formal:
        raise ValueError(
            "blocks of rows are fitted with RecordDP or LabelDP; for other kinds of privacy pass "
            "an array in memory"
        )
    if privacy.protects_records:
        if sample_weight is not None:
            raise ValueError(
                f"sample_weight is not supported with {type(privacy).__name__}: the weight of a "
                "person would have to be protected too; leave it out"
            )
        records = cast(RecordDP, privacy)
        return plan_records(X, options, records, seeded=seeded, feature_names=feature_names)
    labels, shape = cast(LabelDP, privacy), getattr(X, "shape", ())
    screen = options.choice(shape[1] if len(shape) == 2 else 0)
    if options.classes is None and not options.loss.about_mean:
        if sample_weight is not None or options.screen not in (None, "all"):
            raise ValueError(
                f"screen and sample_weight do not go with {options.loss.about} under LabelDP; "
                "leave them out"
            )
        return plan_labels_at_one_lam(X, options, labels, seeded=seeded)
    if screen is None and (sample_weight is not None or held_in_blocks(X) or too_large(*shape)):
        screen = "all"
    if screen != "all":
        if sample_weight is not None:
            raise ValueError("sample_weight is not supported with screen; leave one of them out")
        return plan_chosen_labels(X, options, labels, seeded=seeded)
    return plan_fit(X, options, sample_weight=sample_weight, seeded=seeded)


def _divided(
    X: Matrix | RowBlocks,
    options: FitOptions,
    sample_weight: ArrayLike | None,
    seeded: bool,
    names: tuple[str, ...] | None,
) -> Plan:
    """Divide the budget between the questions of a fit, those before and those after it."""
    privacy = cast("LabelDP | RecordDP", options.privacy)
    epsilon, delta, asks, mu = privacy.epsilon, privacy.delta, None, 0.0
    if options.intervals:
        if privacy.protects_records and cast(RecordDP, privacy).bounds == PRIVATE:
            raise ValueError(
                "intervals need bounds of the columns from public knowledge; give bounds, or leave "
                "intervals out"
            )
        mu = interval_sensitivity(epsilon, delta)
    if privacy.finds_range:
        if options.fixed_lam is not None:
            raise ValueError(
                "lam as a number is in units of the labels, whose range is not known beforehand "
                "with y_bounds='private'; leave lam out, or give y_bounds"
            )
        left = math.sqrt(privacy.mu**2 - mu**2)  # beside intervals
        asks = LabelRange.of_budget(left, privacy.pair, X.shape[0], centred=options.fit_intercept)
    beside = () if asks is None else asks.losses

    def alone(share: float) -> tuple[Plan, tuple[Loss, ...]]:
        part = replace(options, privacy=privacy.within(share), ledger=None)
        found = _alone(X, part, sample_weight, seeded, names)
        return found, found.guarantee.losses

    inner = divided(epsilon, delta, (*beside, *((GaussianLoss(mu),) if mu else ())), alone)
    inner_options = replace(inner.options, ledger=options.ledger)
    whole = replace(inner, options=inner_options, mu=mu, range=asks)
    asked, stated = declared(whole.program, whole.shape[0]), inner.guarantee
    check_asked(asked, stated)
    losses = tuple(query.loss for query in asked if query.loss is not None)
    said, start = [query.sentence for query in asked], 0 if asks is None else asks.questions
    if asks is not None:
        terms = Terms(fit_intercept=options.fit_intercept, seeded=seeded, n_rows=whole.shape[0])
        stated = replace(privacy.guarantee(terms, losses), released=stated.released)
    also = said[start + len(inner.guarantee.losses) :]
    released = (*said[:start], *stated.released, *also, *((_ALSO,) if mu else ()))
    return replace(
        whole,
        guarantee=replace(
            stated,
            parameters=tuple({**dict(stated.parameters), "epsilon": epsilon}.items()),
            losses=losses,
            released=tuple(dict.fromkeys(released)),
        ),
    )
