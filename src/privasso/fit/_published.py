"""What is published of the answers to the questions of a fit, and asked for intervals beside it."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, cast

import numpy as np

from privasso._clock import Clock
from privasso._types import Found, Matrix
from privasso.blocks import taken
from privasso.fit._denoised import Denoised
from privasso.fit._model import ReleasedModel
from privasso.fit._outcome import KeptStatistics, Outcome, Published, Stated
from privasso.fit._release_law import MOST_COLUMNS, Posterior
from privasso.fit._released import Released
from privasso.fit._rows import prepared_rows
from privasso.operators import Covariates
from privasso.planning import PrincipalComponents, release_mechanism
from privasso.privacy import Formal, RecordDP
from privasso.programs import (
    IntervalProgram,
    IntervalSums,
    LabelFrame,
    Outlook,
    RecordFit,
    RecordFrame,
    RecordStatistics,
    Release,
)
from privasso.queries import Ask, beside

if TYPE_CHECKING:
    from privasso.fit._plan import Plan


@dataclass(frozen=True, eq=False)
class FewColumns:
    """A fit of chosen columns of public covariates, and of components beside them.

    Attributes
    ----------
    few : ReleasedModel
        The fit.
    chosen : ndarray of int
        Which columns were chosen.
    components : PrincipalComponents or None
        Those beside them.
    """

    few: ReleasedModel
    chosen: np.ndarray = field(repr=False)
    components: PrincipalComponents | None = field(default=None, repr=False)


def dense_columns(X: Matrix, columns: np.ndarray | list[int]) -> np.ndarray:
    """Some columns of an array or a sparse matrix."""
    return np.asarray(taken(X, columns), dtype=np.float64)


def published(
    plan: Plan, found: Found, feature_names: tuple[str, ...] | None, target: str | None
) -> Outcome:
    """The answers with names and statement."""
    options, privacy = plan.options, plan.options.privacy
    stated = _stated(plan, feature_names, target)
    match found:
        case Release():
            return _released(plan, found, stated)
        case RecordStatistics():
            return KeptStatistics(statistics=found, lam=plan.lam, **stated.told)
        case FewColumns():
            whole = replace(
                _spread(plan, found),
                guarantee=plan.guarantee,
                feature_names=feature_names,
                target=target,
            )
            return Published(whole, privacy)
    model = stated.model(
        found.coef,
        found.intercept,
        plan.lam,
        coef_se=found.coef_se,
        screened=found.screened,
        classes=None if options.classes is None else options.classes.names,
    )
    return Published(model, privacy)


def _stated(
    plan: Plan, feature_names: tuple[str, ...] | None = None, target: str | None = None
) -> Stated:
    return Stated(
        privacy=plan.options.privacy,
        guarantee=plan.guarantee,
        noise=plan.noise,
        feature_names=feature_names,
        target=target,
    )


def _released(plan: Plan, release: Release, stated: Stated) -> Released:
    """What models at any λ are solved from."""
    rows, calibration, options = plan.covariates, plan.calibration, plan.options
    assert rows is not None
    assert calibration is not None
    weights = release_mechanism(options.privacy).weights_of(rows, calibration)
    return Released(release=release, rows=rows, weights=weights, options=options, **stated.told)


def _spread(plan: Plan, found: FewColumns) -> ReleasedModel:
    """The model of all columns: coefficients of those that were not chosen are zero."""
    few, chosen, components = found.few, found.chosen, found.components
    coef = np.zeros(plan.shape[1])
    coef[chosen] = few.coef[: chosen.size]
    errors = None
    if few.coef_se is not None and components is None:
        errors = np.full(coef.size, np.nan)
        errors[chosen] = few.coef_se
    whole = replace(few, coef=coef, coef_se=errors, screened=chosen, noise=None)
    return whole if components is None else _sparse(plan, whole, few, components)


def _sparse(
    plan: Plan, whole: ReleasedModel, few: ReleasedModel, components: PrincipalComponents
) -> ReleasedModel:
    """The sparsest model of all columns that predicts practically as components do.

    The components are combinations of all columns. Nothing but public covariates and what was
    released is used.
    """
    options, beside = plan.options, components.coefficients(few.coef[-components.count :])
    coef = whole.coef + beside
    level = whole.intercept - float(components.mean @ beside)
    rows = prepared_rows(plan.rows, fit_intercept=True)
    mean = level + float(rows.mean @ coef)
    guess = Posterior(coef[rows.live], np.zeros(int(rows.live.sum())), mean)
    lasso, clock = Denoised(guess, rows, tol=options.tol), Clock(options.time_limit)
    lam = lasso.choose(clock) if options.fixed_lam is None else options.fixed_lam
    coef, intercept = lasso.solve(lam, clock=clock)
    return replace(whole, coef=coef, intercept=intercept, lam=lam)


def interval_sums(plan: Plan, ask: Ask, found: Found) -> IntervalSums:
    """Ask for intervals where a program has ended; given the columns, where some were chosen."""
    frame: LabelFrame | RecordFrame
    match found:
        case Release():
            frame = plan.frame
            coef, intercept = _released(plan, found, _stated(plan)).start
        case FewColumns():
            X, k = dense_columns(plan.rows, found.chosen), found.chosen.size
            frame = label_frame(prepared_rows(X, plan.options.fit_intercept))
            coef, intercept = found.few.coef[:k], found.few.intercept
            ask = beside(ask, X)
        case _:
            frame, coef, intercept = _record_frame(plan, found.solve(plan.lam))
    return _interval_program(plan, frame)(ask, coef, intercept)


def interval_outlook(plan: Plan, deviation: float) -> Outlook | None:
    """What may be expected of intervals for residuals of a deviation; None if columns are chosen.

    Of private records it uses the size of the table.
    """
    if not plan.mu or plan.asking.choosing is not None:
        return None
    if plan.options.privacy.protects_records:
        frame, _, _ = _record_frame(plan, RecordFit(np.zeros(plan.shape[1]), 0.0))
    else:
        frame = plan.frame
    low, high = cast(Formal, plan.options.privacy).y_bounds
    return _interval_program(plan, frame).outlook(plan.shape[0], deviation / (high - low))


def _interval_program(plan: Plan, frame: LabelFrame | RecordFrame) -> IntervalProgram:
    bounds = cast(Formal, plan.options.privacy).y_bounds
    return IntervalProgram(
        frame, plan.mu, plan.neighbours, plan.options.targets, bounds, plan.asking.kappa
    )


def _record_frame(plan: Plan, fit: RecordFit) -> tuple[RecordFrame, np.ndarray, float]:
    privacy = cast(RecordDP, plan.options.privacy)
    bounds = privacy.column_bounds(plan.shape[1], plan.names)
    at = np.arange(len(bounds)) if fit.screened is None else fit.screened
    frame = RecordFrame(bounds[at], plan.options.fit_intercept, fit.screened)
    return frame, fit.coef[at], fit.intercept


def label_frame(rows: Covariates) -> LabelFrame:
    """The coordinates of intervals on public covariates."""
    if rows.weights is not None:
        raise ValueError("sample_weight is not supported with intervals; leave one of them out")
    if not 0 < int(rows.live.sum()) <= MOST_COLUMNS:
        raise ValueError(
            f"intervals are for 1 to {MOST_COLUMNS} columns that vary; choose some of them first, "
            "by hand or with screen"
        )
    return LabelFrame(rows)
