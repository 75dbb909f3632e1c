"""A privacy budget for whole records, for designs that are made before there are data."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar, TypeAlias

from privasso._validation import positive_float, probability
from privasso.privacy._label_dp import LabelDP
from privasso.privacy._record_dp import RecordDP
from privasso.queries import EMPTIED, Neighbours


@dataclass(frozen=True)
class RecordBudget:
    """(ε, δ)-differential privacy of whole records: one is emptied, or the reverse.

    It says how much noise objective perturbation needs, and no more: bounds of the columns and of
    the labels come with the data.

    Parameters
    ----------
    epsilon : float
        ε > 0.
    delta : float
        δ in (0, 1), well below one over the number of rows.

    Examples
    --------
    >>> import privasso as pv
    >>> budget = pv.privacy.RecordBudget(epsilon=1.0, delta=1e-6)
    >>> round(pv.optimal_design(pv.Model(alpha=10.0), pv.Budget(budget)).t, 1)
    0.5
    """

    epsilon: float
    delta: float

    public_covariates: ClassVar[bool] = False
    mu_before: ClassVar[float] = 0.0
    label_width: ClassVar[None] = None

    def __post_init__(self) -> None:
        object.__setattr__(self, "epsilon", positive_float("epsilon", self.epsilon))
        object.__setattr__(self, "delta", probability("delta", self.delta))

    @property
    def pair(self) -> Neighbours:
        """How data sets differ."""
        return EMPTIED


#: What formal noise is computed from.
FormalBudget: TypeAlias = LabelDP | RecordDP | RecordBudget
