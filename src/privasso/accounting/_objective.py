"""The privacy of objective perturbation with losses of bounded slope: δ at a given ε.

The mechanism releases x̂ = argmin Σ_μ ℓ(y_μ − f_μᵀx) + Ω(x) + (Λ/2) xᵀSx + ηᵀx with noise
η ~ N(0, σ²S), where Ω is any public convex penalty, ‖f_μ‖_{S⁻¹} ≤ R, and ψ = ℓ′ does not decrease,
|ψ| ≤ κ and ψ′ ≤ β. Two numbers decide about its privacy,

    c = Δψ·R/σ   and   t = β R²/Λ,

with Δψ the most that ψ can change between neighbouring data sets: κ for a record that is emptied,
2κ for a label that is replaced (κ = 1 for a label of logistic regression). The page on objective
perturbation in the documentation has the proofs.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from functools import partial
from typing import Literal, TypeAlias, get_args, overload

import numpy as np
from numpy.typing import NDArray
from scipy.special import erf

from privasso._validation import nonnegative_float, real_array
from privasso.accounting._gaussian import (
    CELLS,
    Vector,
    log_far_side,
    log_ramp,
    log_shift,
    log_two_sided,
    turning_t,
)
from privasso.accounting._loss import LARGEST

#: What neighbouring data sets differ in.
Neighbours: TypeAlias = Literal["labels", "records", "replace"]
#: The loss function ℓ: a clipped residual, or the logistic loss.
Slope: TypeAlias = Literal["huber", "logistic"]

#: A smaller c is taken to be this.
SMALLEST_C = 1e-20
#: Added to log δ where sums of bounds are rounded.
_MARGIN = 1e-12
_TINY = float(np.nextafter(0.0, 1.0))
#: The largest t at which a minimum is searched for; beyond, the limit t = ∞ is as good.
_LARGEST_T = 1e3
#: Points of a search, and how often it is repeated around the best of them.
_POINTS = 11
_REFINEMENTS = 3
#: More ε than this are bounded with the help of a grid, with so many points in a length of c, and
#: at least and at most so many.
_FEW, _IN_C, _LEAST_GRID, _MOST_GRID = 8, 25.0, 200, 4000
#: A δ above this is a number with all its digits.
_LEAST = 1e-280
#: More than the rounding error of a place on the grid, in steps.
_EDGE = 1e-9

_Profile: TypeAlias = Callable[[Vector], Vector]


@overload
def objective_delta(
    epsilon: float, c: float, t: float, neighbours: Neighbours = "records", *, loss: Slope = "huber"
) -> float: ...


@overload
def objective_delta(
    epsilon: NDArray[np.float64] | Sequence[float],
    c: float,
    t: float,
    neighbours: Neighbours = "records",
    *,
    loss: Slope = "huber",
) -> NDArray[np.float64]: ...


def objective_delta(
    epsilon: float | NDArray[np.float64] | Sequence[float],
    c: float,
    t: float,
    neighbours: Neighbours = "records",
    *,
    loss: Slope = "huber",
) -> float | NDArray[np.float64]:
    """Return a δ for which objective perturbation is (ε, δ)-differentially private.

    It is an upper bound with certainty, rounding errors included. It does not increase with ε and
    does not decrease with c or t, up to a relative 1e-4.

    Parameters
    ----------
    epsilon : float or array_like
        ε ≥ 0.
    c : float
        Δψ·R/σ: κR/σ for ``"records"`` and ``"replace"``; for ``"labels"`` 2κR/σ, or R/σ with the
        logistic loss.
    t : float
        βR²/Λ, with β the largest curvature of the loss: 1 for the Huber loss, ¼ for the logistic.
    neighbours : {"records", "labels", "replace"}
        One record is emptied (replaced by a row of zeros) or the reverse; one label is replaced,
        where the covariates are public; one record is replaced by any other.
    loss : {"huber", "logistic"}
        A residual that is clipped, or the logistic loss, whose slope has one sign for each record.

    Examples
    --------
    >>> import privasso as pv
    >>> f"{pv.objective_delta(1.0, 0.25, 0.3, 'labels'):.3g}"
    '2.11e-05'
    >>> pv.objective_delta([0.5, 1.0, 2.0], 0.2, 0.3, "records").round(6).tolist()
    [0.002452, 1e-06, 0.0]
    """
    values = real_array("epsilon", epsilon)
    if np.min(values) < 0.0:
        raise ValueError("epsilon must be zero or positive")
    logs = log_objective_deltas(values.ravel(), c, t, neighbours, loss=loss)
    # exp may round below; the bound itself is raised by far more than that.
    deltas = np.where(np.isneginf(logs), 0.0, np.maximum(np.exp(logs), _TINY))
    return float(deltas[0]) if values.ndim == 0 else deltas.reshape(values.shape)


def log_objective_deltas(
    epsilons: Vector, c: float, t: float, neighbours: Neighbours, *, loss: Slope = "huber"
) -> Vector:
    """Return log δ, the larger of the two orders of the pair."""
    forward, backward = objective_orders(epsilons, c, t, neighbours, loss=loss)
    return np.maximum(forward, backward)


def objective_orders(
    epsilons: Vector,
    c: float,
    t: float,
    neighbours: Neighbours,
    *,
    loss: Slope = "huber",
    searched: bool = True,
    cells: int = CELLS,
) -> tuple[Vector, Vector]:
    """Return log δ for the two orders: under ``"records"`` with the record first, then without.

    For ``"labels"`` and ``"replace"`` both orders have the same bound. Without the search for a
    better t the bounds may be some percent larger where ε is near or below log(1+t). With fewer
    cells of the integral they are larger, too: with 32 by up to 0.2 %.
    """
    c, t = nonnegative_float("c", c), nonnegative_float("t", t)
    check_choices(neighbours, loss)
    if c == 0.0:
        nothing = np.full_like(epsilons, -np.inf)
        return nothing, nothing
    c = max(c, SMALLEST_C)
    if neighbours == "replace":
        both = _replaced(epsilons, c, t, loss)
        return both, both
    if neighbours == "labels":
        if loss == "logistic":
            both = log_shift(epsilons, c)
        else:
            both = _with_label(epsilons, c, t, searched, cells)
        return both, both
    with_record = _with_record(epsilons, c, t, loss, searched, cells)
    return with_record, _without_record(epsilons, c, loss)


def check_choices(neighbours: str, loss: str) -> None:
    """Refuse names of neighbours and losses that nothing was proved for."""
    if neighbours not in get_args(Neighbours):
        known = ", ".join(map(repr, get_args(Neighbours)))
        raise ValueError(f"neighbours must be one of {known}, not {neighbours!r}")
    if loss not in get_args(Slope):
        known = ", ".join(map(repr, get_args(Slope)))
        raise ValueError(f"loss must be one of {known}, not {loss!r}")


def _with_label(epsilons: Vector, c: float, t: float, searched: bool, cells: int) -> Vector:
    """One label against another: U, or the distance through the data without the record."""
    far = np.log(2.0) + np.log(erf(c / np.sqrt(8.0))) + _MARGIN
    area = partial(log_ramp, cells=cells)
    return np.fmin(_sharp(epsilons, c, t, area, searched), min(far, 0.0))


def _with_record(
    epsilons: Vector, c: float, t: float, loss: Slope, searched: bool, cells: int = CELLS
) -> Vector:
    """With the record against without: U, or the total variation distance of the other order."""
    area = partial(log_ramp if loss == "logistic" else _both_sides, cells=cells)
    distance = _without_record(np.zeros(1), c, loss)[0]
    return np.fmin(_sharp(epsilons, c, t, area, searched), distance)


def _without_record(epsilons: Vector, c: float, loss: Slope) -> Vector:
    return log_shift(epsilons, c) if loss == "logistic" else log_two_sided(epsilons, c)


def _both_sides(epsilons: Vector, c: float, cells: int) -> Vector:
    return np.logaddexp(log_ramp(epsilons, c, cells), log_far_side(epsilons, c))


def _sharp(
    epsilons: Vector,
    c: float,
    t: float,
    log_area: Callable[[Vector, float], Vector],
    searched: bool,
) -> Vector:
    """Log U = log min{G(ε′; c), G(ε; c) + ((1+t)/t)·area(ε′)}, where ε′ = ε − log(1+t).

    What holds for a larger t holds for t too, and the second bound has a minimum in t. Below it,
    the second bound is taken there.
    """
    if t == 0.0:
        return log_shift(epsilons, c)
    lower = _lowered(epsilons, np.log1p(t))

    def scaled(at: Vector, of: Vector) -> Vector:
        """Log of the second term at ε′ = `at` ≤ ε − log(1+t): its factor is 1/(1 − e^(ε′−ε))."""
        area = log_area(at.ravel(), c).reshape(at.shape)
        return area - np.log(-np.expm1(at - of)) + _MARGIN

    second = scaled(lower, epsilons)
    # At t = ∞ the areas have the height φ(0) throughout.
    second = np.fmin(second, log_area(np.array([-np.inf]), c)[0])
    turn = turning_t(lower, c) if searched else np.zeros_like(lower)
    below = np.flatnonzero(turn > t)
    if below.size:
        of, turn = epsilons[below], np.minimum(turn[below], _LARGEST_T)

        def elsewhere(log_t: Vector) -> Vector:
            return scaled(_lowered(of, np.log1p(np.exp(log_t))), of)

        # Rounding must not lead to a t below the given one.
        start, stop = np.log(np.maximum(t, 0.05 * turn)) + 1e-14, np.log(np.maximum(t, 4.0 * turn))
        found = _least(elsewhere, start, np.maximum(start, stop))
        second[below] = np.fmin(second[below], found)
    ramp = np.logaddexp(log_shift(epsilons, c), second) + _MARGIN
    return np.fmin(log_shift(lower, c), ramp)


def _lowered(epsilons: Vector, by: Vector | float) -> Vector:
    """ε − by, rounded down."""
    return epsilons - by - 4e-16 * (epsilons + by)


def _replaced(epsilons: Vector, c: float, t: float, loss: Slope) -> Vector:
    """One record against another, over the data without both or over the data with both.

    For any ε₁ + ε₂ = ε the first way gives δ_A(ε₁) + e^{ε₁} δ_B(ε₂) and the second
    δ_B(ε₁) + e^{ε₁} δ_A(ε₂); every split is valid, so the best that is found counts.
    """

    def with_(e: Vector) -> Vector:
        return _with_record(e, c, t, loss, searched=False)

    def without(e: Vector) -> Vector:
        return _without_record(e, c, loss)

    if epsilons.size > _FEW:
        return _tabulated(epsilons, c, with_, without)
    best = np.zeros_like(epsilons)
    for first, second in ((with_, without), (without, with_)):

        def total(one: Vector, first: _Profile = first, second: _Profile = second) -> Vector:
            two = np.maximum((epsilons - one) * (1.0 - 4e-16), 0.0)
            one_step, other = first(one.ravel()), second(two.ravel())
            return np.logaddexp(one_step, one.ravel() + other).reshape(one.shape) + _MARGIN

        best = np.minimum(best, _least(total, np.zeros_like(epsilons), epsilons))
    return best


def _tabulated(epsilons: Vector, c: float, with_: _Profile, without: _Profile) -> Vector:
    """The least over all splits whose first part is on a grid, for many ε at a time.

    The δ of a pair is convex in e^ε, so that between points of a grid it lies below the chord of
    any upper bounds there. Where rounding leaves open in which cell an ε lies, the lower one is
    taken, whose upper end has the larger δ. The best split is searched for without logarithms, and
    its bound is computed with them.
    """
    most = float(np.max(epsilons))
    size = min(max(math.ceil(_IN_C * most / c), _LEAST_GRID), _MOST_GRID)
    grid = np.linspace(0.0, max(most, 1e-12), size + 1)
    step = float(grid[1])
    profiles = with_(grid), without(grid)
    lasts = np.clip((epsilons / step - _EDGE).astype(np.int64), 0, size - 1)

    def bound(of: Vector, at: NDArray[np.int64], first: Vector, second: Vector) -> Vector:
        """Bounds for the splits whose first parts are the points `at` of the grid."""
        one = grid[at]
        two = np.maximum((of - one) * (1.0 - 4e-16), 0.0)
        cell = np.clip((two / step - _EDGE).astype(np.int64), 0, size - 1)
        part = np.clip(np.expm1(two - grid[cell]) / math.expm1(step), 1e-300, 1.0)
        with np.errstate(divide="ignore"):
            near, far = np.log1p(-part), np.log(part)
        other = np.logaddexp(near + second[cell], far + second[cell + 1])
        return np.logaddexp(first[at], one + other) + _MARGIN

    best, parts = np.zeros_like(epsilons), np.expm1(epsilons - grid[lasts]) / math.expm1(step)
    with np.errstate(over="ignore", invalid="ignore"):
        growth, deltas = np.exp(grid), [np.exp(profile) for profile in profiles]
        for order in (0, 1):
            first, second = deltas[order], deltas[1 - order]
            at, least = np.zeros_like(lasts), np.empty_like(epsilons)
            for k, (last, part) in enumerate(zip(lasts.tolist(), parts.tolist(), strict=True)):
                # All distances on the grid lie at the same place of their cells.
                other = (1.0 - part) * second[last::-1] + part * second[last + 1 : 0 : -1]
                sums = first[: last + 1] + growth[: last + 1] * other
                at[k] = sums.argmin()
                least[k] = other[at[k]]
            logs = profiles[order], profiles[1 - order]
            found = bound(epsilons, at, *logs)
            # What underflows or overflows needs logarithms.
            for k in np.flatnonzero(~(least > _LEAST) | (epsilons > LARGEST)):
                found[k] = np.min(bound(epsilons[k : k + 1], np.arange(lasts[k] + 1), *logs))
            best = np.fmin(best, found)
    return best


def _least(function: _Profile, low: Vector, high: Vector) -> Vector:
    """Return the smallest value that a search finds between low and high, entry by entry.

    The function is called with one row for each trial.
    """
    best, columns = np.full_like(low, np.inf), np.arange(low.size)
    for _ in range(_REFINEMENTS):
        points = np.linspace(low, high, _POINTS)
        values = np.fmin(function(points), 0.0)
        at = np.argmin(values, axis=0)
        best = np.minimum(best, values[at, columns])
        low = points[np.maximum(at - 1, 0), columns]
        high = points[np.minimum(at + 1, _POINTS - 1), columns]
    return best
