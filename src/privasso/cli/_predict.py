"""`privasso predict`: apply a published model to a data file."""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from privasso._text import escaped

if TYPE_CHECKING:
    import numpy as np

    from privasso.fit import ReleasedModel


def predict(
    model: Annotated[Path, typer.Argument(help="Model that `privasso fit` wrote.")],
    data: Annotated[Path, typer.Argument(help="CSV, TSV, Parquet, Arrow/Feather or NPZ file.")],
    out: Annotated[Path, typer.Option("--out", help="Predictions, csv or parquet by the ending.")],
    as_json: Annotated[bool, typer.Option("--json", help="Print a summary as JSON.")] = False,
) -> None:
    """Predict with a model; columns are found by name, in any order, and others are ignored.

    Example: `privasso predict model.json new-patients.csv --out predictions.csv`
    """
    from privasso.artefact import DocumentError, load
    from privasso.cli._outputs import Outputs
    from privasso.tables import check_ending, table_bytes

    check_ending(out)
    try:
        released = load(model)
    except DocumentError as error:
        raise ValueError(f"{escaped(model)}: {error}") from None
    with Outputs() as outputs:
        outputs.claim("--out", out, inputs=(model, data))
        predictions = released.predict(_covariates(released, data))
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


def _covariates(released: ReleasedModel, data: Path) -> np.ndarray:
    """The columns that the model needs, in its order."""
    from privasso.tables import open_table

    table = open_table(data)
    names = released.feature_names
    if names is None:
        if len(table.names) != released.n_features:
            raise ValueError(
                f"{escaped(data)} has {len(table.names)} columns and the model, which knows no "
                f"names, needs exactly {released.n_features} in the order of the fit"
            )
        return table.matrix(table.names)
    present = set(table.names)
    missing = [name for name in names if name not in present]
    if missing:
        more = f" (and {len(missing) - 1} more)" if len(missing) > 1 else ""
        raise ValueError(
            f"{escaped(data)} lacks the column {missing[0]!r}{more}, which the model needs"
        )
    return table.matrix(names)
