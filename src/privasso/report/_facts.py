"""Everything that a report may say about a fit."""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np

from privasso.artefact import ReleasedModel
from privasso.estimator import CoefficientPath
from privasso.report._columns import Columns
from privasso.report._forecast import Assumptions, Forecast
from privasso.report._stability import Stability


@dataclass(frozen=True, eq=False)
class FitFacts:
    """A fit as the report sees it: no labels, no noise, no residuals.

    What describes single columns, the path and the critical λ are only there under label
    differential privacy, where covariates are public and the release is covered; otherwise they
    are None.

    Attributes
    ----------
    model : ReleasedModel
        The published model; it knows the names of its columns.
    target : str
        Name of the labels.
    n_rows : int
        Rows of the fit.
    command : str
        The command that made it.
    """

    model: ReleasedModel
    target: str
    n_rows: int
    command: str
    mu: float | None = None
    columns: Columns | None = field(default=None, repr=False)
    coef_noise: np.ndarray | None = field(default=None, repr=False)
    path: CoefficientPath | None = field(default=None, repr=False)
    stability: Stability | None = None
    assumptions: Assumptions | None = None
    forecasts: tuple[Forecast, ...] = ()
    resolve: str | None = None

    @property
    def names(self) -> tuple[str, ...]:
        """Names of the columns."""
        known = self.model.feature_names
        return known or tuple(f"x{k}" for k in range(self.model.n_features))

    @property
    def support(self) -> np.ndarray:
        """Columns with a coefficient, the largest effect first.

        The effect is the coefficient times the scale of its column where that is public, the
        coefficient itself otherwise.
        """
        size = np.abs(self.model.coef)
        if self.columns is not None:
            size = size * self.columns.scale
        order = np.argsort(-size, kind="stable")
        return order[size[order] > 0.0]
