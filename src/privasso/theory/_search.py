"""The fixed point (e, u) of averages that are computed by simulation, with its standard errors.

Roots of log R(e, u) = log e and 1 − ρ̂(e, u)/α = u, as in `_root`, by Anderson acceleration of the
plain iteration with memory two, which for two unknowns is a secant method. It stops when what is
missing is small against the Monte Carlo error of the two equations. Their derivatives by
differences then give a last Newton step, and the errors of e and u.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from privasso.theory._draws import Averages, NotSolvedError, System

FloatArray = NDArray[np.float64]

_STEPS = 40
#: What may be missing at the end, in standard errors of the averages, and relative for exact ones.
_SHARE, _EXACT = 0.1, 1e-9
#: Steps of the differences: of log e, and of u relative to it; smaller ones for exact averages.
_DIFFERENCES = (0.05, 0.03)
_SMALL = 1e-5
#: u below which the existence of a fixed point is checked by itself.
_EDGE = 0.05
_HALVINGS = 60


@dataclass(frozen=True, eq=False)
class Root:
    """A fixed point.

    Attributes
    ----------
    e, u : float
        NaN and 0 where there is none.
    covariance : ndarray of shape (2, 2)
        Of the Monte Carlo errors of log e and u.
    path : ndarray of shape (T, 3)
        E, V and ρ̂ of each evaluation.
    averages : Averages
        At the fixed point.
    """

    e: float
    u: float
    covariance: FloatArray
    path: FloatArray
    averages: Averages


def find_root(system: System, e: float, u: float) -> Root | None:
    """The fixed point, from a start (e, u) with u > 0; None where there is none."""
    search = _Search(system)
    found = search.accelerated(np.array([math.log(e), u]))
    if found is None:
        if system.alpha < 1.0 and not below_edge(system, e):
            return None
        found = search.bracketed(found_e=e)
        if found is None:
            return None
    return search.finished(found)


def below_edge(system: System, e: float) -> bool:
    """Whether R(e, 0) < e for some e, so that a fixed point exists (see `_edge`)."""
    return lowest(system, e)[1] < 0.0


def lowest(system: System, e: float, width: float = 5e-3) -> tuple[float, float, Averages]:
    """The e at which R(e, 0) − e is smallest, where ρ̂(e, 0) = α, 1 − e/R there, and averages.

    `width` is the accuracy of log e. The averages are those at the e that is returned.

    Examples
    --------
    >>> class Doubled:
    ...     alpha = 0.5
    ...
    ...     def averages(self, e, u):
    ...         return Averages(np.array([2.0 * e]), np.array([min(1.0, e)]), exact=True)
    >>> e, gap, _ = lowest(Doubled(), 1.0)
    >>> round(e, 2), round(gap, 2)
    (0.5, 0.5)
    """
    lo, hi, step = -math.inf, math.inf, 0.5
    x = math.log(e)
    for _ in range(_HALVINGS):
        if system.averages(math.exp(x), 0.0).means[1] > system.alpha:
            hi = x
        else:
            lo = x
        if math.isinf(lo) or math.isinf(hi):
            x += step if math.isinf(hi) else -step
            step = min(2.0 * step, 2.0)
        else:
            x = 0.5 * (lo + hi)
        if hi - lo < width or abs(x) > 600.0:
            break
    found = system.averages(math.exp(x), 0.0)
    R, _ = found.means
    return math.exp(x), 1.0 - math.exp(x) / R if R > 0.0 else -math.inf, found


class _Search:
    def __init__(self, system: System) -> None:
        self._system = system
        self._path: list[tuple[float, float, float]] = []

    def _residual(self, w: FloatArray) -> tuple[FloatArray, Averages]:
        """Log R − log e and 1 − ρ̂/α − u at w = (log e, u)."""
        e, u = math.exp(w[0]), float(w[1])
        found = self._system.averages(e, u)
        R, rho_hat = found.means
        self._path.append((R / (u * u) if u > 0.0 else math.inf, 1.0 / u - 1.0, rho_hat))
        return np.array([math.log(R) - w[0], 1.0 - rho_hat / self._system.alpha - u]), found

    def _settled(self, f: FloatArray, found: Averages) -> bool:
        if found.exact:
            return bool(np.max(np.abs(f)) < _EXACT)
        error = np.sqrt(np.diag(found.covariance(self._system.alpha)))
        grain = np.array([1e-6, 0.5 / (self._system.alpha * found.R.size * 1000.0)])
        return bool(np.all(np.abs(f) <= np.maximum(_SHARE * error, grain)))

    def accelerated(self, w: FloatArray) -> FloatArray | None:
        """Anderson's iteration; None if it leaves u > 0 or does not settle."""
        points: list[FloatArray] = []
        residuals: list[FloatArray] = []
        for _ in range(_STEPS):
            try:
                f, found = self._residual(w)
            except NotSolvedError:
                return None
            if self._settled(f, found):
                return w
            # The plain iteration: u follows ρ̂, and e follows R and the new u.
            new_u = 1.0 / (1.0 + (1.0 - (f[1] + w[1])) / w[1])
            step = np.array([f[0] + 2.0 * math.log(new_u / w[1]), new_u - w[1]])
            points.append(w)
            residuals.append(step)
            new = w + step
            if len(points) > 1:
                m = min(3, len(points))
                dP = np.diff(np.array(points[-m:]), axis=0).T
                dR = np.diff(np.array(residuals[-m:]), axis=0).T
                weight, *_ = np.linalg.lstsq(dR, step, rcond=1e-3)
                new = w + step - (dP + dR) @ weight
            dx = min(max(new[0] - w[0], -1.0), 1.0)
            w = np.array([w[0] + dx, min(max(new[1], 0.4 * w[1]), 1.0)])
            if w[1] < _EDGE and self._system.alpha < 1.0:
                return None
        return None

    def bracketed(self, found_e: float) -> FloatArray | None:
        """The root by bisection in log e, for each of which u is found by bisection: safe."""
        lo, hi = -math.inf, math.inf
        x = math.log(found_e)
        w = np.array([x, 0.0])
        for _ in range(_HALVINGS):
            u = self._u(math.exp(x))
            below = u > 0.0 and self._system.averages(math.exp(x), u).means[0] > math.exp(x)
            w = np.array([x, u])
            if below:
                lo = x
            else:
                hi = x
            if math.isinf(lo) or math.isinf(hi):
                x = x + 1.0 if below else x - 1.0
                if abs(x) > 300.0:
                    return None
            else:
                if hi - lo < 1e-3:
                    break
                x = 0.5 * (lo + hi)
        return w if w[1] > 0.0 else None

    def _u(self, e: float) -> float:
        """The u with u + ρ̂(e, u)/α = 1, which grows with u; 0 where there is none."""
        lo, hi = 0.0, 1.0
        if self._system.averages(e, 0.0).means[1] >= self._system.alpha:
            return 0.0
        while hi - lo > 1e-4:
            u = 0.5 * (lo + hi)
            if u + self._system.averages(e, u).means[1] / self._system.alpha > 1.0:
                hi = u
            else:
                lo = u
        return 0.5 * (lo + hi)

    def finished(self, w: FloatArray) -> Root:
        """One Newton step from w, and the errors of the root."""
        f, found = self._residual(w)
        J = np.empty((2, 2))
        scale = _SMALL if found.exact else 1.0
        for k, size in enumerate((_DIFFERENCES[0], -_DIFFERENCES[1] * w[1])):
            moved = w.copy()
            moved[k] += scale * size
            J[:, k] = (self._residual(moved)[0] - f) / (scale * size)
        step = -np.linalg.solve(J, f)
        new = w + step
        if not (abs(step[0]) < 0.2 and 0.5 * w[1] < new[1] < 1.0):
            new = w
        _, found = self._residual(new)
        inverse = np.linalg.inv(J)
        covariance = inverse @ found.covariance(self._system.alpha) @ inverse.T
        return Root(math.exp(new[0]), float(new[1]), covariance, np.array(self._path), found)
