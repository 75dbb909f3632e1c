"""Evaluate a public model on private rows."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import cast

import numpy as np

from privasso._types import Seed
from privasso._validation import generator, probability
from privasso._version import __version__
from privasso.accounting import sensitivity_for
from privasso.evaluation._classes import ClassEvaluation
from privasso.evaluation._linear import WITHIN, LinearEvaluation
from privasso.evaluation._ratios import Estimate
from privasso.evaluation._result import Evaluation
from privasso.evaluation._rows import matched, released
from privasso.evaluation._sums import Scored
from privasso.fit import Charge, ReleasedModel, statement, warn_user
from privasso.ledger import Ledger
from privasso.privacy import LabelDP, Privacy, RecordDP, Terms, check_kind
from privasso.programs import Point
from privasso.queries import Answering, bit_source

_CALIBRATION = ("calibration intercept", "calibration slope")
#: Metrics of linear models, with their ranges in units of the bounds, and of classes.
_LINEAR = ("r2", "mae", "mse", "rmse", "calibration", WITHIN)
_CLASSES = ("auc", "log-loss", "accuracy", "calibration")
_PUBLIC = (
    "the model is public: it does not depend on these rows, or only through a release that is "
    "accounted for beside this one"
)


def evaluate(
    model: object,
    X: object,
    y: object = None,
    *,
    privacy: Privacy,
    metrics: Sequence[str] | str | None = None,
    ledger: Ledger | None = None,
    random_state: Seed = None,
    level: float = 0.95,
    coverage: float = 0.9,
) -> Evaluation:
    """Tell how well a public linear model predicts private rows, with noise.

    Rows should not be those of the fit: on these a model looks better than it is, and nothing here
    can notice it. Labels and predictions are moved into `y_bounds` first.

    Parameters
    ----------
    model : ReleasedModel or estimator
        A published model, a fitted `PrivateLasso` or `PrivateLogisticLasso`, or any public linear
        estimator with `coef_` and `intercept_`.
    X : array_like or whatever `PrivateLasso.fit` takes
        Covariates. Columns of a data frame, and of files, are found by name.
    y : array_like or str
        Labels, as for a fit; for two classes their names, in blocks of rows 0 and 1. A missing one
        (NaN) is an empty record, or the middle of the bounds where one label becomes another one.
    privacy : LabelDP or RecordDP
        What to protect, at which budget, within which bounds; ``y_bounds="private"`` stands for
        those that the fit of the model found. Further settings are of fits.
    metrics : sequence of str
        ``"r2"``, ``"mae"``, ``"mse"``, ``"rmse"``, ``"calibration"`` (intercept and slope) and
        ``"prediction-interval"`` of a linear model, by default R² and the mean absolute error;
        ``"auc"``, ``"log-loss"``, ``"accuracy"`` and ``"calibration"`` of a logistic regression, by
        default the first two. Those of linear models share the budget.
    ledger : Ledger, optional
        A budget to charge before noise is drawn.
    random_state : None, int, Generator or RandomState
        None takes the operating system's entropy; anything else is for experiments.
    level : float
        How often an interval holds the metric of the population, rows and noise drawn anew.
    coverage : float
        Which part of new labels the prediction interval holds, at least: on average over rows,
        noise and new rows, if all rows are of one law and, where records can be empty, half of them
        have labels.

    Returns
    -------
    Evaluation
        `values`, `intervals`, `guarantee`, and `sentences`.

    Examples
    --------
    >>> import numpy as np, privasso as pv
    >>> rng = np.random.default_rng(0)
    >>> X = rng.uniform(size=(8000, 2))
    >>> y = X @ [0.5, 0.3] + 0.1 * rng.standard_normal(8000)
    >>> privacy = pv.RecordDP(1.0, 1e-6, bounds=(0, 1), y_bounds=(-0.5, 1.5))
    >>> est = pv.PrivateLasso(privacy=privacy, random_state=0).fit(X[:4000], y[:4000])
    >>> found = pv.evaluate(
    ...     est, X[4000:], y[4000:], privacy=privacy, metrics=("r2", "mae"), random_state=1
    ... )
    >>> low, high = found.intervals["r2"]
    >>> bool(low < 0.73 < high), sorted(found.values)
    (True, ['mae', 'r2'])
    """
    return evaluated(model, X, y, Request(privacy, metrics, ledger, random_state, level, coverage))


@dataclass(frozen=True)
class Request:
    """What is asked of `evaluate`; `prepared` is what is assumed about how the rows were read."""

    privacy: Privacy
    metrics: Sequence[str] | str | None = None
    ledger: Ledger | None = None
    random_state: Seed = None
    level: float = 0.95
    coverage: float = 0.9
    prepared: Sequence[str] = ()


def evaluated(model: object, X: object, y: object, asked: Request) -> Evaluation:
    """The same."""
    privacy, ledger = asked.privacy, asked.ledger
    check_kind(privacy)
    if not privacy.formal:
        raise ValueError("evaluate needs LabelDP or RecordDP, whose budget its sums are paid from")
    if ledger is not None and not isinstance(ledger, Ledger):
        raise ValueError("ledger must be a Ledger, such as Ledger(epsilon, delta)")
    found = released(model)
    names = _names(asked.metrics, found)
    kind = privacy if found.classes is None else privacy.for_classes()
    privacy = cast("LabelDP | RecordDP", kind)
    if privacy.finds_range:
        bounds = found.guarantee.label_bounds
        if bounds is None:
            raise ValueError("the model states no bounds of its labels; give y_bounds")
        privacy = replace(privacy, y_bounds=bounds)
    level = probability("level", asked.level)
    rng = _generator(asked.random_state)
    full, (found, rows) = found, matched(found, X, y, privacy)
    program = _program(full, found, privacy, names, probability("coverage", asked.coverage))
    terms = Terms(fit_intercept=True, seeded=rng is not None, n_rows=rows.shape[0])
    then = (f"{', '.join(names)} of a model",)
    said = statement(privacy, program, terms, then)
    said = replace(said, assumptions=(*said.assumptions, *asked.prepared, _PUBLIC))
    if rng is None and said.warning is not None:
        warn_user(said.warning)
    what = f"evaluation of a model on {rows.shape[0]} rows, privasso {__version__}"
    with Charge(privacy, said, ledger, what) as charge:
        bits = charge.before(
            bit_source(rng), lambda: rows.labels if rows.engine.in_memory else rows.identity
        )
        estimates = program(Answering(rows, bits, said.losses))(level)
    low, high = privacy.y_bounds
    return Evaluation.of(
        {name: _in_units(name, one, high - low) for name, one in estimates.items()},
        level=level,
        coverage=float(asked.coverage),
        n_rows=rows.shape[0],
        guarantee=said,
        classes=found.classes is not None,
    )


def _names(metrics: Sequence[str] | str | None, model: ReleasedModel) -> tuple[str, ...]:
    """The metrics that are asked for, each once, with both of calibration."""
    known = _LINEAR if model.classes is None else _CLASSES
    if metrics is None:
        metrics = known[:2]
    names = (metrics,) if isinstance(metrics, str) else tuple(metrics)
    for name in names:
        if name not in known:
            of = "a linear model" if model.classes is None else "a model of two classes"
            raise ValueError(f"metrics of {of} are {', '.join(known)}, not {name!r:.60}")
    if not names:
        raise ValueError(f"metrics is empty; choose some of {', '.join(known)}")
    parts = [_CALIBRATION if name == "calibration" else (name,) for name in names]
    return tuple(dict.fromkeys(one for part in parts for one in part))


def _generator(random_state: Seed) -> np.random.Generator | None:
    """As estimators have it: None is the operating system's entropy."""
    if isinstance(random_state, np.random.RandomState):
        return generator(int(random_state.randint(0, 2**31 - 1)))
    return None if random_state is None else generator(random_state)


