"""The registry of tables, which `tables.toml` holds, and which of them a run is about."""

from __future__ import annotations

import importlib.util
import tomllib
import warnings
from collections.abc import Iterable
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

from bench.real.tables import from_sklearn
from bench.real.tables.frames import PREPARED, read
from bench.real.tables.table import Kind, Table, build


@dataclass(frozen=True)
class Entry:
    """A table of the registry: its name, the package it comes with, and what `build` needs."""

    name: str
    kind: Kind
    needs: str
    described: dict[str, Any]

    def load(self) -> Table:
        """Read the table."""
        if self.needs == "sklearn":
            return getattr(from_sklearn, self.name.replace("-", "_"))()
        told = dict(self.described)
        frame, incomplete = read(self.needs, told.pop("frame")), told.pop("complete", None)
        if incomplete is not None:
            frame = frame.drop(columns=incomplete).dropna().reset_index(drop=True)
        frame = PREPARED.get(self.name, lambda same: same)(frame)
        return build(frame, **told | {"y_bounds": tuple(map(float, told["y_bounds"]))})


def _entry(name: str, kind: Kind = "regression", needs: str = "", **described: Any) -> Entry:
    return Entry(name, kind, needs, described)


_FILE = Path(__file__).with_name("tables.toml")
REGISTRY = {
    name: _entry(name, **told)
    for name, told in tomllib.loads(_FILE.read_text(encoding="utf-8")).items()
}


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
