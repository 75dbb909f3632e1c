"""What is attacked in a private fit of given data: by its kind of privacy and its mechanism."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field, replace
from functools import partial

import numpy as np
from numpy.typing import NDArray

from privasso.attacks._made_up import (
    record_at_bounds,
    record_for_choice,
    record_influence,
    records_made_up,
    table_for_label_choice,
)
from privasso.attacks._on_average import membership_pairs
from privasso.attacks._pair import Pair
from privasso.attacks._programs import label_pairs, record_pairs
from privasso.fit import FitOptions, LabelPlan, RecordPlan, ScreenedLabelPlan, plan_for
from privasso.privacy import Guarantee, LabelDP, OnAverage
from privasso.programs import PerturbedObjective, ScreenedObjective

FloatArray = NDArray[np.float64]

_RATIO = (
    "Each release gets the logarithm of its likelihood with the record over that without it as a "
    "score, which is the most powerful test."
)
#: What an attacker knows, by how data sets differ.
_LABELS = {
    "replaced": "The attacker knows the covariates, all other labels and all settings, and knows "
    "that the label in question is at one of its bounds, but not at which.",
    "emptied": "The attacker knows the covariates, all other labels and all settings, and knows "
    "that the label in question is at its upper bound or missing, but not which.",
}
_RECORDS = {
    "emptied": "The attacker knows all other records and all settings, and knows the record in "
    "question, but not whether it is among the data or an empty one in its place.",
    "replaced": "The attacker knows all other records and all settings, and knows two records, "
    "each the mirror image of the other, but not which of them is among the data.",
}
_MEMBERSHIP = (
    "The attacker knows all other records and all settings, and knows the record in question, but "
    "not whether it is among the data."
)

#: Fewest rows for which a table is made up.
_FEWEST = 8


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
    made_up : callable
        Makes pairs of records that are not among the data.
    """

    guarantee: Guarantee
    influence: FloatArray
    pairs: Callable[[dict[int, str]], list[Pair]] = field(repr=False)
    knowledge: str
    made_up: Callable[[], list[Pair]] = field(default=list, repr=False)

    @property
    def words(self) -> str:
        """What the attacker knows, and how releases are scored."""
        return f"{self.knowledge} {_RATIO}"


def target_of(options: FitOptions, X: FloatArray, y: FloatArray) -> Target:
    """Plan the fit, and find out how it can be attacked."""
    privacy = options.privacy
    if not privacy.formal and not (isinstance(privacy, OnAverage) and privacy.sigma > 0.0):
        raise ValueError("there is no noise, so every record can be told from the release")
    plan = plan_for(X, options)
    if isinstance(plan, ScreenedLabelPlan):
        return _chosen_columns(plan, X, y)
    if isinstance(plan, RecordPlan) and privacy.protects_records:
        return _records(plan, X, y)
    if isinstance(privacy, LabelDP):
        assert isinstance(plan, LabelPlan | RecordPlan)
        pairs = partial(label_pairs, plan, y, privacy.y_bounds)
        said = _LABELS[plan.neighbours.relation]
        return Target(plan.guarantee, _label_influence(plan, X, y), pairs, said)
    assert isinstance(plan, LabelPlan)
    return _members(plan, X, y)


def _chosen_columns(plan: ScreenedLabelPlan, X: FloatArray, y: FloatArray) -> Target:
    """Labels that columns are chosen by; the covariates are part of the questions."""
    pairs, made = partial(label_pairs, plan, y, plan.screened.fit.y_bounds), label_for_choice
    influence, said = _leverage(X - X.mean(axis=0)), _LABELS[plan.neighbours.relation]
    return Target(plan.guarantee, influence, pairs, said, made_up=partial(made, plan))


def label_for_choice(plan: ScreenedLabelPlan) -> list[Pair]:
    """A label that decides between columns that are otherwise tied, in a table of the same size."""
    m, n = plan.X.shape
    if m < _FEWEST:
        return []
    bounds = plan.screened.fit.y_bounds
    X, y = table_for_label_choice(m, n, bounds)
    name = "a label made up to decide which columns are chosen"
    return label_pairs(replace(plan, X=X, components=None), y, bounds, {0: name})


def _label_influence(plan: LabelPlan | RecordPlan, X: FloatArray, y: FloatArray) -> FloatArray:
    """Squared length of each row in the norm in which the noise is spherical."""
    if isinstance(plan, RecordPlan):
        assert isinstance(plan.objective, PerturbedObjective)
        return record_influence(plan.objective, X, y)
    calibration, rows = plan.calibration, plan.rows
    found = rows.squared_row_norms(calibration.covariance)
    if rows.centred:
        found = found + calibration.sigma_sum**-2
    weights = calibration.weights
    return found if weights is None else found * weights**2


def _members(plan: LabelPlan, X: FloatArray, y: FloatArray) -> Target:
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
    )


def _records(plan: RecordPlan, X: FloatArray, y: FloatArray) -> Target:
    """Records under a formal guarantee, by the program of the plan."""
    mechanism = plan.objective
    table = mechanism if isinstance(mechanism, PerturbedObjective) else mechanism.table
    if isinstance(mechanism, ScreenedObjective) or table.estimate is not None:
        # There are no bounds in whose units rows could be compared, or too many columns.
        influence = _leverage(X - X.mean(axis=0))
    else:
        influence = record_influence(table, X, y)

    def made() -> list[Pair]:
        if isinstance(mechanism, ScreenedObjective):
            made_up = record_for_choice(mechanism, len(X))
        elif isinstance(mechanism, PerturbedObjective):
            made_up = records_made_up(mechanism, X, y)
        else:
            made_up = [record_at_bounds(table, X, y)]
        tables = ((rows, labels, {0: name}) for rows, labels, name in made_up)
        return [pair for table in tables for pair in record_pairs(plan, *table)]

    pairs, said = partial(record_pairs, plan, X, y), _RECORDS[plan.neighbours.relation]
    return Target(plan.guarantee, influence, pairs, said, made_up=made)


def _leverage(F: FloatArray) -> FloatArray:
    """Diagonal of the projection onto the columns."""
    U, sizes, _ = np.linalg.svd(F, full_matrices=False)
    U = U[:, sizes > 1e-12 * np.max(sizes, initial=0.0)]
    return np.einsum("ij,ij->i", U, U)
