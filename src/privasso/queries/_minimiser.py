"""The minimiser of a perturbed objective, computed and certified.

The mechanism that the accounting is about returns the exact minimiser x̂ of

    Σ_μ w_μ ℓ(y_μ, g_μᵀx) + λ Σ_i ω_i|x_i| + (Λ/2) xᵀLLᵀx + ηᵀx,   η = σLz,

z standard normal, where ℓ is the Huber loss with w_μ = 1 and ‖L⁻¹g_μ‖ ≤ R, or the logistic loss
with w_μ‖g_μ‖ ≤ R and w_μ‖g_μ‖² ≤ RK; L is the identity where no shape is given. Rows and labels are
taken to be the floating-point numbers that a view makes of each record by itself.

Where there are at least as many rows as columns, everything that is computed from rows is a sum of
integers, and the minimiser is the same to the last bit for any cut and order of them, in memory,
in files or on a cluster. Otherwise, and for other losses and shapes, the rows are gathered in
memory. Where double precision does not prove a distance from x̂ that is small enough, longer
numbers do, see `minimise_long`. So no fit fails for what the data hold; some take longer.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from typing import Protocol

import numpy as np

from privasso.accounting import InexactLoss, ObjectiveLoss
from privasso.blocks import RowBlocks, View
from privasso.problem import Clipped, ClippedProblem
from privasso.queries._objective_noise import (
    ENOUGH,
    Eta,
    ObjectiveNoise,
    covers,
    drawn_eta,
    drawn_etas,
    noisy_output,
    noisy_outputs,
    output_exponent,
    without_small,
)
from privasso.queries._query import Neighbours, Query
from privasso.queries._rounded_gaussian import BitSource
from privasso.queries._shaped_minimiser import shaped_minimiser, shrunk_rows
from privasso.solvers import (
    MOST_TOGETHER,
    ExactPass,
    ExactProblem,
    FixedPoint,
    LongProblem,
    PassSetting,
    PassState,
    minimise_exactly,
    minimise_further,
    minimise_long,
    minimise_together,
    solve_clipped_problem,
)

#: Most columns, the intercept included, and most rows for which the sums are exact.
_MOST_COLUMNS, _MOST_ROWS = 1 << 12, 1 << 30
#: Ranges of κ and of labels for which the integers are long enough.
_KAPPA, _LARGEST_LABEL = (2.0**-20, 2.0**10), 2.0**20


class RowView(View, Protocol):
    """How records become rows of bounded length and their labels."""

    @property
    def grid(self) -> int | None:
        """Entries of rows are multiples of 2⁻ˢ; None where they are on no grid."""
        ...

    @property
    def largest_label(self) -> float:
        """Largest absolute value of a label."""
        ...

    def weights(self, rows: np.ndarray) -> np.ndarray | None:
        """The w of rows, each by itself; None where all are 1."""
        ...


@dataclass(frozen=True, eq=False)
class PerturbedMinimiser(Query[np.ndarray]):
    """The minimiser of a perturbed objective, with a little noise that covers all rounding.

    Attributes
    ----------
    view : RowView
        What a record becomes, no longer than the radius of the noise allows.
    noise : ObjectiveNoise
        κ, Λ, σ and what they cost.
    lam : float
        λ.
    penalised : ndarray of shape (N,)
        ω; zero for a column without penalty.
    columns : ndarray of int, optional
        The view needs these columns of the records only.
    factor : ndarray of shape (N, N), optional
        L, lower triangular. Rows with ‖L⁻¹g‖ > R are shrunk to that, together with their labels.
    """

    view: RowView
    noise: ObjectiveNoise
    lam: float
    penalised: np.ndarray = field(repr=False)
    columns: np.ndarray | None = field(default=None, repr=False)
    factor: np.ndarray | None = field(default=None, repr=False)

    @property
    def neighbours(self) -> Neighbours:
        """Those that the noise was calibrated for."""
        return self.noise.neighbours

    @property
    def sentence(self) -> str:
        """What is released."""
        loss = self.noise.loss
        more = "" if loss.about_mean else f", whose predictions are {loss.about}"
        return f"the minimiser of the perturbed objective{more}"

    @property
    def loss(self) -> InexactLoss:
        """That of objective perturbation, and of the distance which the output noise covers."""
        noise = self.noise
        ideal = ObjectiveLoss(noise.c, noise.t, self.neighbours.of_objective, noise.loss.slope)
        return InexactLoss(ideal, shift=noise.shift)

    @property
    def possible(self) -> np.ndarray:
        """Coefficients as large as noise and ridge make them without any rows."""
        signs = np.where(np.arange(self.view.n_columns) % 2, -1.0, 1.0)
        return signs * (self.noise.sigma / self.noise.ridge)

    def sums_are_exact(self, n_rows: int) -> bool:
        """Whether it is computed by exact sums, which is decided by public numbers alone."""
        width = self.view.n_columns
        return (
            self.view.grid is not None
            and self.factor is None
            and width <= _MOST_COLUMNS
            and width <= n_rows <= _MOST_ROWS
            and _KAPPA[0] <= self.noise.kappa <= _KAPPA[1]
            and self.view.largest_label <= _LARGEST_LABEL
        )

    def run(self, rows: RowBlocks, bits: BitSource) -> np.ndarray:
        """Draw η, minimise, certify, and add the output noise."""
        if self.sums_are_exact(rows.shape[0]):
            loss = self.noise.loss
            assert self.view.grid is not None
            assert isinstance(loss, Clipped)
            setting = PassSetting.of(self.view.n_columns, self.view.grid, loss)
            return exact_minimiser(
                *rows.select(self.columns).viewed(self.view),
                setting,
                self.lam,
                self.noise,
                bits,
                self.penalised,
            )
        return self._in_memory(rows, 1, bits)[0]

    def draws(self, rows: RowBlocks, count: int, bits: BitSource) -> Sequence[np.ndarray]:
        """The rows are gathered once, and problems with few columns are solved together.

        All noise is that of a fit, and what it covers is proved for each minimiser; those that are
        not proved to be close enough are solved as in a fit.
        """
        return self._in_memory(rows, count, bits, together=self.view.n_columns <= MOST_TOGETHER)

    def _in_memory(
        self, rows: RowBlocks, count: int, bits: BitSource, *, together: bool = False
    ) -> Sequence[np.ndarray]:
        G, labels = self._gathered(rows)
        penalty_weights, fixed = self.penalised, (G, labels, self.lam, self.noise, bits)
        if self.factor is not None:
            L = self.factor
            shaped = (
                shaped_minimiser(*fixed, L=L, penalty_weights=penalty_weights) for _ in range(count)
            )
            return list(shaped)
        weights = self.view.weights(G)
        if together:
            return list(
                perturbed_minimisers(
                    *fixed, count, penalty_weights=penalty_weights, weights=weights
                )
            )
        return [
            perturbed_minimiser(*fixed, penalty_weights=penalty_weights, weights=weights)
            for _ in range(count)
        ]

    def _gathered(self, rows: RowBlocks) -> tuple[np.ndarray, np.ndarray]:
        """All rows and labels in memory, no longer than allowed."""
        G, labels = rows.select(self.columns).gathered(self.view)
        if self.factor is None:
            return G, labels
        return shrunk_rows(G, labels, self.factor, self.noise.radius)

    def log_likelihoods(self, rows: RowBlocks, answers: Sequence[np.ndarray]) -> np.ndarray:
        """The logarithms of densities; the small noise on the output is left out of them."""
        from privasso.theory import clipped_log_densities

        G, labels = self._gathered(rows)
        weights = self.view.weights(G)
        weights = np.ones(len(labels)) if weights is None else weights
        # Empty rows change nothing, but there must be one.
        full = np.any(G != 0.0, axis=1)
        full[0] = True
        return clipped_log_densities(
            G[full],
            labels[full],
            self.lam,
            self.noise.sigma,
            np.array(answers).T,
            loss=self.noise.loss,
            ridge=self.noise.ridge,
            penalty_weights=self.penalised,
            weights=weights[full],
            factor=self.factor,
        )


def exact_minimiser(
    rows: RowBlocks,
    view: View | None,
    setting: PassSetting,
    lam: float,
    noise: ObjectiveNoise,
    bits: BitSource,
    penalty_weights: np.ndarray,
) -> np.ndarray:
    """Run the mechanism once with exact sums; the rows are read once before anything is drawn.

    Parameters
    ----------
    rows : RowBlocks
        Where the records are.
    view : View or None
        What they become in each pass; None where they are rows already.
    setting : PassSetting
        The grids.
    lam, noise, bits, penalty_weights
        As in `perturbed_minimiser`.
    """
    n, task = setting.n_columns, ExactPass(setting, view)
    first = rows.sum(task, PassState(FixedPoint((0,) * n, 1), fresh=True))
    eta, thresholds = drawn_eta(noise, n, bits), lam * penalty_weights

    def again(state: PassState) -> dict[str, np.ndarray]:
        return rows.sum(task, state)

    problem = ExactProblem(
        setting, rows.shape[0], noise.radius, noise.ridge, eta.values, thresholds
    )  # fmt: skip
    wanted = ENOUGH * noise.shift * noise.sigma_out
    found = minimise_exactly(problem, first, again, wanted)
    off = found.distance + eta.rounded
    if not covers(noise, off, n):
        problem = replace(problem, eta=np.array(eta.exact, dtype=object))
        found = minimise_further(problem, again, found.x, wanted)
        off = found.distance + eta.step
    x = noisy_output(noise, found.x.in_steps_of(output_exponent(noise, n)), off, bits)
    return without_small(x, noise.sigma_out, penalty_weights)


def perturbed_minimiser(
    G: np.ndarray,
    y: np.ndarray,
    lam: float,
    noise: ObjectiveNoise,
    bits: BitSource,
    *,
    penalty_weights: np.ndarray,
    weights: np.ndarray | None = None,
) -> np.ndarray:
    """Run the mechanism once on rows in memory.

    Parameters
    ----------
    G : ndarray of shape (M, N)
        Rows, none longer than ``noise.radius`` after its weight, which must be certain; see
        `calibrate_logistic` for the logistic loss.
    y : ndarray of shape (M,)
        Labels, scaled with their rows, or 0 and 1 for the logistic loss.
    lam : float
        λ, fixed beforehand.
    noise : ObjectiveNoise
        See `calibrate_objective`.
    bits : BitSource
        Source of all noise.
    penalty_weights : ndarray of shape (N,)
        ω; zero for a column without penalty.
    weights : ndarray of shape (M,), optional
        w, only for the logistic loss.
    """
    eta = drawn_eta(noise, G.shape[1], bits)
    whole, off = _minimised(G, y, lam, noise, eta, penalty_weights, weights)
    x = noisy_output(noise, whole, off, bits)
    return without_small(x, noise.sigma_out, penalty_weights)


def perturbed_minimisers(
    G: np.ndarray,
    y: np.ndarray,
    lam: float,
    noise: ObjectiveNoise,
    bits: BitSource,
    count: int,
    *,
    penalty_weights: np.ndarray,
    weights: np.ndarray | None = None,
) -> np.ndarray:
    """Run the mechanism several times, with one Newton's method for all; a row for each run.

    Parameters
    ----------
    G, y, lam, noise, bits, penalty_weights, weights
        As in `perturbed_minimiser`.
    count : int
        Number of runs.
    """
    n, thresholds = G.shape[1], lam * penalty_weights
    etas = drawn_etas(noise, n, count, bits)
    values = np.array([eta.values for eta in etas])
    x, distances = minimise_together(G, y, noise.loss, weights, noise.ridge, thresholds, values)
    found, furthest = [], 0.0
    for eta, one, distance in zip(etas, x, distances.tolist(), strict=True):
        off = distance + eta.rounded
        if covers(noise, off, n):
            whole = _in_steps(one, output_exponent(noise, n))
        else:
            whole, off = _minimised(G, y, lam, noise, eta, penalty_weights, weights)
        found.append(whole)
        furthest = max(furthest, off)
    return without_small(
        noisy_outputs(noise, found, furthest, bits), noise.sigma_out, penalty_weights
    )


def _minimised(
    G: np.ndarray,
    y: np.ndarray,
    lam: float,
    noise: ObjectiveNoise,
    eta: Eta,
    penalty_weights: np.ndarray,
    weights: np.ndarray | None,
) -> tuple[list[int], float]:
    """The minimiser in steps of the grid, and a bound of its distance before it was rounded."""
    problem = ClippedProblem(
        G,
        y,
        lam,
        loss=noise.loss,
        ridge=noise.ridge,
        eta=eta.values,
        weights=weights,
        penalty_weights=penalty_weights,
    )
    solution = solve_clipped_problem(problem, throw=False)
    off = solution.distance / math.sqrt(noise.ridge) + eta.rounded
    exponent = output_exponent(noise, G.shape[1])
    if covers(noise, off, G.shape[1]):
        return _in_steps(solution.x, exponent), off
    long = LongProblem.of_rows(
        G, problem.y, problem.loss, weights, noise.ridge, eta.exact, problem.thresholds
    )
    start = FixedPoint.near(solution.x, 64)
    x, distance, _ = minimise_long(long, start, ENOUGH * noise.shift * noise.sigma_out)
    return x.in_steps_of(exponent), distance + eta.step


def _in_steps(x: np.ndarray, exponent: int) -> list[int]:
    """Coefficients rounded to multiples of 2ᵉ."""
    return [int(k) for k in np.rint(np.ldexp(x, -exponent)).tolist()]
