"""The design of a fit that chooses columns first: how many, in how many rounds, at which share."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Literal, Protocol, runtime_checkable

from privasso.model import Model

Screen = int | Literal["auto"]


@dataclass(frozen=True)
class Sparse:
    """What a model says of a table, as a choice of columns needs it.

    Attributes
    ----------
    n_rows, n_columns : int
        Size of the table.
    n_true : int
        Number of columns with coefficients.
    explained : float
        Part of the variance of the labels that they explain.
    label_sd : float
        Standard deviation of the labels.

    Examples
    --------
    >>> table = Sparse(n_rows=5000, n_columns=2000, n_true=10, explained=0.5, label_sd=2.0)
    >>> table.explained * table.label_sd**2  # variance that ten columns explain together
    2.0
    """

    n_rows: int
    n_columns: int
    n_true: int
    explained: float
    label_sd: float

    @classmethod
    def of(cls, model: Model, n_features: int) -> Sparse:
        """The table of a model with so many columns.

        Examples
        --------
        >>> import privasso as pv
        >>> model = pv.Model(alpha=2.5, rho=0.005, sigma_xi=0.05, scales=pv.Constant(1.0))
        >>> Sparse.of(model, 2000)
        Sparse(n_rows=5000, n_columns=2000, n_true=10, explained=0.66..., label_sd=0.086...)
        """
        signal = model.rho * model.scales.moment(1.0)
        total = signal + model.sigma_xi**2
        return cls(
            round(model.alpha * n_features),
            n_features,
            max(1, round(model.rho * n_features)),
            signal / total,
            math.sqrt(total),
        )


@dataclass(frozen=True)
class ScreenedDesign:
    """A choice of columns and a fit of these under a formal guarantee; made by `optimal_design`.

    Attributes
    ----------
    covers : {"labels", "records"}
        What the guarantee protects.
    epsilon, delta : float
        The budget of choice and fit together.
    columns : int
        How many columns are chosen in all rounds: the argument ``screen`` of `PrivateLasso`.
    rounds : int
        In how many rounds.
    share : float
        Squared sensitivity of everything before the last fit, relative to the whole.
    found : float
        Predicted chance that a column with a coefficient is chosen.
    r2, direct_r2 : float
        Predicted R² of the fit of chosen columns, and of a fit of all.
    table : Sparse
        The table that this is for.

    Examples
    --------
    >>> import privasso as pv
    >>> from privasso.privacy import RecordBudget
    >>> model = pv.Model(alpha=2.0, rho=0.0025)
    >>> best = pv.optimal_design(
    ...     model, record_dp=RecordBudget(1.0, 1e-6), n_features=4000, screen="auto"
    ... )
    >>> best.columns < 4000, best.r2 > best.direct_r2
    (True, True)
    """

    covers: str
    epsilon: float
    delta: float
    columns: int
    rounds: int
    share: float
    found: float
    r2: float
    direct_r2: float
    table: Sparse

    @property
    def better(self) -> str:
        """``"screened"``, or ``"direct"`` where a fit of all columns is predicted to be better."""
        return "screened" if self.r2 > self.direct_r2 else "direct"

    @property
    def E(self) -> float:
        """Predicted error of the fit of chosen columns on a new record, label noise included."""
        return (1.0 - self.r2) * self.table.label_sd**2


@runtime_checkable
class ScreeningBudget(Protocol):
    """A privacy budget under which columns can be chosen, such as `LabelDP` or `RecordBudget`.

    Examples
    --------
    >>> from privasso.privacy import RecordBudget
    >>> table = Sparse(n_rows=50000, n_columns=2000, n_true=10, explained=0.66, label_sd=0.1)
    >>> found = RecordBudget(1.0, 1e-6).screened_design(table, 12)
    >>> found.columns, found.direct_r2 < found.r2 <= 0.66
    (12, True)
    """

    def screened_design(self, table: Sparse, screen: Screen) -> ScreenedDesign:
        """Return the choice with the largest predicted R², of so many columns if they are given."""
        ...
