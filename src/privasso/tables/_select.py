"""Which columns are covariates."""

from __future__ import annotations

from collections.abc import Sequence

from privasso.tables._table import Table


def feature_names(
    table: Table,
    target: str | None,
    *,
    features: Sequence[str] | None = None,
    exclude: Sequence[str] | None = None,
) -> list[str]:
    r"""Names of the covariates: those asked for, or all but the target and those excluded.

    Examples
    --------
    >>> import tempfile, pathlib, privasso.tables as tables
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     file = pathlib.Path(folder, "data.csv")
    ...     _ = file.write_text("id,age,pressure\n7,61,120.5\n")
    ...     feature_names(tables.open_table(file), "pressure", exclude=["id"])
    ['age']
    """
    if features is not None and exclude is not None:
        raise ValueError("give the features or those to exclude, not both")
    if features is not None:
        table.require(features)
        twice = [name for k, name in enumerate(features) if name in features[:k]]
        if twice:
            raise ValueError(f"the feature {twice[0]!r} is named twice")
        if target is not None and target in features:
            raise ValueError(f"the target {target!r} cannot be one of the features")
        chosen = list(features)
    else:
        left_out = set(exclude or ())
        table.require(sorted(left_out))
        chosen = [name for name in table.names if name != target and name not in left_out]
    if not chosen:
        raise ValueError(f"no column of {table.path} is left as a feature")
    return chosen
