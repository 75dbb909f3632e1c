"""Who answers the questions of a program."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from typing import Any, TypeVar

import numpy as np

from privasso.accounting import Loss
from privasso.blocks import Change, RowBlocks
from privasso.queries._query import AfterChange, BesideColumns, OfOthers, Query
from privasso.queries._rounded_gaussian import BitSource

Answer = TypeVar("Answer")


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
        self.transcript: list[tuple[Query, Any]] = []

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


class Replaying(Ask):
    """Gives the answers of an earlier run again, whatever is asked, and reads no rows.

    Parameters
    ----------
    answers : sequence
        Those of an earlier run.
    n_rows : int
        Number of rows.
    """

    def __init__(self, answers: Sequence[Any], n_rows: int) -> None:
        super().__init__(n_rows)
        self._answers = answers

    def answer(self, query: Query[Answer]) -> Answer:
        """The next answer."""
        return self._answers[len(self.transcript)]


class _NextError(Exception):
    """A question beyond those that are answered."""

    def __init__(self, query: Query) -> None:
        super().__init__()
        self.query = query


class _UpTo(Replaying):
    """Gives the answers of an earlier run, and stops the program when there are no more."""

    def answer(self, query: Query[Answer]) -> Answer:
        """The next answer."""
        if len(self.transcript) == len(self._answers):
            raise _NextError(query)
        return super().answer(query)


def next_question(
    program: Callable[[Ask], object], answers: Sequence[object], n_rows: int
) -> Query:
    """What a program asks after these answers; no rows are read."""
    try:
        program(_UpTo(answers, n_rows))
    except _NextError as found:
        return found.query
    raise ValueError("the program asks nothing more after these answers")
