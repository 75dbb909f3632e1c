"""Columns that are chosen by their association with the labels, with noise.

The association of a column is |Σ_μ f_μi ỹ_μ|, f in units of the bounds of its column, so that
|f| ≤ 1, and labels clipped to |ỹ| ≤ b around a centre that was found with noise. An emptied record
changes the sum by f_μi ỹ_μ, and so each association by at most b, in either direction. The
differences of two associations then change by at most 2b, and Gumbel noise of the scale 2b/ε₀ makes
each choice one of bounded range ε₀, whatever the number of columns.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import numpy as np

from privasso.accounting import ChoiceLoss
from privasso.privacy._associations import ENTRY, LABEL, IntegerColumns
from privasso.privacy._estimate import half_ranges
from privasso.privacy._label_centre import clipped_integers, noisy_centre
from privasso.queries import ROUNDING, BitSource, noisy_largest


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

    Examples
    --------
    >>> import numpy as np, privasso as pv
    >>> from privasso.fit import FitOptions, plan_for
    >>> privacy = pv.RecordDP(1.0, 1e-6, bounds=[(0, 1)] * 2, y_bounds=(0, 1))
    >>> plan = plan_for(np.zeros((500, 2)), FitOptions(privacy, screen=1))
    >>> plan.objective.screening.centred
    True
    """

    choices: ChoiceLoss
    mu: float
    clip: float
    bounds: np.ndarray = field(repr=False)
    y_bounds: tuple[float, float]
    centred: bool

    @property
    def count(self) -> int:
        """Number of columns to choose."""
        return self.choices.count

    def choose(
        self, X: Any, y: np.ndarray, bits: BitSource, seen: list[float] | None = None
    ) -> np.ndarray:
        """Return the indices of the columns, in increasing order.

        Parameters
        ----------
        X : ndarray or sparse matrix of shape (M, N)
            Records; see `IntegerColumns.products` for what is possible.
        y : ndarray of shape (M,)
            Labels.
        bits : BitSource
            Source of all noise.
        seen : list of float, optional
            Gets the noisy means from which the centre of the labels was found.

        Examples
        --------
        >>> from privasso.queries import bit_source
        >>> rng = np.random.default_rng(0)
        >>> X = rng.uniform(-1.0, 1.0, (5000, 300))
        >>> y = X[:, 7] - X[:, 70] + 0.5 * rng.standard_normal(5000)
        >>> bounds = np.tile([-1.0, 1.0], (300, 1))
        >>> screening = Screening(ChoiceLoss(0.2, 2), 0.05, 0.1, bounds, (-4.0, 4.0), True)
        >>> screening.choose(X, y, bit_source(np.random.default_rng(1))).tolist()
        [7, 70]
        """
        clipped, centre = np.clip(y, *self.y_bounds), 0.0
        if self.centred:
            centre = noisy_centre(clipped, self.y_bounds, self.radius, self.mu, bits, seen=seen)
        return _largest(self.associations(X, clipped, centre, self.radius), self.choices, bits)

    @property
    def radius(self) -> float:
        """Where labels are clipped around their centre, in their units."""
        return self.clip * (self.y_bounds[1] - self.y_bounds[0])

    @property
    def origin(self) -> np.ndarray:
        """From where columns are measured."""
        return half_ranges(self.bounds, self.centred)[0]

    def associations(self, X: Any, y: np.ndarray, centre: float, radius: float) -> np.ndarray:
        """The absolute associations of all columns with labels clipped at c ± r, as integers."""
        labels = clipped_integers(y, centre, radius, LABEL)
        found = self.columns.products(X, labels)
        return np.abs(found, out=found)

    @property
    def columns(self) -> IntegerColumns:
        """How entries become integers; columns that are all alike are described by one."""
        bounds = self.bounds[:1] if np.all(self.bounds == self.bounds[:1]) else self.bounds
        return IntegerColumns.within(bounds, *half_ranges(bounds, self.centred))

    def choose_more(
        self,
        X: Any,
        residuals: np.ndarray,
        chosen: np.ndarray,
        choices: ChoiceLoss,
        clip: float,
        bits: BitSource,
    ) -> np.ndarray:
        """Return further columns, by their association with residuals of what was released.

        Parameters
        ----------
        X : ndarray or sparse matrix of shape (M, N)
            Records.
        residuals : ndarray of shape (M,)
            Of each record, from its label and what was released before.
        chosen : ndarray of int
            Columns that were chosen before.
        choices : ChoiceLoss
            How many columns are chosen, and the range of the losses of each choice.
        clip : float
            Where residuals are clipped, as a part of the range of the labels.
        bits : BitSource
            Source of all noise.
        """
        radius = clip * (self.y_bounds[1] - self.y_bounds[0])
        found = self.associations(X, residuals, 0.0, radius)
        return self.largest_left(found, chosen, choices, bits)

    def largest_left(
        self, associations: np.ndarray, chosen: np.ndarray, choices: ChoiceLoss, bits: BitSource
    ) -> np.ndarray:
        """The noisy choice from the associations of all columns but those chosen before."""
        left = np.setdiff1d(np.arange(len(self.bounds)), chosen)
        return left[_largest(associations[left], choices, bits)]


def noise_scale(choices: ChoiceLoss) -> float:
    """Scale of the Gumbel noise in units of the integer sums, rounded up.

    No record changes a sum by more than ENTRY·LABEL, and so the difference of two absolute values
    by more than twice that.

    Examples
    --------
    >>> noise_scale(ChoiceLoss(0.1, 5)) / noise_scale(ChoiceLoss(0.2, 5))  # half the ε
    2.0
    """
    return 2.0 * ENTRY * LABEL / choices.epsilon_each * ROUNDING


def _largest(associations: np.ndarray, choices: ChoiceLoss, bits: BitSource) -> np.ndarray:
    return noisy_largest(associations, noise_scale(choices), choices.count, bits)
