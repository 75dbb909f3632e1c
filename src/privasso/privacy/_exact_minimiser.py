"""Objective perturbation of whole records with exact sums, over blocks of rows.

It is the mechanism of `perturbed_minimiser`, and what it returns is the same to the last bit for
any cut and order of the rows, in memory, in files or on a cluster. Only sums over all rows leave
the places where the rows are. The noise is drawn here, once.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING

import numpy as np

from privasso.blocks import RowBlocks, Sums, Task
from privasso.privacy._label_level import Level
from privasso.privacy._perturbed_objective import (
    ENOUGH,
    ObjectiveNoise,
    covers,
    drawn_eta,
    noisy_output,
    output_exponent,
    without_small,
)
from privasso.privacy._record_map import RecordMap
from privasso.privacy._residual_pass import ResidualPass, whole
from privasso.queries import BitSource
from privasso.solvers import (
    ExactPass,
    ExactProblem,
    FixedPoint,
    PassSetting,
    PassState,
    Prepare,
    minimise_exactly,
    minimise_further,
)

if TYPE_CHECKING:
    from privasso.privacy._record_rows import PerturbedObjective

#: Most columns, the intercept included, and most rows for which the sums are exact.
_MOST_COLUMNS, _MOST_ROWS = 1 << 12, 1 << 30
#: Ranges of κ and of labels for which the integers are long enough.
_KAPPA, _LARGEST_LABEL = (2.0**-20, 2.0**10), 2.0**20


def sums_are_exact(objective: PerturbedObjective, n_rows: int) -> bool:
    """Whether a fit uses exact sums, which is decided by public numbers alone.

    Examples
    --------
    >>> import privasso as pv
    >>> privacy = pv.RecordDP(1.0, 1e-6, bounds=[(0, 1)] * 3, y_bounds=(0, 1))
    >>> objective = privacy.objective(100, 3, None, fit_intercept=True)
    >>> sums_are_exact(objective, 100), sums_are_exact(objective, 2)
    (True, False)
    """
    noise, width = objective.noise, len(objective.bounds) + objective.fit_intercept
    return (
        noise.loss == "huber"
        and width <= _MOST_COLUMNS
        and width <= n_rows <= _MOST_ROWS
        and _KAPPA[0] <= noise.kappa <= _KAPPA[1]
        and objective.largest_label <= _LARGEST_LABEL
    )


@dataclass(frozen=True, eq=False)
class RecordPasses:
    """Rows that were read once, and can be read again.

    Attributes
    ----------
    blocks : RowBlocks
        Where the rows are.
    task : ExactPass
        What is summed over them.
    first : Sums
        What the first pass found, at x = 0. It holds private numbers.

    Examples
    --------
    >>> rows, labels = np.array([[1.0], [0.5]]), np.array([0.25, 0.5])
    >>> blocks, setting = RowBlocks.of_arrays(rows, labels), PassSetting.of(1, 19, 1.0)
    >>> passes = RecordPasses.begun(blocks, setting, None)
    >>> passes.again(PassState(FixedPoint((0,), 1)))["pull"].shape
    (3, 1, 2)
    >>> rows[0] = 0.75
    >>> passes.again(PassState(FixedPoint((0,), 1)))
    Traceback (most recent call last):
    privasso.blocks._part.DataChangedError: the data changed between two passes over them, so ...
    """

    blocks: RowBlocks = field(repr=False)
    task: ExactPass
    first: Sums = field(repr=False)

    @staticmethod
    def opened(
        blocks: RowBlocks, record_map: RecordMap | None, objective: PerturbedObjective
    ) -> RecordPasses:
        """Read the rows once; a map is needed unless they are rows of `PerturbedObjective.rows`."""
        grid = (record_map or objective.record_map()).grid
        width = len(objective.bounds) + objective.fit_intercept
        return RecordPasses.begun(
            blocks, PassSetting.of(width, grid, objective.noise.kappa), record_map
        )

    @staticmethod
    def begun(blocks: RowBlocks, setting: PassSetting, prepare: Prepare | None) -> RecordPasses:
        """Read the rows once, which `prepare` makes of records."""
        task = ExactPass(setting, prepare)
        state = PassState(FixedPoint((0,) * setting.n_columns, 1), fresh=True)
        return RecordPasses(blocks, task, blocks.sum(task, state))

    def again(self, state: PassState) -> Sums:
        """Read the rows again; if they are not the same, nothing may be released."""
        return self.blocks.sum(self.task, state)

    def residual_sum(self, level: Level, u: np.ndarray) -> int:
        """Read the rows once more, for the sum of the residuals of coefficients u."""
        return self.level_sum(ResidualPass(level, self.task.prepare), u)

    def level_sum(self, task: Task, state: np.ndarray | float) -> int:
        """Read the rows once more, for a sum that corrects an intercept."""
        return whole(self.blocks.sum(task, state)["total"])


def exact_minimiser(
    passes: RecordPasses,
    lam: float,
    noise: ObjectiveNoise,
    bits: BitSource,
    penalty_weights: np.ndarray,
) -> np.ndarray:
    """Run the mechanism once: draw η, minimise, certify, add output noise.

    Parameters
    ----------
    passes : RecordPasses
        The rows.
    lam, noise, bits, penalty_weights
        As in `perturbed_minimiser`.
    """
    setting, n_rows = passes.task.setting, passes.blocks.shape[0]
    n = setting.n_columns
    eta = drawn_eta(noise, n, bits)
    thresholds = lam * penalty_weights
    problem = ExactProblem(setting, n_rows, noise.radius, noise.ridge, eta.values, thresholds)
    wanted = ENOUGH * noise.shift * noise.sigma_out
    found = minimise_exactly(problem, passes.first, passes.again, wanted)
    off = found.distance + eta.rounded
    if not covers(noise, off, n):
        problem = replace(problem, eta=np.array(eta.exact, dtype=object))
        found = minimise_further(problem, passes.again, found.x, wanted)
        off = found.distance + eta.step
    x = noisy_output(noise, found.x.in_steps_of(output_exponent(noise, n)), off, bits)
    return without_small(x, noise.sigma_out, penalty_weights)
