"""What every question about private rows can do."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Hashable, Sequence
from dataclasses import dataclass, field, fields, is_dataclass
from functools import partial
from hashlib import blake2b
from types import MethodType
from typing import Generic, Literal, TypeAlias, TypeVar

import numpy as np

from privasso.accounting import Loss
from privasso.blocks import Change, RowBlocks
from privasso.queries._rounded_gaussian import BitSource

Answer = TypeVar("Answer")


Relation: TypeAlias = Literal["emptied", "replaced"]


@dataclass(frozen=True)
class Neighbours:
    """Which data sets must be hard to tell apart.

    Attributes
    ----------
    unit : {"label", "record"}
        What differs: the label of one record, or all of it.
    relation : {"emptied", "replaced"}
        An emptied one contributes nothing; a replaced one contributes something else.
    """

    unit: Literal["label", "record"]
    relation: Relation

    @property
    def empties(self) -> bool:
        """Whether a record whose label is missing is empty: it contributes nothing.

        Where one label becomes another one, a missing one counts as the middle of the bounds.
        """
        return self.unit == "record" or self.relation == "emptied"

    @property
    def of_objective(self) -> Literal["labels", "records", "replace"]:
        """Their name in `objective_delta`."""
        if self.relation == "emptied":
            return "records"
        return "labels" if self.unit == "label" else "replace"


#: One record is emptied.
EMPTIED = Neighbours("record", "emptied")
#: One label becomes another one.
LABEL_REPLACED = Neighbours("label", "replaced")
#: One record becomes another one.
REPLACED = Neighbours("record", "replaced")


class Query(ABC, Generic[Answer]):
    """A question about private rows: a frozen value that holds public numbers only.

    The noise is part of the question, so that its loss is known before it is asked.
    """

    @property
    @abstractmethod
    def loss(self) -> Loss | None:
        """What an answer costs; None where nothing bounds it."""

    @property
    @abstractmethod
    def neighbours(self) -> Neighbours | None:
        """For which data sets its noise is large enough; None where nothing bounds the loss."""

    @property
    @abstractmethod
    def sentence(self) -> str:
        """What is asked, for a statement."""

    @property
    @abstractmethod
    def possible(self) -> Answer:
        """An answer that could be given, whatever the rows are."""

    @abstractmethod
    def run(self, rows: RowBlocks, bits: BitSource) -> Answer:
        """Answer from the rows, with noise made of these bits."""

    def draws(self, rows: RowBlocks, count: int, bits: BitSource) -> Sequence[Answer]:
        """So many answers, of the law of `run`; the rows are read once if that is possible."""
        return [self.run(rows, bits) for _ in range(count)]

    @abstractmethod
    def log_likelihoods(self, rows: RowBlocks, answers: Sequence[Answer]) -> np.ndarray:
        """How likely each answer is for these rows, up to a term that no row changes."""


@dataclass(frozen=True, eq=False)
class OfOthers(Query[Answer]):
    """A question about rows that a public rule makes of the private ones.

    Attributes
    ----------
    query : Query
        The question.
    rule : callable
        Returns the rows that it is about. A record must become one by itself.
    said : str or None
        What is asked, for a statement, if not what the question says.
    """

    query: Query[Answer]
    rule: Callable[[RowBlocks], RowBlocks] = field(repr=False)
    said: str | None = None

    @property
    def loss(self) -> Loss | None:
        """That of the question."""
        return self.query.loss

    @property
    def neighbours(self) -> Neighbours | None:
        """Those of the question."""
        return self.query.neighbours

    @property
    def possible(self) -> Answer:
        """One to the question."""
        return self.query.possible

    @property
    def sentence(self) -> str:
        """That of the question, or another one."""
        return self.query.sentence if self.said is None else self.said

    def run(self, rows: RowBlocks, bits: BitSource) -> Answer:
        """Answer from what the rows become."""
        return self.query.run(self.rule(rows), bits)

    def draws(self, rows: RowBlocks, count: int, bits: BitSource) -> Sequence[Answer]:
        """Those to the question."""
        return self.query.draws(self.rule(rows), count, bits)

    def log_likelihoods(self, rows: RowBlocks, answers: Sequence[Answer]) -> np.ndarray:
        """Those of the question."""
        return self.query.log_likelihoods(self.rule(rows), answers)


@dataclass(frozen=True, eq=False)
class BesideColumns:
    """The labels of rows beside public covariates, instead of those of the rows.

    Attributes
    ----------
    X : ndarray of shape (M, N)
        The covariates.
    """

    X: np.ndarray = field(repr=False)

    def __call__(self, rows: RowBlocks) -> RowBlocks:
        return RowBlocks.of_arrays(self.X, rows.labels)


@dataclass(frozen=True, eq=False)
class AfterChange:
    """The rows after a change.

    Attributes
    ----------
    change : Change
        What each record becomes.
    """

    change: Change

    def __call__(self, rows: RowBlocks) -> RowBlocks:
        return rows.changed(self.change)


def same_question(one: object, two: object) -> bool:
    """Whether two queries, or parts of them, hold the same numbers.

    >>> one, two = (Neighbours("record", relation) for relation in ("emptied", "replaced"))
    >>> same_question([one, np.ones(2)], [one, np.ones(2)]), same_question(one, two)
    (True, False)
    """
    return question_key(one, {}) == question_key(two, {})


def question_key(one: object, known: dict[int, Hashable]) -> Hashable:
    """A key that two queries, or parts of them, share if they hold the same numbers.

    Keys of arrays are kept in `known` by their identity, for as long as all of them are alive.
    """
    part = partial(question_key, known=known)
    if isinstance(one, np.ndarray):
        if id(one) not in known:
            digest = blake2b(one.tobytes(), digest_size=16).digest()
            known[id(one)] = one.shape, one.dtype.str, digest
        return known[id(one)]
    if isinstance(one, partial):
        return partial, part(one.func), part(one.args), part(one.keywords)
    if isinstance(one, MethodType):
        return one.__func__, part(one.__self__)
    if isinstance(one, dict):
        return tuple((name, part(value)) for name, value in sorted(one.items()))
    if isinstance(one, (list, tuple)):
        return type(one), *map(part, one)
    if is_dataclass(one) and not isinstance(one, type):
        return type(one), *(part(getattr(one, field.name)) for field in fields(one))
    return type(one), one
