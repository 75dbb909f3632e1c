"""Real wide tables: R² on held-out rows, ours and others, for private records and labels.

What was measured is kept in a file, one line for each method, table, split and budget, and is not
measured again, except ours when the source of this package has changed.
"""

from __future__ import annotations

import hashlib
import json
import time
import zlib
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import polars as pl

import privasso
from bench.wide import ours, peers
from bench.wide.peers import PUBLISHED, Scores
from bench.wide.problem import Kind, Problem
from bench.wide.tables import LOADERS, UNSEEN, load

DELTA, TRAINING = 1e-6, 0.7
EPSILONS = (1.0, 3.0, 10.0)
KEPT = Path("build/wide/real.jsonl")
OURS, NOTHING = "**screen, then fit**", "no privacy"
#: A change of these makes what is kept of ours outdated.
_ROOMS = ("accounting", "operators", "problem", "solvers", "queries", "privacy", "programs")
_ROOMS += ("planning", "fit")
_PEERS = {"records": peers.RECORDS, "labels": peers.LABELS}


def splits(name: str) -> int:
    """Number of splits into training and test rows; unseen tables are mostly small."""
    return 5 if name in UNSEEN else 2


def split(name: str, kind: Kind, epsilon: float, number: int) -> Problem:
    """Training and test rows, the same for all methods and budgets."""
    table = load(name)
    order = np.random.default_rng([zlib.crc32(name.encode()), number]).permutation(table.y.size)
    train, test = np.split(order, [round(TRAINING * table.y.size)])
    X = table.X.astype(np.float32)
    parts = (X[train], table.y[train], X[test], table.y[test])
    return Problem(*parts, (0.0, 1.0), table.y_bounds, kind, epsilon, DELTA)


def source() -> str:
    """A hash of the source that a fit passes through."""
    found = hashlib.sha256()
    for room in _ROOMS:
        for path in sorted((Path(str(privasso.__file__)).parent / room).rglob("*.py")):
            found.update(path.read_bytes())
    return found.hexdigest()[:12]


def run(
    kinds: tuple[Kind, ...] = ("records", "labels"),
    *,
    own: bool = True,
    others: bool = True,
    names: tuple[str, ...] = tuple(LOADERS),
) -> None:
    """Measure what is missing."""
    KEPT.parent.mkdir(parents=True, exist_ok=True)
    done = {_key(line) for line in _lines()}
    for number in range(max(map(splits, names))):
        for name in [one for one in names if number < splits(one)]:
            for what in _wanted(kinds, name, number, own, others):
                if _key(what) in done:
                    continue
                start = time.perf_counter()
                scores = _measured(what)
                seconds = time.perf_counter() - start
                kept = {"|".join(map(str, setting)): r2 for setting, r2 in scores.items()}
                with KEPT.open("a", encoding="utf-8") as file:
                    file.write(json.dumps({**what, "seconds": seconds, "scores": kept}) + "\n")
                print(*_key(what), kept[PUBLISHED[0]], f"{seconds:.1f} s", flush=True)


def _wanted(
    kinds: tuple[Kind, ...], name: str, number: int, own: bool, others: bool
) -> Iterator[dict]:
    base = {"table": name, "split": number, "source": ""}
    if others:
        yield {**base, "kind": "", "epsilon": 0.0, "method": NOTHING}
    for kind in kinds:
        for epsilon in EPSILONS:
            if own:
                yield {**base, "kind": kind, "epsilon": epsilon, "method": OURS, "source": source()}
            for method in _PEERS[kind] if others else ():
                yield {**base, "kind": kind, "epsilon": epsilon, "method": method}


def _measured(what: dict) -> Scores:
    kind: Kind = what["kind"] or "records"
    problem = split(what["table"], kind, what["epsilon"], what["split"])
    words = [what["split"], round(10 * what["epsilon"]), zlib.crc32(what["method"].encode())]
    rng = np.random.default_rng(words)
    if what["method"] == OURS:
        return {PUBLISHED: ours.screened(problem, rng)}
    if what["method"] == NOTHING:
        return peers.no_privacy(problem, rng)
    return _PEERS[kind][what["method"]](problem, rng)


def _key(line: dict) -> tuple:
    return tuple(line[k] for k in ("table", "split", "kind", "epsilon", "method", "source"))


def _lines() -> list[dict]:
    if not KEPT.exists():
        return []
    return [json.loads(line) for line in KEPT.read_text(encoding="utf-8").splitlines()]


def table(kind: Kind) -> pl.DataFrame:
    """All cells: the published setting of each peer, and in brackets the best of its grid."""
    latest = source()
    lines = _lines()
    found = []
    for name in LOADERS:
        m, n = load(name).X.shape
        size = f"{round(TRAINING * m):,} × {n:,}"
        without = _mean(lines, name, "", 0.0, NOTHING, "")[PUBLISHED[0]]
        for epsilon in EPSILONS:
            own = _mean(lines, name, kind, epsilon, OURS, latest)[PUBLISHED[0]]
            row = {"table": name, "rows × columns": size, "ε": f"{epsilon:g}", OURS: f"{own:.2f}"}
            for method in _PEERS[kind]:
                means = _mean(lines, name, kind, epsilon, method, "")
                text = f"{means[PUBLISHED[0]]:.2f}"
                row[method] = text if len(means) == 1 else f"{text} ({max(means.values()):.2f})"
            found.append({**row, NOTHING: f"{without:.2f}"})
    return pl.DataFrame(found)


def _mean(
    lines: list[dict], name: str, kind: str, epsilon: float, method: str, of: str
) -> dict[str, float]:
    """Mean over the splits of each setting."""
    wanted = (name, kind, epsilon, method, of)
    some = [
        line["scores"]
        for line in lines
        if (line["table"], line["kind"], line["epsilon"], line["method"], line["source"]) == wanted
    ]
    if len(some) != splits(name):
        raise ValueError(f"{wanted} has {len(some)} of {splits(name)} splits")
    return {setting: float(np.mean([one[setting] for one in some])) for setting in some[0]}


def summary() -> pl.DataFrame:
    """In how many cells ours is ahead, of the published settings and of the best of the grids."""
    found = []
    for kind in ("records", "labels"):
        everything = table(kind).to_dicts()
        for tables, unseen in (("ten", False), ("unseen", True)):
            cells = [cell for cell in everything if (cell["table"] in UNSEEN) == unseen]
            ahead = [[], []]
            for cell in cells:
                own = float(cell[OURS])
                texts = [cell[method].replace("(", "").replace(")", "") for method in _PEERS[kind]]
                numbers = [[float(word) for word in text.split()] for text in texts]
                ahead[0].append(own >= max(some[0] for some in numbers))
                ahead[1].append(own >= max(some[-1] for some in numbers))
            found.append(
                {
                    "private": kind,
                    "tables": tables,
                    "cells": str(len(cells)),
                    "ahead of published settings": f"{sum(ahead[0])}",
                    "ahead of the best of all grids": f"{sum(ahead[1])}",
                }
            )
    return pl.DataFrame(found)
