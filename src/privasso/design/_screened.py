"""The design of a fit that chooses columns first: how many, in how many rounds, at which share."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace

from privasso.model import Model
from privasso.planning import Screen, ScreeningPrior, check_screen, direct_r2, usual_screening
from privasso.privacy import FormalBudget

#: Most of the variance of labels that may be explained in a prediction.
_MOST = 0.999


@dataclass(frozen=True)
class Sparse:
    """What a model says of a table, as a choice of columns needs it.

    - `n_rows`, `n_columns`: size of the table.
    - `n_true`: number of columns with coefficients.
    - `explained`: part of the variance of the labels that they explain.
    - `label_sd`: standard deviation of the labels.
    """

    n_rows: int
    n_columns: int
    n_true: int
    explained: float
    label_sd: float

    @classmethod
    def of(cls, model: Model, n_features: int) -> Sparse:
        """The table of a model with so many columns."""
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

    - `covers` ("labels" or "records"): what the guarantee protects.
    - `epsilon`, `delta`: the budget of choice and fit together.
    - `columns`: how many columns are chosen in all rounds: the argument ``screen`` of
      `PrivateLasso`.
    - `rounds`: in how many rounds.
    - `share`: squared sensitivity of everything before the last fit, relative to the whole.
    - `found`: predicted chance that a column with a coefficient is chosen.
    - `r2`, `direct_r2`: predicted R² of the fit of chosen columns, and of a fit of all.
    - `table`: the table that this is for.
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


def best_screening(privacy: FormalBudget, table: Sparse, screen: Screen) -> ScreenedDesign:
    """Return the numbers with the largest predicted R² for this table.

    Where the labels have bounds, their deviation relative to these follows from the model.
    """
    check_screen(screen)
    epsilon, delta, neighbours = privacy.epsilon, privacy.delta, privacy.pair
    prior = ScreeningPrior(n_true=table.n_true, explained=min(table.explained, _MOST))
    if privacy.label_width is not None:
        prior = replace(prior, label_deviation=table.label_sd / privacy.label_width)
    size = table.n_rows, table.n_columns
    count = None if screen == "auto" else int(screen)
    # A number that is given, or the best one, even where a fit of all columns is better.
    settings = usual_screening(
        epsilon, delta, *size, count=count, prior=prior, neighbours=neighbours, always=True
    )
    assert settings is not None
    return ScreenedDesign(
        "labels" if neighbours.unit == "label" else "records",
        epsilon,
        delta,
        settings.columns,
        settings.further + 1,
        settings.share,
        settings.found(prior, *size),
        max(settings.r2(prior, *size), 0.0),
        max(direct_r2(prior, epsilon, delta, *size, neighbours), 0.0),
        table,
    )
