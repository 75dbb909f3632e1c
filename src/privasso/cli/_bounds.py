"""`privasso bounds`: a data dictionary to fill in, with the names of the columns and no values."""

from __future__ import annotations

import os
from pathlib import Path

from privasso._text import escaped
from privasso.cli._options import DATA, AsJson, argument, option, tell

_WHAT_TO_DO = (
    "Fill in low and high of each column of numbers, or the levels of a column of text, with | "
    "between them: heart|skin. A level that is listed becomes a 0/1 column, and every other value "
    "is 0 in all of them, so leave one usual level out. For numbers that are zeros and ones write "
    "0/1 as levels. fill is what stands for a missing number; "
    "empty, it is the middle of low and high. Take all of this from public knowledge, never from "
    "the data. Remove the lines of columns that are not used, and name these with --exclude."
)


def bounds(
    data: Path = argument(DATA),
    target: str | None = option("Column of the labels, which is left out."),
    out: Path = option("Where the dictionary goes, a CSV file.", Path("bounds.csv")),
    as_json: AsJson = False,
) -> None:
    """Write a data dictionary for `privasso fit --record-dp` that has the names of the columns.

    It holds no values, because bounds that were taken from the data would reveal its extreme
    records: they must come from public knowledge.

    Example: `privasso bounds patients.csv --target pressure --out bounds.csv`
    """
    from privasso.cli._outputs import Outputs, files_read
    from privasso.encoding import template
    from privasso.tables import open_table

    if os.path.lexists(out):
        raise ValueError(f"--out {escaped(out)} exists already and is not overwritten")
    with Outputs(reads=files_read(data)) as outputs:
        outputs.claim("--out", out)
        table = open_table(data)
        table.check_header()
        if target is not None:
            table.require([target])
        names, types = table.feature_names(target), table.types
        text = template((name, types.get(name)) for name in names)
        outputs.write({"--out": text})
    said = f"{len(names)} columns in {escaped(out)}, without any values.\n{_WHAT_TO_DO}"
    tell({"out": str(out), "columns": names} if as_json else said)
