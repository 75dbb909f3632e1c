"""Two neighbouring tables: the exact likelihood ratio of everything that a program was answered.

Each answer has a law that is known given the answers before, so that the logarithms add up.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

from privasso.attacks._pair import Pair, World
from privasso.blocks import RowBlocks
from privasso.fit import Plan
from privasso.queries import Ask, BitSource, Query, bit_source, same_question

FloatArray = NDArray[np.float64]
#: Asks, and returns what is published.
Program: TypeAlias = Callable[[Ask], Any]
#: Questions with their answers.
Transcript: TypeAlias = list[tuple[Query[Any], Any]]


def record_pairs(plan: Plan, X: FloatArray, y: FloatArray, records: dict[int, str]) -> list[Pair]:
    """A pair for each record: all data, and all data with this record emptied, or replaced.

    It is replaced by its mirror image: covariates in the middle of the data, and its label in that
    of the bounds.
    """
    program = plan.program
    everyone, pairs = RowBlocks.of_arrays(X, y), []
    world = World(partial(_transcripts, program, everyone))
    for k, name in records.items():
        rows, labels = X.copy(), y.copy()
        if plan.neighbours.relation == "emptied":
            labels[k] = np.nan
        else:
            ends = np.stack([X.min(axis=0), X.max(axis=0)])
            rows[k] = ends.sum(axis=0) - X[k]
            labels[k] = sum(plan.guarantee.label_bounds or (0.0, 0.0)) - y[k]
        other = RowBlocks.of_arrays(rows, labels)
        out = World(partial(_transcripts, program, other))
        pairs.append(Pair(name, world, out, partial(log_ratios, everyone, other)))
    return pairs


def label_pairs(
    plan: Plan, y: FloatArray, y_bounds: tuple[float, float], records: dict[int, str]
) -> list[Pair]:
    """A pair for each record: its label at the upper and at the lower bound, or missing."""
    pairs = []
    other = np.nan if plan.neighbours.relation == "emptied" else y_bounds[0]
    for k, name in records.items():
        tables = []
        for label in (y_bounds[1], other):
            labels = np.clip(y, *y_bounds)
            labels[k] = label
            tables.append(plan.table(labels))
        into, out = (World(partial(_transcripts, plan.program, one)) for one in tables)
        pairs.append(Pair(name, into, out, partial(log_ratios, *tables)))
    return pairs


def log_ratios(one: RowBlocks, two: RowBlocks, transcripts: Sequence[Transcript]) -> FloatArray:
    """Log likelihoods of transcripts under one table, less those under the other."""
    total = np.zeros(len(transcripts))
    for k in range(len(transcripts[0])):
        first = transcripts[0][k][0]
        for query, members in _grouped(first, [made[k][0] for made in transcripts]):
            answers = [transcripts[i][k][1] for i in members]
            total[members] += query.log_likelihoods(one, answers)
            total[members] -= query.log_likelihoods(two, answers)
    return total


def _grouped(first: Query[Any], queries: list[Query[Any]]) -> list[tuple[Query[Any], list[int]]]:
    """Those that are the same as the first together, and each other one by itself."""
    alike = [i for i, query in enumerate(queries) if same_question(first, query)]
    rest = sorted(set(range(len(queries))) - set(alike))
    return [(first, alike), *((queries[i], [i]) for i in rest)]


def _transcripts(
    program: Program, rows: RowBlocks, count: int, rng: np.random.Generator | None
) -> list[Transcript]:
    bits, known, found = bit_source(rng), dict[int, Any](), []
    for _ in range(count):
        ask = _Sampling(rows, bits, known)
        program(ask)
        found.append(ask.transcript)
    return found


class _Sampling(Ask):
    """Answers from rows, which are read once for a question that comes again in the next run."""

    def __init__(
        self,
        rows: RowBlocks,
        bits: BitSource,
        known: dict[int, tuple[Query[Any], Callable[[BitSource], Any]]],
    ) -> None:
        super().__init__(rows.shape[0])
        self._rows, self._bits, self._known = rows, bits, known

    def answer(self, query: Query[Any]) -> Any:
        """Sample the query."""
        k = len(self.transcript)
        if k not in self._known or not same_question(self._known[k][0], query):
            self._known[k] = query, query.sampler(self._rows)
        return self._known[k][1](self._bits)
