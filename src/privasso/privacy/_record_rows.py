"""Records as rows of bounded length, from bounds and scales of the columns that are public."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np

from privasso._validation import real_array
from privasso.blocks import RowBlocks
from privasso.privacy._cells import empty_records, within
from privasso.privacy._estimate import Estimate, half_ranges
from privasso.privacy._exact_minimiser import RecordPasses, exact_minimiser, sums_are_exact
from privasso.privacy._label_level import Level
from privasso.privacy._perturbed_objective import ObjectiveNoise, perturbed_minimiser
from privasso.privacy._record_map import RecordMap
from privasso.privacy._record_settings import origins
from privasso.privacy._residual_pass import full_residuals
from privasso.queries import BitSource

#: Numbers that are scaled at a time: they stay in cache from the first step to the last.
_BLOCK = 1 << 17


@dataclass(frozen=True, eq=False)
class PerturbedObjective:
    """How a table becomes rows of bounded length, and with how much noise they are fitted.

    With an intercept covariates become (f − origin)/half range (see `origins`), the intercept is
    one more column of ones, and labels become (y − middle)/range. Without one, covariates are
    divided by their largest absolute value and labels by their range. Rows longer than the radius
    are shrunk together with their labels.

    Attributes
    ----------
    noise : ObjectiveNoise
        In units of the scaled rows and labels.
    bounds : ndarray of shape (N, 2)
        Bounds of the columns.
    y_bounds : (float, float)
        Bounds of the labels.
    fit_intercept : bool
        Whether there is a column of ones, which has no penalty.
    lam : float
        The λ that is used unless another one is given, in units of the labels.
    scaling : (ndarray, ndarray) or None
        Origin and scale of each column, where they are not those of the bounds.
    estimate : Estimate or None
        What is found in the data about the columns first, with noise of its own.
    level : Level or None
        How the intercept is corrected after the fit, in units of the range of the labels.

    Examples
    --------
    >>> import numpy as np, privasso as pv
    >>> from privasso.fit import FitOptions, plan_for
    >>> privacy = pv.RecordDP(1.0, 1e-6, bounds=[(0, 1)] * 2, y_bounds=(0, 1))
    >>> plan = plan_for(np.zeros((500, 2)), FitOptions(privacy))
    >>> plan.objective.bounds.shape, plan.objective.fit_intercept
    ((2, 2), True)
    """

    noise: ObjectiveNoise
    bounds: np.ndarray = field(repr=False)
    y_bounds: tuple[float, float]
    fit_intercept: bool
    lam: float
    scaling: tuple[np.ndarray, np.ndarray] | None = field(default=None, repr=False)
    estimate: Estimate | None = None
    level: Level | None = None

    @property
    def width(self) -> float:
        """Range of the labels."""
        return self.y_bounds[1] - self.y_bounds[0]

    def opened(self, blocks: RowBlocks) -> RecordPasses:
        """Read all rows once, before any noise is drawn, so that bad data cost nothing."""
        self.check_blocks(blocks)
        return RecordPasses.opened(blocks, self.record_map(), self)

    def check_blocks(self, blocks: RowBlocks) -> None:
        """Refuse blocks of rows over which the sums of a fit are not exact."""
        if blocks.shape[1] != len(self.bounds) or not sums_are_exact(self, blocks.shape[0]):
            raise ValueError(
                "blocks of rows are fitted where rows are at least as many as columns and columns "
                "at most 4095; choose some columns, or fit an array in memory"
            )

    def release_over(
        self, passes: RecordPasses, lam: float, bits: BitSource
    ) -> tuple[np.ndarray, float]:
        """Run the mechanism over blocks of rows that were opened."""
        u = exact_minimiser(passes, lam / self.width, self.noise, bits, self.penalised)
        if self.level is not None:
            total = passes.residual_sum(self.level, u)
            u[-1] += self.level.from_total(total, passes.blocks.shape[0], bits)
        return self.in_units(u)

    def release(
        self, X: Any, y: np.ndarray, lam: float, bits: BitSource
    ) -> tuple[np.ndarray, float]:
        """Run the mechanism, and return coefficients and intercept in the units of the data."""
        if self.estimate is not None:
            return self.estimated(self.held(X, y), bits).release(X, y, lam, bits)
        rows, labels = self.rows(X, y)
        del X  # if nobody else needs it, its memory is free from here on
        if sums_are_exact(self, len(labels)):
            passes = RecordPasses.opened(RowBlocks.of_arrays(rows, labels), None, self)
            return self.release_over(passes, lam, bits)
        u = perturbed_minimiser(
            rows, labels, lam / self.width, self.noise, bits, penalty_weights=self.penalised
        )
        return self.in_units(self.levelled(u, rows, labels, bits))

    def levelled(
        self, u: np.ndarray, rows: np.ndarray, labels: np.ndarray, bits: BitSource
    ) -> np.ndarray:
        """Coefficients that were released, with a corrected intercept if there is to be one."""
        if self.level is not None:
            u = u.copy()
            u[-1] += self.level.release(full_residuals(rows, labels, u), bits)
        return u

    @property
    def penalised(self) -> np.ndarray:
        """One for each column, and zero for that of ones."""
        return np.append(np.ones(len(self.bounds)), np.zeros(int(self.fit_intercept)))

    def in_units(self, u: np.ndarray) -> tuple[np.ndarray, float]:
        """Coefficients and intercept in the units of the data, from those of the scaled rows."""
        n = self.bounds.shape[0]
        origin, _ = self._scaling()
        coef = self.width * self.per_unit(u)
        level = self._middle + self.width * u[n] if self.fit_intercept else 0.0
        return coef, float(level - origin @ coef) if self.fit_intercept else 0.0

    def from_units(self, coef: np.ndarray, intercept: float) -> np.ndarray:
        """What `in_units` was given, up to rounding.

        Examples
        --------
        >>> from privasso import RecordDP
        >>> privacy = RecordDP(1.0, 1e-6, bounds=[(0.0, 20.0)], y_bounds=(0.0, 4.0))
        >>> objective = privacy.objective(2, 1, None, fit_intercept=True)
        >>> objective.from_units(*objective.in_units(np.array([0.5, 0.25]))).round(9).tolist()
        [0.5, 0.25]
        """
        origin, half = self._scaling()
        u = coef * half / self.width
        if not self.fit_intercept:
            return u
        return np.append(u, (intercept + origin @ coef - self._middle) / self.width)

    def per_unit(self, u: np.ndarray) -> np.ndarray:
        """The entries of the columns divided by the scales of these, zero where there is none."""
        n, (_, half) = self.bounds.shape[0], self._scaling()
        return np.where(half > 0.0, u[:n] / np.where(half > 0.0, half, 1.0), 0.0)

    @property
    def largest_label(self) -> float:
        """Largest absolute value of a scaled label, from the numbers that labels are scaled by.

        Rounding is monotone, so that no label between the bounds becomes larger than these do.
        """
        return float(np.max(np.abs(np.array(self.y_bounds) - self._middle)) / self.width)

    @property
    def _middle(self) -> float:
        """What is subtracted from labels; without an intercept zero, so that Xβ can reach them."""
        return 0.5 * self.y_bounds[0] + 0.5 * self.y_bounds[1] if self.fit_intercept else 0.0

    def estimated(self, rows: RowBlocks, bits: BitSource) -> PerturbedObjective:
        """Release what the estimate asks for, and return the fit with the scaling that was found.

        The result is computed from the noisy releases alone, and the guarantee covers it.
        """
        if self.estimate is None:
            return self
        bounds = self.estimate.ranges(rows, self.bounds, bits)
        scaling = self.estimate.scaling(rows, bounds, bits, centred=self.fit_intercept)
        return replace(self, bounds=bounds, scaling=scaling, estimate=None)

    def rows(self, X: Any, y: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Rows no longer than the radius, and their labels; each depends on its own record only.

        An empty record contributes nothing; see `_cells` for this and for missing covariates.

        Examples
        --------
        >>> from privasso import RecordDP
        >>> privacy = RecordDP(1.0, 1e-6, bounds=[(0.0, 20.0)], y_bounds=(0.0, 4.0))
        >>> objective = privacy.objective(2, 1, None, fit_intercept=True)
        >>> rows, labels = objective.rows([[15.0], [30.0]], np.array([1.0, 4.0]))
        >>> rows.round(3).tolist(), labels.round(3).tolist()  # both are shrunk, one is clipped
        ([[0.398, 0.497], [0.504, 0.388]], [-0.124, 0.194])
        """
        X = self._numbers(X)
        rows, labels = np.empty((len(X), self.penalised.size)), np.empty(len(X))
        self.record_map().fill(X, y, rows, labels)
        return rows, labels

    def record_map(self) -> RecordMap:
        """How a record becomes a row and a label."""
        return RecordMap(
            self.bounds,
            *self._scaling(),
            self.y_bounds,
            self._middle,
            self.width,
            bool(self.fit_intercept),
            self.noise.radius,
        )

    def scaled_rows(self, X: Any, y: np.ndarray) -> np.ndarray:
        """Rows as long as they are, in units of bounds or scales; zeros for empty records."""
        X, n = self._numbers(X), len(self.bounds)
        origin, half = self._scaling()
        scale, flat = np.where(half > 0.0, half, 1.0), half == 0.0
        rows, empty = np.ones((len(X), self.penalised.size)), empty_records(y)
        step = max(1, _BLOCK // rows.shape[1])
        for start in range(0, len(X), step):
            block = slice(start, start + step)
            part = within(X[block], self.bounds)
            part -= origin
            part /= scale
            part[:, flat] = 0.0
            rows[block, :n] = part
        rows[empty] = 0.0
        return rows

    @property
    def origin(self) -> np.ndarray:
        """What is subtracted from each column."""
        return self._scaling()[0]

    def held(self, X: Any, y: np.ndarray) -> RowBlocks:
        """Records in memory as a table of one part."""
        return RowBlocks.of_arrays(self._numbers(X), y)

    def _numbers(self, X: Any) -> np.ndarray:
        """The covariates as an array of these columns; NaN and ±inf are allowed."""
        return real_array("X", X, shape=(None, len(self.bounds)), dtype=None, finite=False)

    def _scaling(self) -> tuple[np.ndarray, np.ndarray]:
        """Origin and scale of each column."""
        if self.scaling is not None:
            return self.scaling
        origin, half = half_ranges(self.bounds, self.fit_intercept)
        return (origins(self.bounds) if self.fit_intercept else origin), half
