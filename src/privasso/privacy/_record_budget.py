"""A privacy budget for whole records, for designs that are made before there are data."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from privasso._validation import positive_float, probability
from privasso.accounting import objective_sensitivity
from privasso.design import ScreenedDesign, Sparse
from privasso.privacy._screen import Screen
from privasso.privacy._screening_design import best_screening
from privasso.queries import EMPTIED


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
    >>> from privasso.accounting import objective_delta
    >>> from privasso.privacy import RecordBudget
    >>> budget = RecordBudget(epsilon=1.0, delta=1e-6)
    >>> c = 1.0 / budget.objective_noise(0.3)
    >>> round(c, 4), objective_delta(1.0, c, 0.3, "records") <= 1e-6
    (0.2056, True)
    """

    epsilon: float
    delta: float

    public_covariates: ClassVar[bool] = False

    def __post_init__(self) -> None:
        object.__setattr__(self, "epsilon", positive_float("epsilon", self.epsilon))
        object.__setattr__(self, "delta", probability("delta", self.delta))

    def screened_design(self, table: Sparse, screen: Screen) -> ScreenedDesign:
        """The best choice of columns for labels that fill their bounds in the usual way."""
        return best_screening(self.epsilon, self.delta, EMPTIED, table, screen, None)

    def objective_noise(self, t: float) -> float:
        """Return σ/(κR) of objective perturbation with residuals clipped at κ and a ridge R²/t."""
        return 1.0 / objective_sensitivity(self.epsilon, self.delta, t, "records")
