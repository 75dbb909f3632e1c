"""`privasso predict`: apply a published model to a data file."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Annotated

import typer

from privasso._text import escaped
from privasso.cli._options import AsJson, Data


def predict(
    model: Annotated[Path, typer.Argument(help="Model that `privasso fit` wrote.")],
    data: Data,
    out: Annotated[Path, typer.Option("--out", help="Predictions, csv or parquet by the ending.")],
    as_json: AsJson = False,
) -> None:
    """Predict with a model; columns are found by name, in any order, and others are ignored.

    Example: `privasso predict model.json new-patients.csv --out predictions.csv`
    """
    from privasso.artefact import DocumentError, load
    from privasso.cli._outputs import Outputs
    from privasso.tables import check_ending, open_table, table_bytes

    check_ending(out)
    with Outputs() as outputs:
        outputs.claim("--out", out, inputs=(model, data))
        try:
            released = load(model)
        except DocumentError as error:
            raise ValueError(f"{escaped(model)}: {error}") from None
        table = open_table(data)
        names = released.feature_names or table.names
        if len(names) != released.n_features:
            raise ValueError(
                f"{escaped(data)} has {len(names)} columns, but the model has no column names and "
                f"needs exactly {released.n_features} in the order of the fit"
            )
        predictions = released.predict(table.matrix(names))
        outputs.write({"--out": table_bytes({"prediction": predictions}, out)})
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
