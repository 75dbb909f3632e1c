"""`privasso predict`: apply a published model to a data file."""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Literal, cast

import typer

from privasso._text import escaped
from privasso.cli._options import AsJson, Data

if TYPE_CHECKING:
    import numpy as np

    from privasso.fit import ReleasedModel
    from privasso.tables import Table


def predict(
    model: Annotated[Path, typer.Argument(help="Model that `privasso fit` wrote.")],
    data: Data,
    out: Annotated[Path, typer.Option("--out", help="Predictions, csv or parquet by the ending.")],
    unknown: Annotated[
        str,
        typer.Option("--unknown", help="Levels that the model does not know: error or ignore."),
    ] = "error",
    as_json: AsJson = False,
) -> None:
    """Predict with a model; columns are found by name, in any order, and others are ignored.

    A logistic regression gives probabilities of the positive class.

    Example: `privasso predict model.json new-patients.csv --out predictions.csv`
    """
    from privasso.artefact import DocumentError, load
    from privasso.cli._outputs import Outputs
    from privasso.fit import both_probabilities
    from privasso.tables import check_ending, open_table, table_bytes

    if unknown not in ("error", "ignore"):
        raise ValueError(f"--unknown must be error or ignore, not {unknown!r}")
    check_ending(out)
    with Outputs() as outputs:
        outputs.claim("--out", out, inputs=(model, data))
        try:
            released = load(model)
        except DocumentError as error:
            raise ValueError(f"{escaped(model)}: {error}") from None
        table = open_table(data)
        linear = _linear(released, table, unknown)
        columns = {"prediction": linear}
        if released.classes is not None:
            # The class that is predicted follows from its probability.
            columns = {"probability": both_probabilities(linear)[:, 1]}
        outputs.write({"--out": table_bytes(columns, out)})
    (predictions,) = columns.values()
    if as_json:
        summary = {
            "n_rows": int(predictions.size),
            "mean": float(predictions.mean()),
            "smallest": float(predictions.min()),
            "largest": float(predictions.max()),
            "out": str(out),
            "for_release": released.guarantee.for_release,
        }
        print(json.dumps(summary))
    else:
        print(f"{predictions.size} predictions in {escaped(out)}")


def _linear(released: ReleasedModel, table: Table, unknown: str) -> np.ndarray:
    """Predictions of a linear model, or log odds."""
    if released.encoding is not None:
        inputs, levels = released.encoding.inputs, released.encoding.categorical
        columns = table.columns(inputs, categorical=levels)
        return released.linear(
            released.encoding.matrix(columns, unknown=cast(Literal["error", "ignore"], unknown))
        )
    names = released.feature_names or table.names
    if len(names) != released.n_features:
        raise ValueError(
            f"{escaped(table.path)} has {len(names)} columns, but the model has no column names "
            f"and needs exactly {released.n_features} in the order of the fit"
        )
    return released.linear(table.matrix(names))
