"""What every question about private rows can do."""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass
from typing import Generic, Literal, TypeVar

from privasso.accounting import Loss
from privasso.blocks import RowBlocks
from privasso.queries._rounded_gaussian import BitSource

Answer = TypeVar("Answer")


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
    relation: Literal["emptied", "replaced"]


#: One record is emptied.
EMPTIED = Neighbours("record", "emptied")
#: One record becomes another one.
REPLACED = Neighbours("record", "replaced")


class Query(ABC, Generic[Answer]):
    """A question about private rows: a frozen value that holds public numbers only.

    The noise is part of the question, so that its loss is known before it is asked.
    """

    @property
    @abstractmethod
    def loss(self) -> Loss:
        """What an answer costs."""

    @property
    @abstractmethod
    def sentence(self) -> str:
        """What is asked, for a statement."""

    @abstractmethod
    def run(self, rows: RowBlocks, bits: BitSource) -> Answer:
        """Answer from the rows, with noise made of these bits."""

    @abstractmethod
    def log_likelihood(self, rows: RowBlocks, answer: Answer) -> float:
        """How likely the answer is for these rows, up to a term that no row changes."""
