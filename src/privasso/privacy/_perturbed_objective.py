"""Objective perturbation as it is computed: calibrated noise, a certified solve, output noise.

The mechanism that the accounting is about returns the exact minimiser x̂ of

    Σ_μ w_μ ℓ(y_μ, g_μᵀx) + λ Σ_i ω_i|x_i| + (Λ/2)‖x‖² + ηᵀx,   η ~ N(0, σ²I),

with real numbers, where ℓ is the Huber loss with w_μ = 1 and ‖g_μ‖ ≤ R, or the logistic loss with
w_μ‖g_μ‖ ≤ R and w_μ‖g_μ‖² ≤ RK. A computer has neither. So the rows and labels are taken to be the
floating-point numbers that they are stored as, which is a map of single records. Everything that
remains is closed by a bound on the distance between the computed and the exact minimiser. The
solver proves one; to it are added what the rounding of η and of x to a grid can do. Then Gaussian
noise of a size well above that distance is added to x, in integers. What is published then differs
from the exact mechanism followed by the same noise by a shift of a tiny part of a deviation, which
costs a tiny part of ε; see `InexactLoss`.

Where double precision does not prove a distance that is small enough, longer numbers do, see
`minimise_long`. So no fit fails for what the data hold; some take longer.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from fractions import Fraction

import numpy as np

from privasso._files import fits_memory
from privasso._validation import positive_float
from privasso.accounting import (
    Loss,
    Neighbours,
    Slope,
    check_coverable,
    sensitivity_beside,
    sensitivity_beside_choices,
    shift_epsilon,
)
from privasso.problem import ClippedProblem, Huber, Logistic
from privasso.queries import BitSource, rounded_gaussian
from privasso.solvers import (
    FixedPoint,
    LongProblem,
    minimise_long,
    rows_in_memory,
    solve_clipped_problem,
)

#: Part of ε that is kept for the distance between the computed and the exact mechanism.
_EPSILON_SHARE = 1e-4
#: Output noise, relative to a lower bound of the noise that η gives a coefficient; beyond so many
#: rows it grows with their square root, because rounding errors add up, to this many times as much.
_OUTPUT_NOISE, _MANY_ROWS, _MOST_TIMES = 0.02, 20_000, 5.0
#: The least ridge relative to the squared number of rows.
_LEAST_RIDGE = 5e-11
#: What a row adds to the curvature of a coefficient under the logistic loss, at default weights.
_BEND = 0.1
#: Coefficients within so many deviations of the output noise of zero are set to zero.
THRESHOLD = 5.0
#: η is drawn on a grid of 2^−52 of its deviation, or of 2^−116 where that is too coarse.
ETA_BITS, _FINE_BITS = 52, 116
#: x is rounded to a grid of about 2^−40 of the deviation of the output noise, or to a finer one
#: where that is too coarse.
GRID_BITS = 40
#: The distance at which a solver stops, relative to what the output noise covers.
ENOUGH = 0.25
#: Matrices of N × N that a solver holds at a time.
_MATRICES = 4
#: Guards products of a few numbers against their own rounding.
ROUNDING = 1.0 + 1e-12
UNIT = 2.0**-53


UNCERTIFIED = (
    "the minimiser could not be certified to the accuracy that the guarantee needs, so nothing was "
    "published; this is a fault of privasso, so please report the settings of the fit"
)


class UncertifiedError(RuntimeError):
    """The minimiser was not certified closely enough, which no data should do; nothing came out.

    Examples
    --------
    >>> raise UncertifiedError(UNCERTIFIED)
    Traceback (most recent call last):
    privasso.privacy._perturbed_objective.UncertifiedError: the minimiser could not be certified ...
    """


@dataclass(frozen=True)
class ObjectiveNoise:
    """Noise, ridge and accounting numbers of one perturbed fit; all of them are public.

    Attributes
    ----------
    kappa : float
        Largest residual that is not clipped.
    radius : float
        R: no row, times its weight, is longer.
    ridge : float
        Λ = R²/t, or RK/(4t) with the logistic loss.
    sigma : float
        Deviation of η, so that c = Δψ·R/σ, where Δψ is κ for a record and 2κ for a label.
    c, t : float
        As in `objective_delta`.
    sigma_out : float
        Deviation of the noise that is added to the coefficients.
    shift : float
        Bound on the distance ‖x − x̂‖ between computed and exact minimiser, in units of sigma_out.
    loss : {"huber", "logistic"}
        ℓ. κ = 1 for the logistic one.
    mu : float
        Sensitivity of all Gaussian releases of the same data that the budget covers too.

    Examples
    --------
    >>> import numpy as np, privasso as pv
    >>> from privasso.fit import FitOptions, plan_for
    >>> privacy = pv.RecordDP(1.0, 1e-6, bounds=[(0, 1)] * 2, y_bounds=(0, 1))
    >>> plan = plan_for(np.zeros((500, 2)), FitOptions(privacy))
    >>> round(plan.objective.noise.t, 3), plan.objective.noise.loss
    (0.326, 'huber')
    """

    kappa: float
    radius: float
    ridge: float
    sigma: float
    c: float
    t: float
    sigma_out: float
    shift: float
    loss: Slope = "huber"
    mu: float = 0.0


def check_budget(epsilon: float, delta: float) -> None:
    """Refuse a budget that no computed minimiser can keep, see `check_coverable`."""
    check_coverable(epsilon, delta, _EPSILON_SHARE * min(epsilon, 1.0))


def calibrate_objective(
    epsilon: float,
    delta: float,
    neighbours: Neighbours,
    *,
    kappa: float,
    radius: float,
    t: float,
    n_rows: int,
    mu: float = 0.0,
    beside: tuple[Loss, ...] = (),
    other_shift: float = 0.0,
) -> ObjectiveNoise:
    """Return the noise and the ridge with which a fit is (ε, δ)-differentially private.

    Parameters
    ----------
    epsilon, delta : float
        The budget.
    neighbours : {"records", "labels"}
        One record emptied, or one label replaced.
    kappa : float
        κ, in units of the labels.
    radius : float
        R.
    t : float
        R²/Λ: a larger one is a smaller ridge and more noise. For very many rows a smaller one is
        used, so that the ridge is at least 5·10⁻¹¹ M².
    n_rows : int
        Number of rows, which is public.
    mu : float
        Sensitivity of Gaussian releases of the same data that the budget covers too.
    beside : tuple of Loss
        Other releases of the same data that the budget covers too, choices of columns above all.
    other_shift : float
        Shifts of these, as in `ObjectiveNoise`, added up.

    Examples
    --------
    >>> noise = calibrate_objective(1.0, 1e-6, "records", kappa=0.1, radius=2.0, t=0.3, n_rows=500)
    >>> round(noise.ridge, 6), round(noise.c * noise.sigma, 6)
    (13.333333, 0.2)
    """
    kappa, radius = positive_float("kappa", kappa), positive_float("radius", radius)
    return _calibrated(
        epsilon,
        delta,
        neighbours,
        "huber",
        kappa,
        radius,
        radius**2,
        t,
        n_rows,
        1.0,
        mu,
        beside,
        other_shift,
    )


def calibrate_logistic(
    epsilon: float,
    delta: float,
    *,
    radius: float,
    reach: float,
    t: float,
    n_rows: int,
    mu: float = 0.0,
) -> ObjectiveNoise:
    """Return the same for whole records and the logistic loss.

    Its slope is at most 1 and has one sign for each record, and its curvature is at most ¼. So a
    record pulls with at most w‖g‖ ≤ R, and that pull changes by at most w‖g‖²/4 ≤ RK/4 per unit
    of x.

    Parameters
    ----------
    epsilon, delta, n_rows, mu
        As in `calibrate_objective`.
    radius : float
        R, a bound of w‖g‖.
    reach : float
        K: RK is a bound of w‖g‖².
    t : float
        RK/(4Λ); for very many rows a smaller one is used.

    Examples
    --------
    >>> noise = calibrate_logistic(1.0, 1e-6, radius=1.0, reach=3.0, t=0.3, n_rows=500)
    >>> round(noise.ridge, 6), round(noise.c * noise.sigma, 6)
    (2.5, 1.0)
    """
    radius, reach = positive_float("radius", radius), positive_float("reach", reach)
    bend = 0.25 * radius * reach
    return _calibrated(
        epsilon, delta, "records", "logistic", 1.0, radius, bend, t, n_rows, _BEND, mu
    )


def _calibrated(
    epsilon: float,
    delta: float,
    neighbours: Neighbours,
    loss: Slope,
    kappa: float,
    radius: float,
    bend: float,
    t: float,
    n_rows: int,
    per_row: float,
    mu: float,
    beside: tuple[Loss, ...] = (),
    other_shift: float = 0.0,
) -> ObjectiveNoise:
    """Noise for rows whose pull changes by at most `bend` along themselves, Λ = bend/t.

    A row adds about `per_row` to the curvature of a coefficient.
    """
    t = positive_float("t", t)
    # Rounding errors of many rows could not be covered with a smaller ridge.
    least = _LEAST_RIDGE * float(n_rows) ** 2
    t = min(t, bend / least)
    ridge = max(bend / t, least) * ROUNDING
    # δ(ε) ≤ e^ε₀ δ_ideal(ε − 2ε₀), up to 1e-86 (1 + e^ε), with ε₀ = 20 times the shift.
    check_budget(epsilon, delta)
    shift = _EPSILON_SHARE * min(epsilon, 1.0) / 40.0
    lost = 2.0 * shift_epsilon(shift + other_shift) * ROUNDING
    budget = epsilon - lost, delta * (1.0 - 2.0 * lost)
    if beside:
        c = sensitivity_beside_choices(*budget, t, beside, mu, neighbours)
    else:
        c = sensitivity_beside(*budget, t, mu, neighbours, loss=loss)
    sigma = (2.0 if neighbours == "labels" else 1.0) * kappa * radius / c * ROUNDING
    # No column with entries in [−1, 1] is longer than √M, so that η moves a coefficient of
    # uncorrelated columns by this deviation at least.
    sigma_out = _output_share(n_rows) * sigma / (ridge + per_row * n_rows)
    return ObjectiveNoise(kappa, radius, ridge, sigma, c, t, sigma_out, shift, loss, mu)


def _output_share(n_rows: int) -> float:
    """Output noise relative to that of η.

    >>> [round(_output_share(m), 3) for m in (100, 20_000, 100_000, 10**7)]
    [0.02, 0.02, 0.045, 0.1]
    """
    return _OUTPUT_NOISE * min(max(1.0, math.sqrt(n_rows / _MANY_ROWS)), _MOST_TIMES)


def check_room(n_columns: int) -> None:
    """Refuse so many columns that the linear systems of a fit exceed the memory of the machine.

    Examples
    --------
    >>> check_room(10_000_000)
    Traceback (most recent call last):
    ...
    ValueError: a fit of 10000000 columns takes more memory than this machine has; choose some ...
    """
    if not fits_memory(_MATRICES * 8 * n_columns**2):
        raise ValueError(
            f"a fit of {n_columns} columns takes more memory than this machine has; choose some of "
            "them first, by hand or with screen (--screen)"
        )


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
    """Run the mechanism once: the only function here that reads labels and draws noise.

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

    Examples
    --------
    >>> from privasso.queries import bit_source
    >>> G = np.ones((4000, 1))
    >>> noise = calibrate_objective(1.0, 1e-6, "records", kappa=0.1, radius=1.0, t=0.3, n_rows=4000)
    >>> rng = np.random.default_rng(0)
    >>> x = perturbed_minimiser(
    ...     G, np.full(4000, 0.25), 0.0, noise, bit_source(rng), penalty_weights=np.ones(1)
    ... )
    >>> bool(abs(x[0] - 0.25) < 0.01)
    True
    """
    n = G.shape[1]
    eta = drawn_eta(noise, n, bits)
    assert weights is None or noise.loss == "logistic"
    problem = ClippedProblem(
        G,
        y,
        lam,
        loss=Logistic() if noise.loss == "logistic" else Huber(noise.kappa),
        ridge=noise.ridge,
        eta=eta.values,
        weights=weights,
        penalty_weights=penalty_weights,
    )
    solution = solve_clipped_problem(problem, throw=False)
    off = solution.distance / math.sqrt(noise.ridge) + eta.rounded
    exponent = output_exponent(noise, n)
    if covers(noise, off, n):
        whole = [int(k) for k in np.rint(np.ldexp(solution.x, -exponent)).tolist()]
    else:
        squares = np.einsum("ij,ij->i", G, G)
        heavy = squares if weights is None else weights * squares
        long = LongProblem(
            rows_in_memory(G, problem.y, problem.loss, weights),
            float(np.sum(np.sqrt(squares))) * ROUNDING,
            problem.loss.curvature_bound * float(np.sum(heavy)) * ROUNDING + noise.ridge,
            noise.ridge,
            eta.exact,
            problem.thresholds,
        )
        start = FixedPoint.near(solution.x, 64)
        x, distance, _ = minimise_long(long, start, ENOUGH * noise.shift * noise.sigma_out)
        whole, off = x.in_steps_of(exponent), distance + eta.step
    x = noisy_output(noise, whole, off, bits)
    return without_small(x, noise.sigma_out, penalty_weights)


@dataclass(frozen=True, eq=False)
class Eta:
    """A draw of η, and how far its rounding moves the minimiser.

    Attributes
    ----------
    noise : ObjectiveNoise
    z : list of int
        η/σ in multiples of 2^−bits.
    bits : int

    Examples
    --------
    >>> noise = ObjectiveNoise(0.1, 1.0, 2.0, 0.5, 0.2, 0.5, 1e-6, 1e-7)
    >>> eta = Eta(noise, [3 << 50, -(1 << 52)], 52)
    >>> eta.values.tolist(), eta.exact, eta.step < eta.rounded
    ([0.375, -0.5], [Fraction(3, 8), Fraction(-1, 2)], True)
    """

    noise: ObjectiveNoise
    z: list[int]
    bits: int

    @property
    def normal(self) -> np.ndarray:
        """η/σ in double precision."""
        return np.array([math.ldexp(float(k), -self.bits) for k in self.z])

    @property
    def values(self) -> np.ndarray:
        """η in double precision."""
        return self.noise.sigma * self.normal

    @property
    def exact(self) -> list[Fraction]:
        """η as it was drawn."""
        return [Fraction(self.noise.sigma) * Fraction(k, 1 << self.bits) for k in self.z]

    @property
    def rounded(self) -> float:
        """How far `values` move the minimiser away from that of a normal number.

        They are half a step of the grid away from one, and rounded twice. An error e of the linear
        term moves the minimiser by ‖e‖/Λ at most, because the objective is Λ-strongly convex.
        """
        off = 2.0**-ETA_BITS + 4.0 * UNIT * np.abs(self.normal)
        return self.noise.sigma * float(np.linalg.norm(off)) / self.noise.ridge

    @property
    def step(self) -> float:
        """The same for `exact`, which is not rounded."""
        half = math.ldexp(1.0, -self.bits - 1) * ROUNDING
        return self.noise.sigma * half * math.sqrt(len(self.z)) / self.noise.ridge


def drawn_eta(noise: ObjectiveNoise, n: int, bits: BitSource) -> Eta:
    """Draw η; public numbers say on which grid."""
    step = math.ldexp(4.0, -ETA_BITS) * math.sqrt(n) * noise.sigma / noise.ridge
    if step <= 0.25 * noise.shift * noise.sigma_out:
        return Eta(noise, rounded_gaussian(2.0**ETA_BITS, n, bits).tolist(), ETA_BITS)
    finer = rounded_gaussian(2.0**ETA_BITS, n, bits, finer=True)
    return Eta(noise, finer.tolist(), _FINE_BITS)


def output_exponent(noise: ObjectiveNoise, n: int) -> int:
    """The e of the grid 2ᵉ to which n coefficients are rounded before noise is added."""
    fine = math.ceil(math.log2(4.0 * math.sqrt(n) / noise.shift))
    return math.floor(math.log2(noise.sigma_out)) - max(GRID_BITS, fine)


def covers(noise: ObjectiveNoise, off: float, n: int) -> bool:
    """Whether the output noise covers n coefficients on their grid, before it within `off` of x̂."""
    step = 0.5 * math.ldexp(1.0, output_exponent(noise, n)) * math.sqrt(n)
    return (off + step) * ROUNDING <= noise.shift * noise.sigma_out


def noisy_output(
    noise: ObjectiveNoise, whole: list[int], off: float, bits: BitSource
) -> np.ndarray:
    """Add the output noise to x, given in steps of its grid, before it certainly within `off`."""
    n = len(whole)
    exponent = output_exponent(noise, n)
    if not covers(noise, off, n):
        raise UncertifiedError(UNCERTIFIED)
    steps = rounded_gaussian(math.ldexp(noise.sigma_out, -exponent), n, bits)
    return np.array(
        [
            math.ldexp(float(k + step), exponent)
            for k, step in zip(whole, steps.tolist(), strict=True)
        ]
    )


def without_small(
    x: np.ndarray, deviation: float | np.ndarray, penalty_weights: np.ndarray
) -> np.ndarray:
    """Zero where a coefficient with a penalty is within `THRESHOLD` deviations of zero."""
    small = (np.abs(x) <= THRESHOLD * deviation) & (penalty_weights > 0.0)
    return np.where(small, 0.0, x)
