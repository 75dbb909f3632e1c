"""Fixed points for arrays of (λ, σ), with the average over scales refined until it settles."""

from __future__ import annotations

import math
import warnings
from dataclasses import dataclass
from functools import partial
from itertools import pairwise

import numpy as np
from numpy.typing import NDArray

from privasso._threads import n_threads, run
from privasso.model import Model, RotatedModel
from privasso.noise import NoiseDesign
from privasso.theory._nodes import (
    REFINEMENTS,
    Nodes,
    Ridge,
    Tail,
    columns,
    eigenvalues,
    has_ridge,
    lower_tail,
    quadrature,
)
from privasso.theory._onavekl import component_wise
from privasso.theory._root import ABSENT, FOUND, fixed_point, runaway
from privasso.theory._system import NONE, FloatArray, System, at, iterate, kernel, values

STABLE, UNSTABLE, INFINITE = 0, 1, 2
#: Rows of the array of results: the last two are the (x, y) of `_system`.
_STATUS, _ERROR, _VARIANCE, _ACTIVE, _DIVERGENCE, _X, _Y = range(7)
#: Whether a point agrees with that of the last quadrature.
_OPEN, _SETTLED, _BEYOND = range(3)
#: Absolute differences below this count as none.
_FLOOR = 1e-14
#: Two quadratures must agree to this, relative to E, V, ρ̂ and OnAveKL.
TOLERANCE = 1e-6
#: Number of points times nodes below which a second thread takes longer than it saves.
_SERIAL_BELOW = 20_000
#: Rows after which a recursion ends, the change at which it has converged, and where it diverges.
ROWS, SETTLED, CEILING = 1000, 1e-10, 1e12


class QuadratureWarning(UserWarning):
    """The average over the scales did not settle to 1e-6; the prediction is less accurate."""


@dataclass(frozen=True, eq=False)
class GridPoints:
    """State evolution at many points: arrays with one entry per point."""

    status: FloatArray
    E: FloatArray
    V: FloatArray
    rho_hat: FloatArray
    component_wise: FloatArray
    system: System
    """With the nodes of the last refinement."""


