"""What the guarantee of a record-level fit says, for each mechanism."""

from __future__ import annotations

import math
from dataclasses import replace
from typing import TYPE_CHECKING

from privasso.privacy._column_bounds import PRIVATE
from privasso.privacy._composition import alone
from privasso.privacy._guarantee import PREPARED, Guarantee
from privasso.privacy._kind import Terms
from privasso.privacy._label_level import RESIDUAL_MEAN, Level
from privasso.privacy._objective_claim import further_rounds, objective_parameters
from privasso.privacy._record_claim import (
    CONTRIBUTES,
    ONE_RECORD,
    RECORD_CLAIMS,
    SCREENED_CLAIM,
    STATISTICS_CLAIM,
)
from privasso.privacy._record_statistics import StatisticsMechanism
from privasso.privacy._screen import price_of_choice
from privasso.privacy._screened_objective import ScreenedObjective
from privasso.queries import ObjectiveNoise

if TYPE_CHECKING:
    from privasso.privacy._record_dp import RecordDP


def screened_statement(privacy: RecordDP, objective: ScreenedObjective, terms: Terms) -> Guarantee:
    """State record-level differential privacy of the choice and of the coefficients."""
    screening, noise = objective.screening, objective.noise
    plain = objective_statement(privacy, noise, terms, objective.level)
    numbers = {
        **dict(plain.parameters),
        **dict(screening.choices.parameters),
        "mu": objective.mu,
    }
    losses = [screening.choices]
    if objective.rounds:
        numbers.update(further_rounds([one.losses for one in objective.rounds]))
        numbers["shift"] += math.fsum(one.table.noise.shift for one in objective.rounds)
        losses += [one.choices for one in objective.rounds]
    chosen = price_of_choice(losses, objective.mu, len(screening.bounds), privacy.delta)
    return replace(
        plain,
        kind=SCREENED_CLAIM.kind,
        parameters=tuple(numbers.items()),
        released=(chosen, *plain.released),
    )


def statistics_statement(
    privacy: RecordDP, mechanism: StatisticsMechanism, terms: Terms
) -> Guarantee:
    """State record-level differential privacy of the statistics."""
    low, high = privacy.y_bounds
    parameters = {
        "delta": privacy.delta,
        "epsilon": privacy.epsilon,
        "mu": math.hypot(mechanism.mu, privacy.mu_before),
        "n_rows": float(terms.n_rows),
        "y_high": high,
        "y_low": low,
    }
    sums = "noisy sums of products of covariates and labels"
    return Guarantee(
        kind=STATISTICS_CLAIM.kind,
        parameters=tuple(parameters.items()),
        adjacency=ONE_RECORD,
        assumptions=_assumptions(privacy, terms, at_one_lam=False),
        released=(*privacy.released_before, sums, "coefficients at every λ"),
        seeded=terms.seeded,
    )


def objective_statement(
    privacy: RecordDP, noise: ObjectiveNoise, terms: Terms, level: Level | None
) -> Guarantee:
    """State record-level differential privacy of the coefficients at one λ.

    What is stated follows from the settings and not from the noise, so that noise which is too
    small for all that is released is refused.
    """
    low, high = privacy.y_bounds
    before, claims = privacy.released_before, RECORD_CLAIMS[noise.loss]
    after = () if level is None else (RESIDUAL_MEAN,)
    mu = math.hypot(privacy.mu_before, 0.0 if level is None else level.mu)
    what = "the coefficients and the intercept" if terms.fit_intercept else "the coefficients"
    parameters = {
        **objective_parameters(noise.c, noise.t, noise.shift),
        "delta": privacy.delta,
        "epsilon": privacy.epsilon,
        "n_rows": float(terms.n_rows),
        "y_high": high,
        "y_low": low,
    }
    if mu > 0.0:
        parameters["mu"] = mu
    return Guarantee(
        kind=claims[bool(before)].kind,
        parameters=tuple(parameters.items()),
        adjacency=ONE_RECORD,
        assumptions=_assumptions(privacy, terms, at_one_lam=True),
        released=(*before, f"{what} at one λ", *after),
        seeded=terms.seeded,
    )


def _assumptions(privacy: RecordDP, terms: Terms, *, at_one_lam: bool) -> tuple[str, ...]:
    given = "the bounds of the columns and of the labels"
    if privacy.bounds == PRIVATE:
        given = "the bounds of the labels"
    what = "λ and all settings" if at_one_lam else "and all settings"
    if privacy.shape is not None and privacy.shape != PRIVATE:
        given = f"{given}, the rows that the shape comes from"
    return (
        f"{given}, {what} of the fit were chosen without looking at the data",
        "the number of rows and the names of the columns are public",
        PREPARED,
        CONTRIBUTES,
        alone("records"),
        terms.entropy,
    )
