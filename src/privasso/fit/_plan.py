"""What is decided about a fit before private data are read, and the one way to run it."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from privasso._text import is_unicode
from privasso._types import Found
from privasso._validation import real_labels
from privasso.blocks import RowBlocks
from privasso.encoding import Encoding
from privasso.fit._charge import Charge, fit_in_words
from privasso.fit._classes import OBSERVED, Classes
from privasso.fit._options import FitOptions
from privasso.fit._outcome import Outcome
from privasso.fit._published import interval_sums, label_frame, published
from privasso.noise import Noise
from privasso.operators import Covariates
from privasso.planning import ScreeningOutlook, check_room
from privasso.privacy import Guarantee, Privacy, Terms
from privasso.programs import Calibration, LabelFrame, LabelRange, Program
from privasso.queries import (
    Answering,
    Ask,
    Neighbours,
    Query,
    UndeclaredError,
    after,
    bit_source,
    declared,
    made_up,
)

#: Said of columns that a data dictionary describes.
DECLARED = (
    "the levels and the values for missing entries in the data dictionary were chosen without "
    "looking at the data"
)
_PUBLISHED = (
    "the levels of text columns, and the means that replace missing values, are not sensitive: the "
    "model shows them as they are in the data"
)


def encoded_guarantee(
    guarantee: Guarantee, privacy: Privacy, encoding: Encoding, *, declared: bool = False
) -> Guarantee:
    """Return the statement of a fit whose model shows the encoding.

    Public covariates may be shown, and so may what a data dictionary declares. Otherwise a
    statement without a worst-case claim says that levels and means are published as they are, and a
    formal guarantee, which would be false, is refused.

    Examples
    --------
    >>> import privasso as pv
    >>> from privasso.encoding import LevelCode
    >>> from privasso.privacy import Terms
    >>> privacy, region = pv.OnAverage(0.1), Encoding((LevelCode("region", ("a", "b"), "a"),))
    >>> statement = privacy.guarantee(Terms(fit_intercept=True, seeded=False, n_rows=100))
    >>> encoded_guarantee(statement, privacy, region).assumptions[-1]
    'the levels of text columns, and the means that replace missing values, are not sensitive: the \
model shows them as they are in the data'
    """
    if privacy.public_covariates or (encoding.plain and not declared):
        return guarantee
    if declared:
        return replace(guarantee, assumptions=(*guarantee.assumptions, DECLARED))
    if guarantee.formal:
        raise ValueError(
            "the guarantee covers the covariates, and the levels of text columns and the means "
            "that replace missing values would be published without noise; turn these columns into "
            "numbers by rules that do not depend on the data"
        )
    return replace(guarantee, assumptions=(*guarantee.assumptions, _PUBLISHED))


def statement(
    privacy: Privacy, program: Callable[[Ask], object], terms: Terms, then: Sequence[str] = ()
) -> Guarantee:
    """What holds for the questions of a program, and for what is computed from the answers.

    All of them must have noise for the neighbours that the privacy is about.
    """
    asked = declared(program, terms.n_rows) if privacy.formal else []
    losses = [query.loss for query in asked if query.loss is not None]
    found = privacy.guarantee(terms, losses, [*(query.sentence for query in asked), *then])
    check_asked(asked, found)
    return found


def check_asked(asked: Sequence[Query], stated: Guarantee) -> None:
    """Refuse questions without a loss, or for other neighbours than those of a statement."""
    if any(one.loss is None or one.neighbours != stated.neighbours for one in asked):
        raise UndeclaredError


def with_classes(guarantee: Guarantee, classes: Classes | None) -> Guarantee:
    """Return the statement, which says so if the classes were taken from the labels.

    >>> import privasso as pv
    >>> terms = pv.privacy.Terms(fit_intercept=True, seeded=False, n_rows=100)
    >>> statement = pv.LabelDP(1.0, 1e-6, y_bounds=(0, 1)).guarantee(terms)
    >>> with_classes(statement, Classes.seen([3, 8])).assumptions[-1][:41]
    'which two values the labels take is publi'
    """
    if classes is None or not classes.observed:
        return guarantee
    return replace(guarantee, assumptions=(*guarantee.assumptions, OBSERVED))


@dataclass(frozen=True, eq=False)
class Plan:
    """A program with its settings, the rows that it asks about, and what it guarantees.

    Attributes
    ----------
    options : FitOptions
        What was asked for.
    rows : Covariates, RowBlocks, ndarray or sparse matrix
        Public covariates, prepared for a fit; or rows, of which a plan uses the shape alone; or
        public covariates that columns are chosen from.
    asking : Program
        What is asked.
    guarantee : Guarantee
        What a fit will state.
    seeded : bool
        Whether the noise comes from a fixed random state.
    lam : float
        λ, where a program needs it.
    noise : NoiseDesign, Shaped or None
        The noise at the level that is used, where it has a design.
    calibration : Calibration or None
        The law of the noise on public covariates, where they are fitted as they are.
    source : RowBlocks or None
        The table with its labels that public covariates were taken from, if it was one.
    names : tuple of str or None
        Names of the columns of private records.
    mu : float
        Sensitivity of what is asked for intervals; zero without them.
    range : LabelRange or None
        What is asked first where the range of the labels is not known. The plan is then for labels
        between −½ and ½.
    """

    options: FitOptions
    rows: Any = field(repr=False)
    asking: Program
    guarantee: Guarantee = field(repr=False)
    seeded: bool
    lam: float = 0.0
    noise: Noise | None = None
    calibration: Calibration | None = None
    source: RowBlocks | None = field(default=None, repr=False)
    names: tuple[str, ...] | None = field(default=None, repr=False)
    mu: float = 0.0
    range: LabelRange | None = None

    @property
    def shape(self) -> tuple[int, int]:
        """Rows and columns of the table."""
        return self.rows.shape

    @property
    def neighbours(self) -> Neighbours:
        """How data sets differ that must be hard to tell apart, under a formal guarantee."""
        assert self.guarantee.neighbours is not None
        return self.guarantee.neighbours

    @cached_property
    def outlook(self) -> ScreeningOutlook | None:
        """What is predicted of a choice of columns; None where all are fitted."""
        settings = self.asking.choosing
        return None if settings is None else ScreeningOutlook.of(settings, *self.shape)

    @property
    def solves_again(self) -> bool:
        """Whether models at other λ can be solved from what is published."""
        return self.asking.again and self.options.privacy.formal

    @property
    def covariates(self) -> Covariates | None:
        """Public covariates that are fitted as they are."""
        return None if self.calibration is None else self.rows

    def table(self, y: ArrayLike | None) -> RowBlocks:
        """The rows that questions are about, with these labels, or with their own for None."""
        if isinstance(self.rows, RowBlocks):
            return self.rows
        labels = self.source if y is None else None
        if self.covariates is not None:
            if self.calibration is not None and self.calibration.objective is not None:
                check_room(int(self.covariates.live.sum()))
            finite = not self.options.privacy.formal
            return self.covariates.labelled(
                real_labels(y, self.shape[0], finite=finite) if labels is None else labels
            )
        held = real_labels(y, self.shape[0]) if labels is None else labels.labels
        X = np.empty((held.size, 0)) if self.asking.labels_alone else self.rows
        return RowBlocks.of_arrays(X, held)

    def worst(self, y: np.ndarray) -> list[tuple[Plan, np.ndarray, str]]:
        """The same fit of tables that are made up, with labels, and what their first record is.

        No record is expected to show more than that one.
        """
        if self.neighbours.unit == "label" and not self.asking.labels_alone:
            return []
        return [
            (replace(self, rows=X, asking=self.asking.on(X)), labels, name)
            for X, labels, name in self.asking.worst(self.rows, y)
        ]

    def program(self, ask: Ask) -> Found:
        """Ask; return what follows, and with intervals the sums that these are made of."""
        within = None if self.range is None else self.range(ask)
        ask = ask if within is None else after(ask, within)
        found = self.asking(ask, self.lam)
        found = (found, interval_sums(self, ask, found)) if self.mu else found
        return found if within is None else (found, within)

    @cached_property
    def frame(self) -> LabelFrame:
        """The coordinates of intervals on public covariates."""
        assert self.covariates is not None
        return label_frame(self.covariates)

    def published(
        self,
        found: Found,
        feature_names: tuple[str, ...] | None = None,
        target: str | None = None,
    ) -> Outcome:
        """What comes of the answers, with names: a model, or what models are solved from."""
        found, within = (found, None) if self.range is None else found
        answer, sums = found if self.mu else (found, None)
        made = published(self, answer, feature_names, target)
        made = made if sums is None else made.with_intervals(sums.intervals())
        return made if within is None else made.in_range(within)

    def rehearsed(
        self, feature_names: tuple[str, ...] | None = None, target: str | None = None
    ) -> Outcome:
        """What `release` could return, from answers that are made up; nothing is read or spent."""
        return self.published(made_up(self.program, self.shape[0]), feature_names, target)

    def release(
        self,
        y: ArrayLike | None,
        *,
        rng: np.random.Generator | None = None,
        feature_names: tuple[str, ...] | None = None,
        target: str | None = None,
        charged: bool = False,
        keep: Callable[[Outcome, str], None] | None = None,
    ) -> Outcome:
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


def check_run(
    rng: np.random.Generator | None,
    seeded: bool,
    feature_names: tuple[str, ...] | None,
    target: str | None,
) -> None:
    """Refuse a generator that the plan does not state, and names that no file could hold.

    It is done before the budget is spent on what they belong to.
    """
    if (rng is not None) != seeded:
        raise ValueError(f"pass rng exactly if the plan is seeded; here seeded={seeded}")
    names = feature_names or ()
    for name in (*names, *(() if target is None else (target,))):
        if not is_unicode(name):
            raise ValueError(
                f"the name {name!r} holds half a character (a lone surrogate) and could not be "
                "saved; rename the column"
            )
    if len(set(names)) != len(names):
        twice = next(name for k, name in enumerate(names) if name in names[:k])
        raise ValueError(f"two columns have the name {twice!r}; rename one of them")
