"""`privasso predict`: apply a published model to a data file."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Annotated

import typer


def predict(
    model: Annotated[Path, typer.Argument(help="Model that `privasso fit` wrote.")],
    data: Annotated[Path, typer.Argument(help="CSV, TSV, Parquet, Arrow/Feather or NPZ file.")],
    out: Annotated[Path, typer.Option("--out", help="Predictions, csv or parquet by the ending.")],
    as_json: Annotated[bool, typer.Option("--json", help="Print a summary as JSON.")] = False,
) -> None:
    """Predict with a model; columns are found by name, in any order, and others are ignored.

    Example: `privasso predict model.json new-patients.csv --out predictions.csv`
    """
    from privasso.artefact import load
    from privasso.cli._outputs import Outputs
    from privasso.tables import check_ending, open_table, table_bytes

    check_ending(out)
    outputs = Outputs()
    outputs.claim("--out", out, inputs=(model, data))
    released = load(model)
    table = open_table(data)
    if released.feature_names is not None:
        names = released.feature_names
        missing = [name for name in names if name not in set(table.names)]
        if missing:
            more = f" (and {len(missing) - 1} more)" if len(missing) > 1 else ""
            raise ValueError(f"{data} lacks the column {missing[0]!r}{more}, which the model needs")
    else:
        names = table.names
        if len(names) != released.n_features:
            raise ValueError(
                f"{data} has {len(names)} columns and the model, which knows no names, needs "
                f"exactly {released.n_features} in the order of the fit"
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
        print(f"{predictions.size} predictions in {out}")
