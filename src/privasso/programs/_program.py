"""What all programs of a fit have in common."""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import Any, ClassVar

from privasso.programs._worst_tables import Table
from privasso.queries import Ask


class Program(ABC):
    """What a fit asks about private rows, with all its settings, and what follows from the answers.

    It is a frozen value. Between two questions stand only functions of the answers before.
    """

    #: Whether models at every λ follow from the answers.
    again: ClassVar[bool] = False
    #: Whether the questions hold covariates, so that rows are labels and nothing else.
    labels_alone: ClassVar[bool] = False

    @abstractmethod
    def __call__(self, ask: Ask, lam: float) -> Any:
        """Ask, and return what a model at λ is made of, or models at every λ."""

    @property
    @abstractmethod
    def kappa(self) -> float:
        """Where residuals are clipped, as a part of the range of the labels."""

    @property
    def choosing(self) -> Any:
        """The settings of a choice of columns, if there is one."""
        return None

    def worst(self, X: Any, y: Any) -> list[Table]:
        """Tables whose first record shows as much as it can; see `Plan.worst`."""
        return []

    def on(self, X: Any) -> Program:
        """The same program beside other public covariates, where it holds these."""
        return self

    def facts(self, n_rows: int) -> tuple[str, dict[str, float], str] | None:
        """The name of the mechanism, its numbers, and what each column is divided by."""
        return None
