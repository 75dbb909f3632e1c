"""From a model and rows as they are given to coefficients and rows of their columns."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from privasso._covariates import covariates
from privasso._types import Foreign, Frame, Matrix
from privasso._validation import attempt, real_array, real_float, real_labels
from privasso.blocks import RowBlocks, blocks_of, sparse_of
from privasso.fit import Classes, ReleasedModel
from privasso.privacy import Guarantee, Privacy

_WHAT = (
    "model must be a ReleasedModel, such as load returns, or a fitted linear estimator with coef_ "
    "and intercept_, of one outcome or of two classes"
)


def released(model: Foreign) -> ReleasedModel:
    """A public linear model, of whatever kind."""
    if hasattr(model, "released_model"):
        model = model.released_model()
    if isinstance(model, ReleasedModel):
        return model
    coef = attempt(lambda: np.asarray(model.coef_, dtype=np.float64))
    intercept = attempt(lambda: np.ravel(model.intercept_))
    if coef is None or intercept is None or coef.size != coef.shape[-1] or intercept.size != 1:
        raise ValueError(_WHAT)
    classes = getattr(model, "classes_", None)
    if classes is not None:
        classes = Classes.given(tuple(classes)).names
    names = getattr(model, "feature_names_in_", None)
    return ReleasedModel(
        real_array("coef_", coef.ravel(), ndim=1),
        real_float("intercept_", float(intercept[0])),
        1.0,
        Guarantee(None, released=("coefficients",)),
        None,
        feature_names=None if names is None else tuple(map(str, names)),
        classes=classes,
    )


def matched(
    model: ReleasedModel, X: Foreign, y: Foreign, privacy: Privacy
) -> tuple[ReleasedModel, RowBlocks]:
    """The model of the columns that it needs, and rows whose columns begin with these.

    Columns are found by name where both know names. What a private record holds is no reason to
    refuse it.
    """
    private = privacy.protects_records
    table = sparse_of(X, y)
    blocks = blocks_of(X, y, private=private) if table is None else None
    if blocks is not None:
        return model, _by_name(model, blocks)
    names: Sequence[str] | None = None
    if table is not None:
        X, y, names = table.X, table.y, table.names
    elif hasattr(X, "columns") and model.feature_names is not None:
        model = model.needed()
        if model.n_features == 0:
            X = np.zeros((len(X), 0))
        else:
            X = _numbers(model, X) if private else model.matrix(X)
    if model.n_features > 0 or np.shape(X)[1:] != (0,):
        X = covariates(X, finite=not private)
    if y is None:
        raise ValueError("evaluate needs the labels y")
    y = getattr(y, "to_numpy", lambda: y)()
    labels = real_labels(y) if model.classes is None else Classes.given(model.classes).coded(y)
    rows = RowBlocks.of_arrays(X, real_labels(labels, X.shape[0]))
    return model, _by_name(model, rows if names is None else replace(rows, names=tuple(names)))


def _numbers(model: ReleasedModel, frame: Frame) -> Matrix:
    """Columns of private records, which must be numbers already: no cell is a reason to refuse."""
    assert model.feature_names is not None
    known = {str(name): name for name in frame.columns}
    for name in model.feature_names:
        if name not in known:
            encoded = model.encoding is not None and name not in model.encoding.inputs
            what = "; encode private records first, by a data dictionary (TableEncoder)"
            raise ValueError(
                f"X lacks the column {name!r}, which the model needs{what if encoded else ''}"
            )
    return frame[[known[name] for name in model.feature_names]]


def _by_name(model: ReleasedModel, rows: RowBlocks) -> RowBlocks:
    """The rows with the columns of the model in their order."""
    known, wanted = rows.names, model.feature_names
    if known is not None and wanted is not None and known != wanted:
        for name in wanted:
            if name not in known:
                raise ValueError(f"X lacks the column {name!r}, which the model needs")
        return rows.select(np.array([known.index(name) for name in wanted], dtype=np.intp))
    if rows.shape[1] != model.n_features:
        raise ValueError(f"X must have {model.n_features} columns, not {rows.shape[1]}")
    return rows
