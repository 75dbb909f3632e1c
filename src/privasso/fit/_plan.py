"""What is decided about a fit before private data are read, and the one way to run it."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any, Self, cast

import numpy as np
from numpy.typing import ArrayLike

from privasso.blocks import RowBlocks
from privasso.fit._charge import Charge
from privasso.fit._options import FitOptions
from privasso.fit._start import check_run, fit_in_words
from privasso.noise import Noise
from privasso.planning import ScreeningOutlook
from privasso.privacy import Guarantee, Privacy, Terms
from privasso.programs import IntervalSums
from privasso.queries import Answering, Ask, Neighbours, UndeclaredError, bit_source, declared


def statement(
    privacy: Privacy, program: Callable[[Ask], Any], terms: Terms, then: Sequence[str] = ()
) -> Guarantee:
    """What holds for the questions of a program, and for what is computed from the answers.

    All of them must have noise for the neighbours that the privacy is about.
    """
    asked = declared(program, terms.n_rows) if privacy.formal else []
    losses = [query.loss for query in asked if query.loss is not None]
    found = privacy.guarantee(terms, losses, [*(query.sentence for query in asked), *then])
    if len(losses) < len(asked) or any(one.neighbours != found.neighbours for one in asked):
        raise UndeclaredError
    return found


class Plan(ABC):
    """A program with its settings, and what it guarantees.

    Attributes
    ----------
    options : FitOptions
        What was asked for.
    guarantee : Guarantee
        What a fit will state.
    seeded : bool
        Whether the noise comes from a fixed random state.
    noise : NoiseDesign, Shaped or None
        The noise at the level that is used, where it has a design.
    """

    options: FitOptions
    guarantee: Guarantee
    seeded: bool
    noise: Noise | None

    @property
    def neighbours(self) -> Neighbours:
        """How data sets differ that must be hard to tell apart, under a formal guarantee."""
        assert self.guarantee.neighbours is not None
        return self.guarantee.neighbours

    def stating(self, guarantee: Guarantee) -> Self:
        """The same plan with another statement."""
        return replace(cast(Any, self), guarantee=guarantee)

    @property
    def outlook(self) -> ScreeningOutlook | None:
        """What is predicted of a choice of columns; None where all are fitted."""
        return None

    @property
    def solves_again(self) -> bool:
        """Whether models at other λ can be solved from what is published."""
        return False

    @property
    @abstractmethod
    def shape(self) -> tuple[int, int]:
        """Rows and columns of the table."""

    @abstractmethod
    def table(self, y: ArrayLike | None) -> RowBlocks:
        """The rows that questions are about, with these labels, or with their own for None."""

    def worst(self, y: np.ndarray) -> list[tuple[Plan, np.ndarray, str]]:
        """The same fit of tables that are made up, with labels, and what their first record is.

        No record is expected to show more than that one.
        """
        return []

    def interval_sums(self, ask: Ask, found: Any, mu: float) -> IntervalSums:
        """Ask for intervals at what the program found, at this sensitivity."""
        raise ValueError("this fit has no intervals; leave intervals out")

    @abstractmethod
    def program(self, ask: Ask) -> Any:
        """Ask, and return what follows from the answers."""

    @abstractmethod
    def published(
        self, found: Any, feature_names: tuple[str, ...] | None, target: str | None
    ) -> Any:
        """What comes of a program, with names: a model, or what models are solved from."""

    def release(
        self,
        y: ArrayLike | None,
        *,
        rng: np.random.Generator | None = None,
        feature_names: tuple[str, ...] | None = None,
        target: str | None = None,
        charged: bool = False,
        keep: Callable[[Any, str], None] | None = None,
    ) -> Any:
        """Read the data, draw the noise once, and return what is published.

        Blocks of rows hold their labels, so that `y` is None for them. A missing label (NaN) is an
        empty record, or the middle of the bounds where labels alone are private.

        The ledger, if there is one, is charged before the noise is drawn, unless it was charged
        already, or nothing will be published (`charged`). The budget is spent from here on, and no
        later step sees private data. With `keep`, which is called with the result and with what was
        spent in words, an interruption after the charge waits until the result is kept.
        """
        check_run(rng, self.seeded, feature_names, target)
        what = fit_in_words(self.shape, target, self.seeded)
        privacy, ledger = self.options.privacy, self.options.ledger
        with Charge(privacy, self.guarantee, ledger, what, charged=charged, keep=keep) as charge:
            rows = self.table(y)
            in_memory = y is not None or rows.engine.in_memory
            bits = charge.before(
                bit_source(rng), lambda: rows.labels if in_memory else rows.identity
            )
            ask = Answering(rows, bits, self.guarantee.losses if privacy.formal else None)
            return charge.kept(self.published(self.program(ask), feature_names, target))