class Grid:
    """Points (λ_k, σ_k) on nodes that may change, and what was found there.

    n_features is for the spectrum of a `RotatedModel`.
    """

    def __init__(
        self,
        model: Model | RotatedModel,
        lams: FloatArray,
        sigmas: FloatArray,
        kappa: float = math.inf,
        ridge: Ridge = 0.0,
        n_features: int | None = None,
    ) -> None:
        self.model, self.lams, self.sigmas = model, lams, sigmas
        self._kappa, self._ridge = kappa, ridge
        self.linear = kappa == math.inf and not has_ridge(ridge)
        self._spectrum, self._rank = (NONE, NONE), model.alpha
        if isinstance(model, RotatedModel):
            d, dw = self._spectrum = eigenvalues(model.spectrum, model.alpha, n_features)
            self._rank = spectral_rank(d, dw)
        self.values = np.full((7, lams.size), np.nan)

    def points(self, nodes: Nodes) -> GridPoints:
        """What was found, on these nodes at last."""
        status, E, V, rho_hat, P, _, _ = self.values
        return GridPoints(status, E, V, rho_hat, P, self._system(nodes))

    def _system(self, nodes: Nodes) -> System:
        return nodes.system(
            self.model, 1.0, 1.0, self._kappa, self._ridge, spectrum=self._spectrum
        )  # fmt: skip

    def solve(self, nodes: Nodes, todo: NDArray[np.intp], *, warm: bool) -> NDArray[np.bool_]:
        """Fill in the points `todo`, and say which agree with what was there before."""
        # A ray of the objective lies in the null space of F, of which only the size matters.
        ratio = nodes.critical_ratio(self._rank) if self.linear else -1.0
        system, n = self._system(nodes), todo.size
        state = np.zeros(n, dtype=np.int8)

        def part(first: int, last: int) -> None:
            with np.errstate(all="ignore"):  # see below
                _solve(
                    self.values, state, todo, first, last, warm, self.lams, self.sigmas, ratio,
                    self._rank, system,
                )  # fmt: skip

        if n * nodes.v.size > _SERIAL_BELOW:
            workers = min(n_threads(), n)
            edges = [n * k // workers for k in range(workers + 1)]
            run([partial(part, first, last) for first, last in pairwise(edges)])
        else:
            part(0, n)
        if not self.linear:
            for j in np.flatnonzero(self.values[_STATUS, todo] == UNSTABLE):
                k = todo[j]
                here = system._replace(lam=self.lams[k], power=self.sigmas[k] ** 2)
                active = iterate(here, ROWS, SETTLED, CEILING)[-1, 2]
                if not abs(active - self.values[_ACTIVE, k]) <= TOLERANCE * active:
                    state[j] = _OPEN
                self.values[_ACTIVE, k] = active
        if (
            math.isnan(ratio)
            or (state == _BEYOND).any()
            or np.isnan(self.values[_ACTIVE, todo]).any()
        ):
            raise out_of_range(self.model.scales)
        return state == _SETTLED

    def diverge(self, where: NDArray[np.bool_]) -> None:
        """Overwrite the points where E is infinite; every column is active there."""
        V, active, alpha = math.nan, math.nan, self.model.alpha
        d, dw = self._spectrum
        if self.linear:
            active, V = 1.0, 1.0 / (alpha - 1.0) if alpha > 1.0 else math.inf
        if d.size:
            V = float(dw @ (1.0 / d)) if self._rank == 1.0 else math.inf
        self.values[_STATUS, where] = INFINITE
        self.values[_ERROR, where] = self.values[_DIVERGENCE, where] = np.inf
        self.values[_ACTIVE, where], self.values[_VARIANCE, where] = active, V


def spectral_rank(d: FloatArray, dw: FloatArray) -> float:
    """Part of the eigenvalues that are not zero."""
    rank = float(np.sum(dw[d > 0.0]))
    return rank if rank < 1.0 - 1e-9 else 1.0


def solve_grid(
    model: Model | RotatedModel,
    lams: FloatArray,
    sigmas: FloatArray,
    noise: NoiseDesign,
    n_features: int | None,
    kappa: float = math.inf,
    ridge: Ridge = 0.0,
) -> GridPoints:
    """State evolution at the pairs (λ_k, σ_k), with the noise at level σ_k instead of its own."""
    noise = noise.with_sigma(1.0)
    grid = Grid(model, lams, sigmas, kappa, ridge, n_features)
    todo = np.arange(lams.size)
    nodes = columns(model.scales, noise, n_features)
    if nodes is not None:
        grid.solve(nodes, todo, warm=False)
        return grid.points(nodes)

    noisy = sigmas > 0.0
    tail = lower_tail(model.scales, noise, ridge) if noisy.any() else Tail.LIGHT
    nodes = quadrature(model.scales, noise, 0, tail)
    if tail is Tail.INFINITE:
        # Only points without noise have an integral that a refinement could settle.
        grid.diverge(noisy)
        todo = np.flatnonzero(~noisy)
    if todo.size:
        grid.solve(nodes, todo, warm=False)
    for level in range(1, REFINEMENTS + 1):
        if todo.size == 0:
            return grid.points(nodes)
        nodes = quadrature(model.scales, noise, level, tail)
        todo = todo[~grid.solve(nodes, todo, warm=True)]
    if todo.size:
        warnings.warn(
            f"the average over {model.scales!r} did not settle to {TOLERANCE:g} at "
            f"{nodes.v.size} nodes; pass n_features to predict for that many columns",
            QuadratureWarning,
            stacklevel=3,
        )
    return grid.points(nodes)


def solve_system(s: System, what: object) -> tuple[GridPoints, tuple[float, float]]:
    """State evolution at the point that `s` is about, and its (e, q) where it is stable.

    It does not look for the critical line first, which takes longer than a single point.
    """
    found, state = np.full((7, 1), np.nan), np.zeros(1, dtype=np.int8)
    with np.errstate(all="ignore"):
        _solve(
            found, state, np.arange(1), 0, 1, False, np.array([s.lam]),
            np.array([math.sqrt(s.power)]), -1.0, s.alpha, s,
        )  # fmt: skip
        if state[0] == _BEYOND:
            raise out_of_range(what)
        *_, e, q = values(s, *found[_X:, 0].tolist())
    return GridPoints(*found[:_X], system=s), (e, q)


def out_of_range(what: object) -> ValueError:
    """The error that says that double precision does not hold a prediction."""
    return ValueError(
        f"the averages over {what!r} leave the range of double precision: choose scales that "
        "span fewer orders of magnitude, or numbers nearer to one for λ and the noise; for the "
        "limit of many columns, pass n_features to predict for that many"
    )


@kernel
def _solve(found, state, todo, first, last, warm, lams, sigmas, ratio, rank, s):  # pragma: no cover
    """Write status, E, V, ρ̂, P and (x, y) of the points todo[first:last] into `found`.

    With `warm`, each point starts from the (x, y) that `found` holds; without it, from its
    predecessor. A negative ratio says that the critical line is not known. `state` says which
    agree with what was there before, and which are beyond double precision.
    """
    linear = s.kappa == math.inf and s.ridge.size == 0
    before = np.empty(_DIVERGENCE + 1)
    for j in range(first, last):
        k = todo[j]
        lam, power = lams[k], sigmas[k] ** 2
        here = at(s, s.alpha, lam, power)
        out = found[:, k]
        x, y = out[_X], out[_Y]
        if not warm:
            x, y = math.nan, math.nan
            if j > first:
                x, y = found[_X, todo[j - 1]], found[_Y, todo[j - 1]]
        for row in range(_DIVERGENCE + 1):
            before[row] = out[row]
        status = ABSENT
        if lam > ratio * sigmas[k]:
            status, x, y = fixed_point(here, x, y, ratio >= 0.0)
        good = False
        out[_STATUS], out[_DIVERGENCE] = STABLE, math.nan
        if status == FOUND:
            out[_ERROR], out[_VARIANCE], out[_ACTIVE], e, q = values(here, x, y)
            good = math.isfinite(out[_ERROR] + out[_VARIANCE] + out[_ACTIVE])
            if s.d.size == 0 and linear:
                out[_DIVERGENCE] = component_wise(here, e, q)
                good = good and not math.isnan(out[_DIVERGENCE])
        elif status == ABSENT:
            out[_STATUS], out[_ERROR], out[_VARIANCE] = UNSTABLE, math.inf, math.inf
            y = math.nan
            if linear:
                if not (warm and math.isfinite(x)):
                    x = math.log(power / rank)
                x, S = runaway(at(s, rank, lam, power), x)
                out[_ACTIVE] = S * rank
                good = math.isfinite(out[_ACTIVE])
            else:
                good = True  # see Grid.solve
        out[_X], out[_Y] = x, y
        state[j] = _SETTLED if good else _BEYOND
        for row in range(_DIVERGENCE + 1):
            a, b = before[row], out[row]
            # NaN stands for what does not exist, inf for what diverges; both may agree.
            same = a == b or (a != a and b != b) or abs(a - b) <= TOLERANCE * abs(b) + _FLOOR
            if good and not same:
                state[j] = _OPEN
