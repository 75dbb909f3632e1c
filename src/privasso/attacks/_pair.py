"""Two neighbouring tables, runs of a program on each, and the best test between them.

A program asks, and between two questions stand only functions of the answers before. Each answer
has a law that is known given these, so that the logarithms of likelihoods add up. Under noise
without a guarantee the pair is one of all data and of all but one record.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Sequence
from dataclasses import dataclass, field
from functools import partial
from typing import TypeAlias

import numpy as np
from numpy.typing import NDArray

from privasso._types import Found
from privasso.blocks import RowBlocks
from privasso.fit import Plan
from privasso.queries import Ask, Query, bit_source, declared, next_question, question_key
from privasso.solvers import solve_many
from privasso.theory import membership_losses

FloatArray = NDArray[np.float64]

#: Releases of a data set: how many, and a generator or None for the operating system's entropy.
Draw: TypeAlias = Callable[[int, "np.random.Generator | None"], Found]
#: A score of each release, large if it speaks for "in".
Score: TypeAlias = Callable[[Found], FloatArray]
#: A question, the runs that asked it, and its answers.
Asked: TypeAlias = tuple[Query, list[int], Sequence[Found]]


@dataclass(frozen=True, eq=False)
class Pair:
    """What an attack is about.

    Attributes
    ----------
    name : str
        What differs, in words.
    into, out : callable
        Draw releases of the data set and of its neighbour; data and noise stay inside.
    score : callable
        Log likelihood ratio of "in" against "out" for each release.
    """

    name: str
    into: Draw = field(repr=False)
    out: Draw = field(repr=False)
    score: Score = field(repr=False)


def pairs_of(plan: Plan, y: FloatArray, records: dict[int, str]) -> list[Pair]:
    """A pair for each record with its name, by the neighbours of the plan.

    A label is at its upper bound, and at the lower one or missing. A record is as it is, and empty,
    or replaced by its mirror image: covariates in the middle of the data, and its label in that of
    the bounds.
    """
    bounds = plan.guarantee.label_bounds or (float(np.nanmin(y)), float(np.nanmax(y)))
    unit, replaced = plan.neighbours.unit, plan.neighbours.relation == "replaced"
    y = np.clip(y, *bounds) if unit == "label" else y
    as_it_is, pairs = plan.table(y), []
    everyone = partial(transcripts, plan.program, as_it_is)
    for k, name in records.items():
        labels, one, into = y.copy(), as_it_is, everyone
        if unit == "label":
            labels[k] = bounds[1]
            one = plan.table(labels.copy())
            into = partial(transcripts, plan.program, one)
        labels[k] = sum(bounds) - labels[k] if replaced else np.nan
        two = plan.table(labels)
        if unit == "record" and replaced:
            X, _ = as_it_is.gathered()
            X[k] = X.min(axis=0) + X.max(axis=0) - X[k]
            two = RowBlocks.of_arrays(X, labels)
        out = partial(transcripts, plan.program, two)
        pairs.append(Pair(name, into, out, partial(log_ratios, one, two)))
    return pairs


def transcripts(
    program: Callable[[Ask], object], rows: RowBlocks, count: int, rng: np.random.Generator | None
) -> list[Asked]:
    """What is asked and answered in many runs, question by question.

    The runs that ask the same get their answers together.
    """
    bits, asked, answers = bit_source(rng), list[Asked](), [[] for _ in range(count)]
    for _ in declared(program, rows.shape[0]):
        for query, runs in _together(program, answers, rows.shape[0]):
            found = query.draws(rows, len(runs), bits)
            asked.append((query, runs, found))
            for run, answer in zip(runs, found, strict=True):
                answers[run].append(answer)
    return asked


def _together(
    program: Callable[[Ask], object], answers: list[list[object]], n_rows: int
) -> list[tuple[Query, list[int]]]:
    """What runs ask after these answers, each question with the runs that ask it."""
    if not answers[0]:
        return [(next_question(program, [], n_rows), list(range(len(answers))))]
    queries = [next_question(program, one, n_rows) for one in answers]
    known: dict[int, Hashable] = {}
    groups: dict[Hashable, tuple[Query, list[int]]] = {}
    for run, query in enumerate(queries):
        groups.setdefault(question_key(query, known), (query, []))[1].append(run)
    return list(groups.values())


def log_ratios(one: RowBlocks, two: RowBlocks, asked: list[Asked]) -> FloatArray:
    """Log likelihoods of transcripts under one table, less those under the other."""
    total = np.zeros(len(asked[0][1]))
    for query, runs, answers in asked:
        total[runs] += query.log_likelihoods(one, answers) - query.log_likelihoods(two, answers)
    return total


#: Noise vectors that are solved for at once.
_BATCH = 256


def membership_pairs(
    plan: Plan, X: FloatArray, y: FloatArray, records: dict[int, str]
) -> list[Pair]:
    """A pair for each record: all data against all but this record, with the same noise.

    Noise that follows the scales of the data would differ a little between the two; the attacker
    is taken not to use that.
    """
    lam, rows, calibration = plan.options.fixed_lam, plan.covariates, plan.calibration
    assert lam is not None
    assert rows is not None
    assert calibration is not None
    variances, F = calibration.covariance.diagonal, np.ascontiguousarray(X[:, rows.live])
    everyone = partial(_draw, F, y, lam, variances)
    return [
        Pair(
            name,
            everyone,
            partial(_draw, np.delete(F, k, 0), np.delete(y, k), lam, variances),
            partial(_score, np.delete(F, k, 0), np.delete(y, k), lam, variances, F[k], y[k]),
        )
        for k, name in records.items()
    ]


def _draw(
    F: FloatArray,
    y: FloatArray,
    lam: float,
    variances: FloatArray,
    count: int,
    rng: np.random.Generator | None,
) -> FloatArray:
    rng = np.random.default_rng() if rng is None else rng
    found = []
    for start in range(0, count, _BATCH):
        size = min(_BATCH, count - start)
        etas = np.sqrt(variances)[:, None] * rng.standard_normal((variances.size, size))
        found.append(solve_many(F, y, lam, etas).x.T)
    return np.vstack(found)


def _score(
    F: FloatArray,
    y: FloatArray,
    lam: float,
    variances: FloatArray,
    row: FloatArray,
    label: float,
    releases: FloatArray,
) -> FloatArray:
    """Scores by the data without the record."""
    return membership_losses(
        F, y, lam, variances, releases.T, rows=row[None, :], labels=[label], member=False
    )[:, 0]