def _program(
    full: ReleasedModel,
    model: ReleasedModel,
    privacy: LabelDP | RecordDP,
    names: tuple[str, ...],
    coverage: float,
) -> LinearEvaluation | ClassEvaluation:
    """The questions; `model` has the columns of `full` that it needs."""
    at, bounds = np.flatnonzero(model.coef), None
    if privacy.protects_records:
        records = cast(RecordDP, privacy)
        bounds = records.column_bounds(full.n_features, full.feature_names)
        if model is not full:
            assert full.feature_names is not None
            assert model.feature_names is not None
            places = {name: k for k, name in enumerate(full.feature_names)}
            bounds = bounds[[places[name] for name in model.feature_names]]
        bounds = bounds[at]
    pair = privacy.pair
    point = Point(model.coef[at], model.intercept, privacy.y_bounds, bounds, pair.empties)
    scored, mu = Scored(point, bounds is None), sensitivity_for(privacy.epsilon, privacy.delta)
    columns = None if at.size == model.n_features else at
    if model.classes is not None:
        return ClassEvaluation(scored, columns, names, mu, pair)
    return LinearEvaluation(scored, columns, names, mu, pair, coverage)


def _in_units(name: str, found: Estimate, width: float) -> Estimate:
    """In the units of the labels, within what is possible."""
    if name == "r2":
        return found.of(lambda ratio: 1.0 - max(ratio, 0.0))
    if name in ("auc", "accuracy"):
        return found.of(lambda ratio: min(max(ratio, 0.0), 1.0))
    if name == "log-loss":
        return found.of(lambda ratio: max(ratio, 0.0))
    if name in ("mae", WITHIN):
        return found.of(lambda ratio: min(max(ratio, 0.0), 1.0) * width)
    if name in ("mse", "rmse"):
        power = 1.0 if name == "mse" else 0.5
        return found.of(lambda ratio: (min(max(ratio, 0.0), 1.0) ** power) * width ** (2 * power))
    return found.of(lambda ratio: ratio * width) if name == "calibration intercept" else found
