"""Who answers the questions of a program."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence
from typing import Any, TypeVar

import numpy as np

from privasso.blocks import RowBlocks
from privasso.queries._query import Given, Query
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
        self.transcript: list[tuple[Query[Any], Any]] = []

    def __call__(self, query: Query[Answer]) -> Answer:
        """Return the answer."""
        answer = self.answer(query)
        self.transcript.append((query, answer))
        return answer

    @abstractmethod
    def answer(self, query: Query[Answer]) -> Answer:
        """Find it."""


class Beside(Ask):
    """Asks another one about the labels beside public covariates, instead of those of its rows.

    Parameters
    ----------
    ask : Ask
        Who answers.
    X : ndarray of shape (M, N)
        The covariates.
    """

    def __init__(self, ask: Ask, X: np.ndarray) -> None:
        super().__init__(ask.n_rows)
        self._ask, self._X = ask, X

    def answer(self, query: Query[Answer]) -> Answer:
        """Ask for it."""
        return self._ask(Given(query, self._X))


class Answering(Ask):
    """Answers from rows, with noise.

    Parameters
    ----------
    rows : RowBlocks
        The private rows.
    bits : BitSource
        What the noise is made of.
    """

    def __init__(self, rows: RowBlocks, bits: BitSource) -> None:
        super().__init__(rows.shape[0])
        self._rows, self._bits = rows, bits

    def answer(self, query: Query[Answer]) -> Answer:
        """Run the query."""
        return query.run(self._rows, self._bits)


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
