"""What every question about private rows can do."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, fields, is_dataclass
from functools import partial
from types import MethodType
from typing import Any, Generic, Literal, TypeAlias, TypeVar

import numpy as np

from privasso.accounting import Loss
from privasso.blocks import RowBlocks
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

    def sampler(self, rows: RowBlocks) -> Callable[[BitSource], Answer]:
        """A source of many answers from the same rows, which are read once if that is possible."""
        return partial(self.run, rows)

    @abstractmethod
    def log_likelihoods(self, rows: RowBlocks, answers: Sequence[Answer]) -> np.ndarray:
        """How likely each answer is for these rows, up to a term that no row changes."""


@dataclass(frozen=True, eq=False)
class Given(Query[Answer]):
    """A question about the labels of rows, beside public covariates instead of those of the rows.

    Attributes
    ----------
    query : Query
        The question.
    X : ndarray of shape (M, N)
        The covariates.
    """

    query: Query[Answer]
    X: np.ndarray = field(repr=False)

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
        """That of the question."""
        return self.query.sentence

    def run(self, rows: RowBlocks, bits: BitSource) -> Answer:
        """Answer from the covariates and the labels of the rows."""
        return self.query.run(self._rows(rows), bits)

    def sampler(self, rows: RowBlocks) -> Callable[[BitSource], Answer]:
        """That of the question."""
        return self.query.sampler(self._rows(rows))

    def log_likelihoods(self, rows: RowBlocks, answers: Sequence[Answer]) -> np.ndarray:
        """Those of the question."""
        return self.query.log_likelihoods(self._rows(rows), answers)

    def _rows(self, rows: RowBlocks) -> RowBlocks:
        return RowBlocks.of_arrays(self.X, rows.labels)


def same_question(one: Any, two: Any) -> bool:
    """Whether two queries, or parts of them, hold the same numbers.

    >>> one, two = (Neighbours("record", relation) for relation in ("emptied", "replaced"))
    >>> same_question([one, np.ones(2)], [one, np.ones(2)]), same_question(one, two)
    (True, False)
    """
    if one is two:
        return True
    if type(one) is not type(two):
        return False
    if isinstance(one, np.ndarray):
        return one.shape == two.shape and bool(np.array_equal(one, two))
    if isinstance(one, partial):
        return same_question((one.func, one.args, one.keywords), (two.func, two.args, two.keywords))
    if isinstance(one, dict):
        return one.keys() == two.keys() and all(same_question(one[k], two[k]) for k in one)
    if isinstance(one, (list, tuple)):
        return len(one) == len(two) and all(map(same_question, one, two))
    if isinstance(one, MethodType):
        return one.__func__ is two.__func__ and same_question(one.__self__, two.__self__)
    if is_dataclass(one):
        names = [part.name for part in fields(one)]
        return all(same_question(getattr(one, name), getattr(two, name)) for name in names)
    return bool(one == two)
