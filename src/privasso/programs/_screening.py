"""Columns that are chosen by their association with the labels, with noise.

The association of a column is |Σ_μ f_μi ỹ_μ|, f in units of the bounds of its column, so that
|f| ≤ 1, and labels clipped to |ỹ| ≤ b around a centre that was found with noise. An emptied record
changes the sum by f_μi ỹ_μ, and so each association by at most b, in either direction. The
differences of two associations then change by at most 2b, and Gumbel noise of the scale 2b/ε₀ makes
each choice one of bounded range ε₀, whatever the number of columns.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import cached_property

import numpy as np

from privasso.accounting import ChoiceLoss
from privasso.blocks import taken
from privasso.programs._associations import ENTRY, LABEL, IntegerColumns
from privasso.programs._centre import clipped_integers, noisy_centre
from privasso.programs._records import half_ranges, ordered_residuals, within
from privasso.queries import EMPTIED, Ask, Neighbours, NoisyChoice, Scores


@dataclass(frozen=True, eq=False)
class Screening:
    """How columns of whole records are chosen; all of it is decided before the data are read.

    Attributes
    ----------
    choices : ChoiceLoss
        How many columns are chosen, and the range of the losses of each choice.
    mu : float
        Sensitivity of the sums from which the centre of the labels is found; zero if it is not.
    clip : float
        b, as a part of the range of the labels.
    bounds : ndarray of shape (N, 2)
        Bounds of the columns.
    y_bounds : (float, float)
        Bounds of the labels.
    centred : bool
        Whether columns are measured from the middle of their bounds and labels from their centre,
        as for a fit with an intercept; otherwise both from zero.
    neighbours : Neighbours
        How data sets differ.
    """

    choices: ChoiceLoss
    mu: float
    clip: float
    bounds: np.ndarray = field(repr=False)
    y_bounds: tuple[float, float]
    centred: bool
    neighbours: Neighbours = EMPTIED

    @property
    def count(self) -> int:
        """Number of columns to choose."""
        return self.choices.count

    def choose(self, ask: Ask) -> np.ndarray:
        """Return the indices of the columns, in increasing order."""
        centre = 0.0
        if self.centred:
            centre = noisy_centre(ask, self.y_bounds, self.radius, self.mu, self.neighbours)
        return ask(self.choice(self.choices, self.associations(centre, self.radius)))

    def choose_more(self, ask: Ask, fitted: Fitted, choices: ChoiceLoss, clip: float) -> np.ndarray:
        """Return further columns, by their association with residuals of what was released.

        Parameters
        ----------
        ask : Ask
            Who answers.
        fitted : Fitted
            The fit of the columns that were chosen before.
        choices : ChoiceLoss
            How many columns are chosen, and the range of the losses of each choice.
        clip : float
            Where residuals are clipped, as a part of the range of the labels.
        """
        radius = clip * (self.y_bounds[1] - self.y_bounds[0])
        return ask(self.choice(choices, self.associations(0.0, radius, fitted)))

    def choice(self, choices: ChoiceLoss, associations: Associations) -> NoisyChoice:
        """The question for columns that were not chosen before."""
        among, fitted = np.arange(len(self.bounds)), associations.fitted
        left = among if fitted is None else np.setdiff1d(among, fitted.columns)
        return NoisyChoice(associations, choices, left, self.neighbours)

    def associations(
        self, centre: float, radius: float, fitted: Fitted | None = None
    ) -> Associations:
        """Those of all columns with labels, or with residuals of a fit, clipped at c ± r."""
        return Associations(self.entries, self.y_bounds, centre, radius, fitted)

    @property
    def radius(self) -> float:
        """Where labels are clipped around their centre, in their units."""
        return self.clip * (self.y_bounds[1] - self.y_bounds[0])

    @property
    def origin(self) -> np.ndarray:
        """From where columns are measured."""
        return half_ranges(self.bounds, self.centred)[0]

    @cached_property
    def entries(self) -> IntegerColumns:
        """How entries become integers; columns that are all alike are described by one."""
        bounds = self.bounds[:1] if np.all(self.bounds == self.bounds[:1]) else self.bounds
        return IntegerColumns.within(bounds, *half_ranges(bounds, self.centred))


@dataclass(frozen=True, eq=False)
class Fitted:
    """A fit of some columns, whose residuals take the place of the labels.

    Attributes
    ----------
    columns : ndarray of int
        Which columns.
    bounds : ndarray of shape (K, 2)
        Their bounds.
    y_bounds : (float, float)
        Bounds of the labels.
    coef, intercept
        Coefficients of these.
    """

    columns: np.ndarray
    bounds: np.ndarray
    y_bounds: tuple[float, float]
    coef: np.ndarray
    intercept: float

    def residuals(self, few: np.ndarray, y: np.ndarray) -> np.ndarray:
        """What the fit leaves of labels; `few` holds its columns."""
        labels = np.clip(np.asarray(y, dtype=np.float64), *self.y_bounds)
        return ordered_residuals(within(few, self.bounds), labels, self.coef, self.intercept)


@dataclass(frozen=True, eq=False)
class Associations(Scores):
    """Entries times labels, or times the residuals of a fit, all as integers.

    Attributes
    ----------
    entries : IntegerColumns
        How entries become integers.
    y_bounds : (float, float)
        Bounds of the labels.
    centre, radius : float
        Where labels or residuals are clipped.
    fitted : Fitted or None
        The fit.
    """

    entries: IntegerColumns = field(repr=False)
    y_bounds: tuple[float, float]
    centre: float
    radius: float
    fitted: Fitted | None = None

    sentence = "which columns were chosen"
    most_rows = None

    def sums(self, X: np.ndarray, y: np.ndarray) -> np.ndarray:
        """Those of all columns."""
        if self.fitted is None:
            values = np.clip(np.asarray(y, dtype=np.float64), *self.y_bounds)
        else:
            values = self.fitted.residuals(taken(X, self.fitted.columns), y)
        labels = clipped_integers(values, self.centre, self.radius, LABEL)
        return self.entries.products(X, labels)

    def change(self, neighbours: Neighbours) -> float:
        """No record adds more than ENTRY·LABEL to a sum."""
        return (1.0 if neighbours.relation == "emptied" else 2.0) * ENTRY * LABEL
