"""Which tables a run is about."""

from __future__ import annotations

import importlib.util
import warnings
from collections.abc import Iterable
from functools import cache

from bench.real.tables.table import REGISTRY, Kind, Table


def available(kind: Kind) -> list[str]:
    """Names of the tables of a kind whose package is installed."""
    return [
        entry.name
        for entry in REGISTRY.values()
        if entry.kind == kind and importlib.util.find_spec(entry.needs) is not None
    ]


def chosen(kind: Kind, names: Iterable[str], least_rows: int = 0) -> list[str]:
    """Names of the tables to run on; ``all`` is every one of the kind with that many rows.

    A table that is named and cannot be had is an error. So is ``all`` if a package is missing: a
    summary over fewer tables than the reader thinks would mislead.
    """
    wanted = list(names)
    everything = wanted == ["all"]
    if everything:
        wanted = [entry.name for entry in REGISTRY.values() if entry.kind == kind]
    unknown = [n for n in wanted if n not in REGISTRY or REGISTRY[n].kind != kind]
    if unknown:
        raise ValueError(
            f"there is no {kind} table of the name {', '.join(unknown)}; there are "
            + ", ".join(entry.name for entry in REGISTRY.values() if entry.kind == kind)
        )
    have = available(kind)
    missing = sorted({REGISTRY[name].needs for name in wanted if name not in have})
    if missing:
        raise ValueError(
            f"some tables need {', '.join(missing)}; run: pip install --group real, or name the "
            "tables to run on"
        )
    if everything:
        return [name for name in wanted if load(name).X.shape[0] >= least_rows]
    return wanted


@cache
def load(name: str) -> Table:
    """The table of that name; a second call returns the same object."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # the packages' own, about versions of their dependencies
        return REGISTRY[name].load()
