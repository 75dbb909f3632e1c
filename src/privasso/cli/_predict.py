"""`privasso predict`: apply a published model to a data file."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Literal, cast

import numpy as np

from privasso._text import escaped
from privasso._types import Matrix
from privasso.cli._fit import FitSettings
from privasso.cli._options import DATA, AsJson, Force, argument, named, option, tell

if TYPE_CHECKING:
    from privasso.fit import ReleasedModel
    from privasso.tables import Table


def predict(
    reading: Annotated[FitSettings, "row_names"],
    model: Path = argument("Model that `privasso fit` wrote."),
    data: Path = argument(DATA),
    out: Path = option("Predictions, csv or parquet by the ending.", ...),
    unknown: str = option("Levels that the model does not know: error or ignore.", "error"),
    clip: bool = option("Move predictions into the bounds of the labels.", False),
    force: Force = False,
    as_json: AsJson = False,
) -> None:
    """Predict with a model; columns are found by name, in any order, and others are ignored.

    Columns whose coefficients are zero may be missing. A logistic regression gives probabilities
    of the positive class.

    Example: `privasso predict model.json new-patients.csv --out predictions.csv`
    """
    from privasso.artefact import load
    from privasso.cli._outputs import PREDICTIONS, Outputs, files_read
    from privasso.fit import both_probabilities
    from privasso.tables import check_ending, open_table, table_bytes

    if unknown not in ("error", "ignore"):
        raise ValueError(f"--unknown must be error or ignore, not {unknown!r}")
    check_ending(out)
    with Outputs(reads=files_read(model, data), force=force) as outputs:
        outputs.claim("--out", out, PREDICTIONS)
        with named(model):
            released = load(model)
        table = open_table(data, row_names=reading.row_names)
        linear = _linear(released, table, unknown)
        outside, limits = 0, _limits(released)
        if limits is not None:
            outside = int(np.count_nonzero((linear < limits[0]) | (linear > limits[1])))
            if clip:
                linear = np.clip(linear, *limits)
        elif clip:
            raise ValueError(f"--clip: {escaped(model)} states no bounds of the labels")
        columns = {"prediction": linear}
        if released.classes is not None:
            # The class that is predicted follows from its probability.
            columns = {"probability": both_probabilities(linear)[:, 1]}
        outputs.write({"--out": table_bytes(columns, out)})
    (predictions,) = columns.values()
    record = {
        "n_rows": int(predictions.size),
        "mean": float(predictions.mean()),
        "smallest": float(predictions.min()),
        "largest": float(predictions.max()),
        "label_bounds": limits,
        "outside_bounds": outside,
        "clipped": clip,
        "out": str(out),
        "for_release": released.guarantee.for_release,
    }
    what = "predictions"
    if released.classes is not None:
        what = f"probabilities of {released.classes[1]!r}"
    said = f"{predictions.size} {what} in {escaped(out)}"
    if outside and limits is not None:
        moved = "moved to the nearest bound" if clip else "--clip moves them to the bounds"
        said += f"\n{outside} of them lay outside the bounds of the labels, "
        said += f"[{limits[0]:g}, {limits[1]:g}]; {moved}."
    tell(record if as_json else said)


def _limits(released: ReleasedModel) -> tuple[float, float] | None:
    """Bounds of the labels of a linear model, where its statement has them."""
    return None if released.classes is not None else released.guarantee.label_bounds


def _linear(released: ReleasedModel, table: Table, unknown: str) -> np.ndarray:
    """Predictions of a linear model, or log odds."""
    released = released.needed()
    if released.n_features == 0:
        return np.full(table.n_rows, released.intercept)
    return released.linear(matrix_of(released, table, unknown))


def matrix_of(released: ReleasedModel, table: Table, unknown: str) -> Matrix:
    """The columns of a model, of which there must be some, encoded as in its fit."""
    if released.encoding is not None:
        inputs, levels = released.encoding.inputs, released.encoding.categorical
        columns = table.columns(inputs, categorical=levels)
        return released.encoding.matrix(columns, unknown=cast(Literal["error", "ignore"], unknown))
    names = released.feature_names or table.names
    if len(names) != released.n_features:
        raise ValueError(
            f"{escaped(table.path)} has {len(names)} columns, but the model has no column names "
            f"and needs exactly {released.n_features} in the order of the fit"
        )
    return table.matrix(names)
