"""What is attacked in a private fit of given data: by its kind of privacy and its mechanism."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from privasso.attacks._labels import label_influence, label_pairs
from privasso.attacks._on_average import membership_pairs
from privasso.attacks._pair import Pair
from privasso.attacks._published import emptied_pairs
from privasso.attacks._records import made_up_pairs, record_influence, record_pairs
from privasso.attacks._screened import made_for_choice, screened_pairs
from privasso.attacks._screened_labels import labels_made_for_choice, screened_label_pairs
from privasso.attacks._sums import sum_pairs
from privasso.fit import FitOptions, PerturbedPlan, Plan, ScreenedLabelPlan, plan_for
from privasso.privacy import (
    Guarantee,
    LabelDP,
    OnAverage,
    PerturbedObjective,
    ScreenedObjective,
    StatisticsMechanism,
)
from privasso.queries import NoisySum

FloatArray = NDArray[np.float64]

_RATIO = (
    "Each release gets the logarithm of its likelihood with the record over that without it as a "
    "score, which is the most powerful test."
)
_LEARNED = (
    "The law of what this fit publishes is not known in closed form. So each release gets a linear "
    "score that was learned from as many other releases, which is weaker than the best test."
)
_LABELS = (
    "The attacker knows the covariates, all other labels and all settings, and knows that the "
    "label in question is at one of its bounds, but not at which."
)
_EMPTIED = (
    "The attacker knows all other records and all settings, and knows the record in question, but "
    "not whether it is among the data or an empty one in its place."
)
_MEMBERSHIP = (
    "The attacker knows all other records and all settings, and knows the record in question, but "
    "not whether it is among the data."
)


@dataclass(frozen=True, eq=False)
class Target:
    """A mechanism on given data, ready to be attacked.

    Attributes
    ----------
    guarantee : Guarantee
        What it claims.
    influence : ndarray of shape (M,)
        How much each record weighs.
    pairs : callable
        Makes pairs of data sets for records with their names.
    knowledge : str
        What the attacker knows.
    exact : bool
        Whether the likelihood ratio is known.
    made_up : callable
        Makes pairs of records that are not among the data.
    """

    guarantee: Guarantee
    influence: FloatArray
    pairs: Callable[[dict[int, str]], list[Pair]] = field(repr=False)
    knowledge: str
    exact: bool
    made_up: Callable[[], list[Pair]] = field(default=list, repr=False)

    @property
    def words(self) -> str:
        """What the attacker knows, and how releases are scored."""
        return f"{self.knowledge} {_RATIO if self.exact else _LEARNED}"


def target_of(options: FitOptions, X: FloatArray, y: FloatArray) -> Target:
    """Plan the fit, and find out how it can be attacked."""
    privacy = options.privacy
    if not privacy.formal and not (isinstance(privacy, OnAverage) and privacy.sigma > 0.0):
        raise ValueError("there is no noise, so every record can be told from the release")
    plan = plan_for(X, options)
    if isinstance(plan, ScreenedLabelPlan):
        return Target(
            plan.guarantee,
            _leverage(X - X.mean(axis=0)),
            lambda chosen: screened_label_pairs(plan, y, chosen),
            _LABELS,
            exact=True,
            made_up=lambda: labels_made_for_choice(plan),
        )
    if isinstance(plan, PerturbedPlan):
        return _records(plan, X, y)
    if isinstance(plan.options.privacy, LabelDP):
        return Target(
            plan.guarantee,
            label_influence(plan),
            lambda chosen: label_pairs(plan, y, chosen),
            _LABELS,
            exact=True,
        )
    return _members(plan, X, y)


def _members(plan: Plan, X: FloatArray, y: FloatArray) -> Target:
    """Records under average-case noise."""
    lam = plan.options.fixed_lam
    assert lam is not None
    live, variances = plan.rows.live, plan.calibration.covariance.diagonal
    F = np.ascontiguousarray(X[:, live])
    return Target(
        plan.guarantee,
        _leverage(F),
        lambda chosen: membership_pairs(F, y, lam, variances, chosen),
        _MEMBERSHIP,
        exact=True,
    )


def _records(plan: PerturbedPlan, X: FloatArray, y: FloatArray) -> Target:
    """Records under a formal guarantee, by the mechanism of the plan."""
    mechanism, lam = plan.objective, plan.lam
    if isinstance(mechanism, StatisticsMechanism) and mechanism.table.estimate is None:
        query = NoisySum(mechanism.products(mechanism.table), mechanism.mu)
        return Target(
            plan.guarantee,
            record_influence(mechanism.table, X, y),
            lambda chosen: sum_pairs(query, X, y, chosen),
            _EMPTIED,
            exact=True,
            made_up=lambda: sum_pairs(query, *_longest(mechanism.table, X, y)),
        )
    if isinstance(mechanism, PerturbedObjective) and mechanism.estimate is None:
        return Target(
            plan.guarantee,
            record_influence(mechanism, X, y),
            lambda chosen: record_pairs(mechanism, lam, X, y, chosen),
            _EMPTIED,
            exact=True,
            made_up=lambda: made_up_pairs(mechanism, lam, X, y),
        )
    if isinstance(mechanism, ScreenedObjective):
        return Target(
            plan.guarantee,
            _leverage(X - X.mean(axis=0)),
            lambda chosen: screened_pairs(mechanism, lam, X, y, chosen),
            _EMPTIED,
            exact=True,
            made_up=lambda: made_for_choice(mechanism, lam, len(X)),
        )
    return Target(
        plan.guarantee,
        _leverage(X - X.mean(axis=0)),
        lambda chosen: emptied_pairs(plan, y, chosen),
        _EMPTIED,
        exact=False,
    )


def _longest(
    table: PerturbedObjective, X: FloatArray, y: FloatArray
) -> tuple[FloatArray, FloatArray, dict[int, str]]:
    """The data with a record at all upper bounds in the first place."""
    X, y = X.copy(), y.copy()
    X[0], y[0] = table.bounds[:, 1], table.y_bounds[1]
    return X, y, {0: "a record made up at the bounds"}


def _leverage(F: FloatArray) -> FloatArray:
    """Diagonal of the projection onto the columns."""
    U, sizes, _ = np.linalg.svd(F, full_matrices=False)
    U = U[:, sizes > 1e-12 * np.max(sizes, initial=0.0)]
    return np.einsum("ij,ij->i", U, U)
