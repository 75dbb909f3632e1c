"""The facts about a fit that a report may show."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import cast

import numpy as np

from privasso._types import Passed
from privasso.encoding import Dictionary, LevelCode
from privasso.fit import CoefficientPath, Outcome, Plan, Released, ReleasedModel
from privasso.forecast import Assumptions, Forecast, Scheme, forecast
from privasso.noise import noise_to_dict
from privasso.planning import ScreeningOutlook
from privasso.report._columns import ColumnNoise, column_noise, noise_of_records, notes
from privasso.report._mechanism import RecordMechanism, mechanism_of


@dataclass(frozen=True, eq=False)
class FitFacts:
    """What a report shows of a fit; it holds no labels, no noise and no residuals.

    Facts about single columns need public covariates; otherwise they are None.

    - `model`: the published model; it knows the names of its columns.
    - `composition`: how the loss of several such fits adds up.
    - `label_width`: distance between the bounds of the labels.
    - `forecast`: what could be expected of the fit before the labels were read.
    - `mechanism`: settings of a fit at one λ or of whole records.
    - `ranges` (N,): distances between the public bounds of the columns, where covariates are
      private.
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
    path: CoefficientPath | None = field(default=None, repr=False)
    forecast: Forecast | None = None
    resolve: str | None = None
    mechanism: RecordMechanism | None = None
    ranges: np.ndarray | None = field(default=None, repr=False)
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
    def coef_noise(self) -> np.ndarray | None:
        """Standard errors of the coefficients, where effects have a unit."""
        return None if self.units is None else self.model.coef_se

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
    target: str | None = None,
    assumptions: Assumptions | None = None,
    given_lam: float | None = None,
    **known: Passed,
) -> FitFacts:
    """Collect what may be shown of a fit, or of a model from a kept release, which has no plan.

    `dictionary` describes the columns of private records. With `assumptions` the facts about public
    columns that only a report needs are computed, too. `given_lam` is λ where it was given and not
    chosen from the release; a forecast is then about fits at this λ. The others are facts already.
    """
    public = made.public_rows
    facts = FitFacts(
        model=model,
        target=target or model.target or "the labels",
        n_rows=int(model.guarantee["n_rows"]) if public is None else public.shape[0],
        composition=made.composition,
        label_width=made.privacy.label_width,
        records=made.privacy.protects_records,
        **known,
    )
    if public is not None:
        return _with_columns(facts, cast(Released, made), assumptions, given_lam)
    mechanism, ranges = None if plan is None else mechanism_of(plan), made.ranges
    if dictionary is not None and dictionary.limits is not None:
        ranges = np.diff(dictionary.limits, axis=1)[:, 0]
    alone, rare = model.coef_se, None
    records = mechanism if isinstance(mechanism, RecordMechanism) else None
    if records is not None and plan is not None and ranges is not None:
        found = noise_of_records(plan, records.name, records.numbers, ranges)
        alone, rare = found or (alone, None)
    outlook = None if plan is None else plan.outlook
    return replace(
        facts, noise_alone=alone, rare=rare, mechanism=records, ranges=ranges, outlook=outlook
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
    rows, release = released.rows, released.release
    if not released.privacy.public_covariates:
        return facts
    columns = column_noise(rows, release.covariance.restricted(np.flatnonzero(rows.live)))
    linear = facts.model.classes is None
    facts = replace(facts, columns=columns, noise_alone=columns.alone if linear else None)
    if assumptions is None:
        return facts
    scheme = Scheme.of_release(released, given_lam)
    known = linear and not scheme.unavailable
    whole = released.guarantee["epsilon"]
    expected = forecast(scheme, assumptions, epsilon=whole) if known else None
    return replace(facts, perturbed=release.mu is None, forecast=expected)
