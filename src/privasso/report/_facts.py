"""The facts about a fit that a report may show."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np

from privasso.fit import CoefficientPath, LogisticLasso, Released, ReleasedModel
from privasso.forecast import Assumptions, Forecast, Scheme, forecast
from privasso.noise import Covariance, Isotropic, PowerLaw, noise_to_dict
from privasso.operators import Covariates
from privasso.planning import ScreeningOutlook, calibrate
from privasso.report._column_noise import ColumnNoise, coefficient_noise, column_noise
from privasso.report._record_mechanism import RecordMechanism
from privasso.report._stability import Stability, stability_of


@dataclass(frozen=True, eq=False)
class FitFacts:
    """What a report shows of a fit; it holds no labels, no noise and no residuals.

    Facts about single columns, the path and the critical λ need public covariates and a guarantee
    that covers the release; otherwise they are None.

    - `model`: the published model; it knows the names of its columns.
    - `composition`: how the loss of several such fits adds up.
    - `label_width`: distance between the bounds of the labels.
    - `even_level`: level that noise of one size on all columns would need for the same guarantee;
      None where the noise is of that kind, or nothing about columns may be shown.
    - `forecast`: what could be expected of the fit before the labels were read.
    - `mechanism`: settings of a fit of whole records.
    - `ranges` (N,): distances between the public bounds of the columns, where covariates are
      private.
    - `influence` (M,): how much the label of each row can move the release, relative to the row
      that can move it most: w_μ‖f_μ‖ in the metric of the noise, in increasing order.
    - `outlook`: what was predicted of a choice of columns.
    - `records`: whether whole records are protected, and not only labels.
    - `effect_error` (N,): root mean square error of an effect in the simulated fits of the
      forecast, where the noise of the coefficients themselves is not released.
    """

    model: ReleasedModel
    target: str
    n_rows: int
    command: str
    composition: str | None = None
    label_width: float | None = None
    columns: ColumnNoise | None = field(default=None, repr=False)
    coef_noise: np.ndarray | None = field(default=None, repr=False)
    path: CoefficientPath | None = field(default=None, repr=False)
    stability: Stability | None = None
    even_level: float | None = None
    forecast: Forecast | None = None
    resolve: str | None = None
    mechanism: RecordMechanism | None = None
    ranges: np.ndarray | None = field(default=None, repr=False)
    influence: np.ndarray | None = field(default=None, repr=False)
    outlook: ScreeningOutlook | None = field(default=None, repr=False)
    records: bool = False
    effect_error: np.ndarray | None = field(default=None, repr=False)

    @property
    def screened_names(self) -> list[str] | None:
        """Names of the columns that were chosen before the fit; None where all were fitted."""
        chosen = self.model.screened
        return None if chosen is None else [self.names[k] for k in chosen.tolist()]

    @property
    def names(self) -> tuple[str, ...]:
        """Names of the columns."""
        known = self.model.feature_names
        return known or tuple(f"x{k}" for k in range(self.model.n_features))

    def to_dict(self) -> dict[str, Any]:
        """The published numbers in a form for JSON; coefficients that are zero are left out."""
        model, errors = self.model, self.model.coef_se
        at = {self.names[k]: k for k in self.support.tolist()}
        return {
            "target": self.target,
            "n_rows": self.n_rows,
            "n_features": model.n_features,
            "lam": model.lam,
            "intercept": model.intercept,
            "coef": {name: float(model.coef[k]) for name, k in at.items()},
            "coef_se": errors if errors is None else {x: float(errors[k]) for x, k in at.items()},
            "classes": None if model.classes is None else list(model.classes),
            "noise": noise_to_dict(model.noise),
            "mechanism": None if self.mechanism is None else self.mechanism.to_dict(),
            "screening": None if self.outlook is None else self.outlook.to_dict(),
            "screened": self.screened_names,
            "for_release": model.guarantee.for_release,
            "guarantee": model.guarantee.to_dict(),
            "statement": str(model.guarantee),
        }

    @property
    def units(self) -> np.ndarray | None:
        """What a column is measured in where effects are shown: its scale, or its range."""
        return self.ranges if self.columns is None else self.columns.scale

    @property
    def unit_words(self) -> str:
        """The unit of a column in words."""
        return "range of its bounds" if self.columns is None else "scale of its column"

    @property
    def support(self) -> np.ndarray:
        """Columns with a coefficient, the largest effect first.

        The effect is the coefficient times the scale of its column where that is public, or times
        the range of its bounds, or the coefficient itself.
        """
        size = np.abs(self.model.coef)
        if self.units is not None:
            size = size * self.units
        order = np.argsort(-size, kind="stable")
        return order[size[order] > 0.0]


def fit_facts(
    released: Released,
    model: ReleasedModel,
    *,
    command: str,
    path: CoefficientPath | None = None,
    assumptions: Assumptions | None = None,
    given_lam: float | None = None,
    resolve: str | None = None,
) -> FitFacts:
    """Collect what may be shown of a fit; single columns only if covariates are public.

    With `assumptions` the facts that only a report needs are computed too. `given_lam` is λ where
    it was given and not chosen from the release; a forecast is then about fits at this λ.
    """
    privacy, rows, release = released.privacy, released.rows, released.release
    bare = FitFacts(
        model=model,
        target=released.target or "the labels",
        n_rows=rows.shape[0],
        command=command,
        composition=privacy.composition(release.mu),
        label_width=privacy.label_width,
    )
    if not privacy.public_covariates:
        return bare
    live = np.flatnonzero(rows.live)
    facts = replace(bare, columns=column_noise(rows, release.covariance.restricted(live)))
    if assumptions is None:
        return facts
    scheme, logistic = Scheme.of_release(released, given_lam), released.classes is not None
    return replace(
        facts,
        coef_noise=_coefficient_noise(released, model),
        path=path,
        stability=stability_of(released.post),
        even_level=_even_level(released),
        forecast=None if logistic or scheme.unavailable else forecast(scheme, assumptions),
        resolve=resolve,
        influence=row_influence(rows, release.covariance.restricted(live), released.weights),
    )


def row_influence(
    rows: Covariates, covariance: Covariance, weights: np.ndarray | None
) -> np.ndarray | None:
    """How much each row can move the release, relative to the largest, in increasing order.

    None where no row can move it.
    """
    reach = np.sqrt(rows.squared_row_norms(covariance))
    if weights is not None:
        reach = reach * weights
    largest = reach.max(initial=0.0)
    return np.sort(reach) / largest if 0.0 < largest < np.inf else None


def _even_level(released: Released) -> float | None:
    noise, rows = released.noise, released.rows
    if not rows.live.any() or (isinstance(noise, PowerLaw) and noise.gamma == 0.0):
        return None
    return calibrate(rows, released.privacy, Isotropic(1.0)).level


def _coefficient_noise(released: Released, model: ReleasedModel) -> np.ndarray | None:
    """The noise of the coefficients; of a logistic regression, their standard errors."""
    post = released.post
    return model.coef_se if isinstance(post, LogisticLasso) else coefficient_noise(post, model.coef)
