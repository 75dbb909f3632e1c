"""The facts about a fit that a report may show."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import cast

import numpy as np

from privasso.encoding import Dictionary, LevelCode
from privasso.fit import (
    CoefficientPath,
    LogisticLasso,
    Outcome,
    Plan,
    Released,
    ReleasedModel,
)
from privasso.forecast import Assumptions, Forecast, Scheme, forecast
from privasso.noise import Covariance, Isotropic, PowerLaw, noise_to_dict
from privasso.operators import Covariates
from privasso.planning import ScreeningOutlook, calibrate
from privasso.report._column_noise import ColumnNoise, coefficient_noise, column_noise
from privasso.report._mechanism import RecordMechanism, mechanism_of
from privasso.report._stability import Stability, stability_of
from privasso.report._unclear import noise_of_columns, noise_of_records, notes


@dataclass(frozen=True, eq=False)
class FitFacts:
    """What a report shows of a fit; it holds no labels, no noise and no residuals.

    Facts about single columns and the critical λ need public covariates; otherwise they are None.

    - `model`: the published model; it knows the names of its columns.
    - `composition`: how the loss of several such fits adds up.
    - `label_width`: distance between the bounds of the labels.
    - `even_level`: level that noise of one size on all columns would need for the same guarantee;
      None where the noise is of that kind, or nothing about columns may be shown.
    - `forecast`: what could be expected of the fit before the labels were read.
    - `mechanism`: settings of a fit at one λ or of whole records.
    - `ranges` (N,): distances between the public bounds of the columns, where covariates are
      private.
    - `influence` (M,): how much the label of each row can move the release, relative to the row
      that can move it most: w_μ‖f_μ‖ in the metric of the noise, in increasing order.
    - `outlook`: what was predicted of a choice of columns.
    - `records`: whether whole records are protected, and not only labels.
    - `perturbed`: whether the minimiser of a perturbed objective was released, and not products.
    - `noise_alone` (N,): deviation that noise alone gives each coefficient, by public numbers;
      `rare` (N,): columns for which it is that of a level that hardly any row has.
    - `references`: levels that others are compared with, which the encoding does not know.
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
    perturbed: bool = False
    noise_alone: np.ndarray | None = field(default=None, repr=False)
    rare: np.ndarray | None = field(default=None, repr=False)
    references: Mapping[str, str] = field(default_factory=dict)

    @property
    def all_references(self) -> dict[str, str]:
        """The level that the others of a column are compared with, where there is one."""
        codes = () if self.model.encoding is None else self.model.encoding.codes
        found = {
            code.name: code.reference
            for code in codes
            if isinstance(code, LevelCode) and code.reference is not None
        }
        return {**found, **self.references}

    @property
    def notes(self) -> list[str]:
        """What cannot be told of each coefficient: by intervals, or else by public noise levels."""
        if self.model.intervals is not None:
            return self.model.notes()
        return notes(self.model.coef, self.noise_alone, self.rare)

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

    def to_dict(self) -> dict[str, object]:
        """The published numbers in a form for JSON; coefficients that are zero are left out."""
        model = self.model
        errors = model.coef_se if model.intervals is None else None
        at = {self.names[k]: k for k in self.support.tolist()}
        return {
            "target": self.target,
            "n_rows": self.n_rows,
            "n_features": model.n_features,
            "lam": model.lam,
            "intercept": model.intercept,
            "coef": {name: float(model.coef[k]) for name, k in at.items()},
            "coef_se": errors if errors is None else {x: float(errors[k]) for x, k in at.items()},
            "notes": {
                name: note for name, note in zip(self.names, self.notes, strict=True) if note
            },
            "intervals": _lines(model),
            "references": self.all_references,
            "classes": None if model.classes is None else list(model.classes),
            "noise": noise_to_dict(model.noise),
            **({"mechanism": None} if self.mechanism is None else self.mechanism.to_dict()),
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
    def rise(self) -> str:
        """The unit of a column in one word."""
        return "range" if self.columns is None else "scale"

    @property
    def unit_words(self) -> str:
        """The unit of a column in words."""
        return "range of its bounds" if self.columns is None else "scale of its column"

    @property
    def shown(self) -> np.ndarray:
        """Columns in the order in which they are shown: with intervals all, the support first."""
        if self.model.intervals is None:
            return self.support
        rest = np.flatnonzero(self.model.coef == 0.0)
        return np.append(self.support, np.setdiff1d(rest, self.support))

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


def facts_of(
    made: Outcome,
    model: ReleasedModel,
    plan: Plan | None = None,
    dictionary: Dictionary | None = None,
    *,
    command: str,
    target: str | None = None,
    path: CoefficientPath | None = None,
    assumptions: Assumptions | None = None,
    forecast: Forecast | None = None,
    given_lam: float | None = None,
    resolve: str | None = None,
    references: Mapping[str, str] | None = None,
) -> FitFacts:
    """Collect what may be shown of a fit, or of a model from a kept release, which has no plan.

    `dictionary` describes the columns of private records, and `forecast` is about them. With
    `assumptions` the facts about public columns that only a report needs are computed, too.
    `given_lam` is λ where it was given and not chosen from the release; a forecast is then about
    fits at this λ.
    """
    public = made.public_rows
    facts = FitFacts(
        model=model,
        target=target or model.target or "the labels",
        n_rows=int(model.guarantee["n_rows"]) if public is None else public.shape[0],
        command=command,
        composition=made.composition,
        label_width=made.privacy.label_width,
        path=path,
        resolve=resolve,
        records=made.privacy.protects_records,
        references=references or {},
    )
    if public is not None:
        return _with_columns(facts, cast(Released, made), assumptions, given_lam)
    mechanism, ranges = None if plan is None else mechanism_of(plan), made.ranges
    if dictionary is not None and dictionary.limits is not None:
        ranges = np.diff(dictionary.limits, axis=1)[:, 0]
    alone, rare = model.coef_se, None
    if isinstance(mechanism, RecordMechanism) and plan is not None and ranges is not None:
        found = noise_of_records(plan, mechanism, ranges)
        alone, rare = (alone, None) if found is None else found
    return replace(
        facts,
        noise_alone=alone,
        rare=rare,
        coef_noise=None if ranges is None else model.coef_se,
        forecast=forecast,
        mechanism=mechanism if isinstance(mechanism, RecordMechanism) else None,
        ranges=ranges,
        outlook=None if plan is None else plan.outlook,
    )


def _lines(model: ReleasedModel) -> dict[str, list[dict[str, object]]] | None:
    """Intervals of 95 % for each target, as plain values."""
    if model.intervals is None:
        return None
    return {target: model.summary(target=target).to_dicts() for target in model.intervals.laws}


def _with_columns(
    facts: FitFacts, released: Released, assumptions: Assumptions | None, given_lam: float | None
) -> FitFacts:
    """The facts with those about single columns, where these are public."""
    rows, release, post = released.rows, released.release, released.post
    if not released.privacy.public_covariates:
        return facts
    covariance = release.covariance.restricted(np.flatnonzero(rows.live))
    columns = column_noise(rows, covariance)
    alone = noise_of_columns(columns) if facts.model.classes is None else None
    facts = replace(facts, columns=columns, noise_alone=alone)
    if assumptions is None:
        return facts
    scheme, logistic = Scheme.of_release(released, given_lam), isinstance(post, LogisticLasso)
    coef, errors = facts.model.coef, facts.model.coef_se
    return replace(
        facts,
        coef_noise=errors if isinstance(post, LogisticLasso) else coefficient_noise(post, coef),
        stability=stability_of(post),
        even_level=_even_level(released),
        perturbed=release.mu is None,
        forecast=None if logistic or scheme.unavailable else forecast(scheme, assumptions),
        influence=row_influence(rows, covariance, released.weights),
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
