"""Questions about private rows, and who answers those of a program."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Hashable, Sequence
from dataclasses import dataclass, field, fields, is_dataclass
from functools import partial
from hashlib import blake2b
from types import MethodType
from typing import Generic, Literal, TypeAlias, TypeVar

import numpy as np

from privasso._types import Found
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


class Ask(ABC):
    """Answers questions about private rows.

    A program is a function of an `Ask`: between two questions stand only public functions of the
    answers before. So whoever knows the answers knows what was asked.

    Attributes
    ----------
    n_rows : int
        Number of rows, which is public.
    transcript : list of (Query, answer)
        What was asked so far, with the answers.
    """

    def __init__(self, n_rows: int) -> None:
        self.n_rows = n_rows
        self.transcript: list[tuple[Query, Found]] = []

    def __call__(self, query: Query[Answer]) -> Answer:
        """Return the answer."""
        answer = self.answer(query)
        self.transcript.append((query, answer))
        return answer

    @abstractmethod
    def answer(self, query: Query[Answer]) -> Answer:
        """Find it."""


class _OfOthers(Ask):
    """Asks another one about what rows become."""

    def __init__(
        self, ask: Ask, rule: Callable[[RowBlocks], RowBlocks], said: str | None = None
    ) -> None:
        super().__init__(ask.n_rows)
        self._ask, self._rule, self._said = ask, rule, said

    def answer(self, query: Query[Answer]) -> Answer:
        """Ask for it."""
        return self._ask(OfOthers(query, self._rule, self._said))


def beside(ask: Ask, X: np.ndarray) -> Ask:
    """Ask about the labels beside public covariates (M, N), instead of those of the rows."""
    return _OfOthers(ask, BesideColumns(X))


def after(ask: Ask, change: Change, said: str | None = None) -> Ask:
    """Ask about the rows after a change; `said` is what a statement says of it."""
    return _OfOthers(ask, AfterChange(change), said)


class UndeclaredError(RuntimeError):
    """A program asked what it had not declared before the data were read; nothing was answered."""

    def __init__(self) -> None:
        super().__init__(
            "a question was not among those that the budget was charged for, so it was not "
            "answered; this is a fault of privasso, so please report the settings of the fit"
        )


class Answering(Ask):
    """Answers from rows, with noise.

    Parameters
    ----------
    rows : RowBlocks
        The private rows.
    bits : BitSource
        What the noise is made of.
    losses : sequence of Loss, optional
        What the questions cost, one after the other; others are refused.
    """

    def __init__(
        self, rows: RowBlocks, bits: BitSource, losses: Sequence[Loss | None] | None = None
    ) -> None:
        super().__init__(rows.shape[0])
        self._rows, self._bits, self._losses = rows, bits, losses

    def answer(self, query: Query[Answer]) -> Answer:
        """Run the query."""
        k = len(self.transcript)
        if self._losses is not None and (k >= len(self._losses) or query.loss != self._losses[k]):
            raise UndeclaredError
        return query.run(self._rows, self._bits)


def declared(program: Callable[[Ask], object], n_rows: int) -> list[Query]:
    """What a program asks; no rows are read, and answers are made up.

    Noise is fixed before the data are read, so that it cannot depend on answers. Other answers lead
    to other questions, but to as many of the same losses.
    """
    ask = _MadeUp(n_rows)
    program(ask)
    return [query for query, _ in ask.transcript]


def made_up(program: Callable[[Ask], Answer], n_rows: int) -> Answer:
    """What a program finds with answers that are made up; no rows are read."""
    return program(_MadeUp(n_rows))


class _MadeUp(Ask):
    """Answers that any table could have given."""

    def answer(self, query: Query[Answer]) -> Answer:
        """A possible answer."""
        return query.possible


class _NextError(Exception):
    """A question beyond those that are answered."""

    def __init__(self, query: Query) -> None:
        super().__init__()
        self.query = query


class Replaying(Ask):
    """Gives the answers of an earlier run again, whatever is asked, and reads no rows.

    Parameters
    ----------
    answers : sequence
        Those of an earlier run.
    n_rows : int
        Number of rows.
    """

    def __init__(self, answers: Sequence[Found], n_rows: int) -> None:
        super().__init__(n_rows)
        self._answers = answers

    def answer(self, query: Query[Answer]) -> Answer:
        """The next answer; where there are no more, the program stops."""
        if len(self.transcript) == len(self._answers):
            raise _NextError(query)
        return self._answers[len(self.transcript)]


def next_question(
    program: Callable[[Ask], object], answers: Sequence[object], n_rows: int
) -> Query:
    """What a program asks after these answers; no rows are read."""
    try:
        program(Replaying(answers, n_rows))
    except _NextError as found:
        return found.query
    raise ValueError("the program asks nothing more after these answers")
