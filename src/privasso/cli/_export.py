"""`privasso export`: a published model for other software."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from privasso._text import escaped
from privasso.cli._options import AsJson, Force, argument, named, option, tell

if TYPE_CHECKING:
    from privasso.fit import ReleasedModel

#: What the ending of the file stands for.
_KINDS = {".sql": "a query for a database", ".r": "a function of R", ".onnx": "an ONNX graph"}


def export(
    model: Path = argument("Model that `privasso fit` wrote."),
    out: Path = option("Where it goes; the ending .sql, .R or .onnx decides.", ...),
    table: str = option("SQL: the table to predict for.", "data"),
    force: Force = False,
    as_json: AsJson = False,
) -> None:
    """Write a model as SQL, as a function of R or as an ONNX graph; predictions are the same.

    Columns keep their names. Levels that the model does not know count as the reference, and a
    missing value that the model does not fill in gives a missing prediction.

    Example: `privasso export model.json --out model.sql --table patients`
    """
    from privasso.artefact import load
    from privasso.cli._outputs import EXPORT, Outputs

    kind = _KINDS.get(out.suffix.lower())
    if kind is None:
        raise ValueError(f"--out must end in .sql, .R or .onnx, not {escaped(out.name)}")
    with Outputs(reads=(model,), force=force) as outputs:
        outputs.claim("--out", out, EXPORT)
        with named(model):
            released = load(model)
        outputs.write({"--out": _content(released, out.suffix.lower(), table)})
    count = int(np.count_nonzero(released.coef))
    said = f"{escaped(out)} is {kind} with {count} coefficients that are not zero."
    if released.guarantee.warning is not None:
        said += f"\n{released.guarantee.warning}"
    record = {"out": str(out), "kind": out.suffix.lower()[1:], "nonzero": count}
    tell(record if as_json else said)


def _content(model: ReleasedModel, ending: str, table: str) -> str | bytes:
    from privasso.exports import onnx_model, r_function, sql_query

    # The first line tells a later run that it may replace the file; ONNX files name their maker.
    if ending == ".sql":
        return f"-- privasso export\n{sql_query(model, table)}"
    return f"# privasso export\n{r_function(model)}" if ending == ".r" else onnx_model(model)
