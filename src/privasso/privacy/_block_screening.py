"""A choice of columns and their fit over blocks of rows, by sums that are exact in any order.

It is the mechanism of `ScreenedObjective`. All that it needs of the rows are sums of integers: of
clipped labels, of integer entries times integer labels or residuals, and those of the fit of the
chosen columns. So the noise, the choice and the model are those of the same table in memory.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

import numpy as np

from privasso.blocks import Chunk, DataChangedError, RowBlocks, Sums, Task
from privasso.privacy._associations import LABEL, MOST_ROWS, IntegerColumns
from privasso.privacy._cells import within
from privasso.privacy._exact_minimiser import sums_are_exact
from privasso.privacy._label_centre import CENTRE_BITS, clipped_integers, clipped_total
from privasso.privacy._label_level import Level
from privasso.privacy._residual_pass import halves, ordered_residuals, whole

if TYPE_CHECKING:
    from privasso.privacy._screened_objective import ScreenedObjective


@dataclass(frozen=True, eq=False)
class Fitted:
    """A fit of some columns, whose residuals take the place of the labels.

    Attributes
    ----------
    columns : ndarray of int
        Which columns.
    bounds : ndarray of shape (K, 2)
        Their bounds.
    coef, intercept
        Coefficients of these.
    """

    columns: np.ndarray
    bounds: np.ndarray
    coef: np.ndarray
    intercept: float

    def residuals(self, few: np.ndarray, y: np.ndarray) -> np.ndarray:
        """What the fit leaves of labels; `few` holds its columns."""
        return ordered_residuals(within(few, self.bounds), y, self.coef, self.intercept)


@dataclass(frozen=True, eq=False)
class LabelPass:
    """The sum of labels that are clipped around a centre; the state is (centre, radius)."""

    y_bounds: tuple[float, float]

    def __call__(self, chunks: Iterable[Chunk], state: tuple[float, float]) -> Sums:
        """Return it."""
        total = np.zeros(2, np.int64)
        for _, y in chunks:
            clipped = np.clip(np.asarray(y, dtype=np.float64), *self.y_bounds)
            total += halves(clipped_total(clipped, *state, 1 << CENTRE_BITS))
        return {"total": total}


@dataclass(frozen=True, eq=False)
class AssociationPass:
    """Sums of integer entries times labels or residuals; the state is (centre, radius, fit).

    Attributes
    ----------
    columns : IntegerColumns
        How entries become integers.
    y_bounds : (float, float)
        Bounds of the labels.
    n_columns : int
        N.
    """

    columns: IntegerColumns
    y_bounds: tuple[float, float]
    n_columns: int

    def __call__(self, chunks: Iterable[Chunk], state: tuple[float, float, Fitted | None]) -> Sums:
        """Return them."""
        centre, radius, fitted = state
        sums = np.zeros(self.n_columns, np.int64)
        for X, y in chunks:
            values = np.clip(np.asarray(y, dtype=np.float64), *self.y_bounds)
            if fitted is not None:
                values = fitted.residuals(X[:, fitted.columns], values)
            labels = clipped_integers(values, centre, radius, LABEL)
            sums += self.columns.products(X, labels)
        return {"sums": sums}


@dataclass(frozen=True, eq=False)
class LevelPass:
    """The sum of residuals that corrects the intercept, over the chosen columns."""

    level: Level
    y_bounds: tuple[float, float]

    def __call__(self, chunks: Iterable[Chunk], state: Fitted) -> Sums:
        """Return it."""
        total = np.zeros(2, np.int64)
        for X, y in chunks:
            values = np.clip(np.asarray(y, dtype=np.float64), *self.y_bounds)
            total += halves(self.level.total(state.residuals(X, values)))
        return {"total": total}


@dataclass(frozen=True, eq=False)
class ScreenedPasses:
    """A table whose rows were read once, and can be read again.

    Attributes
    ----------
    blocks : RowBlocks
        Where the rows are.
    first : Sums
        What the first pass found. It holds private numbers.

    Examples
    --------
    >>> import privasso as pv
    >>> from privasso.fit import FitOptions, plan_for
    >>> rng = np.random.default_rng(0)
    >>> X, y = rng.random((500, 2)), rng.random(500)
    >>> privacy = pv.RecordDP(1.0, 1e-6, bounds=[(0, 1)] * 2, y_bounds=(0, 1))
    >>> objective = plan_for(X, FitOptions(privacy, screen=1)).objective
    >>> whole, cut = (RowBlocks.of_arrays(X, y, n_parts=parts) for parts in (1, 3))
    >>> passes = [ScreenedPasses.opened(objective, blocks) for blocks in (whole, cut)]
    >>> bool(np.all(passes[0].first["total"] == passes[1].first["total"]))  # however they are cut
    True
    """

    blocks: RowBlocks = field(repr=False)
    first: Sums = field(repr=False)

    @staticmethod
    def opened(objective: ScreenedObjective, blocks: RowBlocks) -> ScreenedPasses:
        """Read all rows once, before any noise is drawn, so that bad data cost nothing."""
        m, n = blocks.shape
        tables = (objective.table, *(one.table for one in objective.rounds))
        if not all(sums_are_exact(table, m) for table in tables) or m > MOST_ROWS:
            raise ValueError(
                "chosen columns of blocks of rows are fitted where rows are at least as many as "
                f"these and at most {MOST_ROWS}, and these are at most 4095; choose fewer"
            )
        low, high = objective.screening.y_bounds
        half = 0.5 * high - 0.5 * low
        if len(objective.screening.bounds) != n:
            raise DataChangedError
        return ScreenedPasses(blocks, blocks.sum(LabelPass((low, high)), (low + half, half)))

    def again(self, task: Task, state: object, columns: np.ndarray | None = None) -> Sums:
        """Read all columns again, or some; if rows are not the same, nothing may be released."""
        blocks = self.blocks if columns is None else self.blocks.select(columns)
        return blocks.sum(task, state)

    def label_total(self, task: LabelPass, centre: float, radius: float) -> int:
        """The sum of labels that are clipped around a centre, which reads no other column."""
        return whole(self.again(task, (centre, radius), np.empty(0, dtype=np.intp))["total"])
