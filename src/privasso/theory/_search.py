"""The fixed point of averages that are computed by simulation, with its standard errors.

Roots of log R = log p²b and p − S = q in (log b, q), as in `_root`, by Anderson acceleration of the
plain iteration with memory two, which for two unknowns is a secant method. It stops when what is
missing is small against the Monte Carlo error of the two equations. Their derivatives by
differences then give a last Newton step, and the errors of b and q.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from privasso.theory._draws import Averages, Draws, NotSolvedError
from privasso.theory._system import FloatArray, row_averages

_STEPS = 40
#: What may be missing at the end, in standard errors of the averages.
_SHARE = 0.1
#: Steps of the differences: of log b, and of q relative to it.
_DIFFERENCES = (0.05, 0.03)
#: q below which the existence of a fixed point is checked by itself, without clipping and ridge.
_EDGE = 0.05
_HALVINGS = 60


@dataclass(frozen=True, eq=False)
class Root:
    """A fixed point, the covariance of the Monte Carlo errors of log b and q, and averages there.

    `path` has rows E, V and ρ̂ of each evaluation. Without clipping b is e.
    """

    b: float
    q: float
    kappa: float
    covariance: FloatArray
    path: FloatArray
    averages: Averages

    @property
    def E(self) -> float:
        """Prediction error b(p/q)²."""
        return self.b * (self._rows[0] / self.q) ** 2

    @property
    def V(self) -> float:
        """V = p/q − 1."""
        return self._rows[0] / self.q - 1.0

    @property
    def _rows(self) -> tuple[float, float, float, float]:
        return row_averages(self.b, self.kappa)

    def error(self, by_log_b: float, by_q: float) -> float:
        """Standard error of a function with these derivatives."""
        g = np.array([by_log_b, by_q])
        return math.sqrt(max(float(g @ self.covariance @ g), 0.0))

    @property
    def errors(self) -> tuple[float, float, float]:
        """Standard errors of E, V and V/(1 + V) = 1 − q/p."""
        p, _, p_x, _ = self._rows
        E, q = self.E, self.q
        return (
            self.error(E * (1.0 + 2.0 * p_x / p), -2.0 * E / q),
            self.error(p_x / q, -p / q**2),
            self.error(q * p_x / p**2, -1.0 / p),
        )


def find_root(draws: Draws, b: float, q: float) -> Root | None:
    """The fixed point, from a start (b, q) with q > 0; None where there is none."""
    search = _Search(draws)
    found = search.accelerated(np.array([math.log(b), q]))
    if found is None:
        if search.may_be_absent and lowest(draws, b)[1] >= 0.0:
            return None
        found = search.bracketed(math.log(b))
        if found is None:
            return None
    return search.finished(found)


def lowest(draws: Draws, e: float, width: float = 5e-3) -> tuple[float, float, Averages]:
    """The e at which R(e, 0) − e is smallest, 1 − e/R there, and averages; see `_edge`.

    `width` is the accuracy of log e. The averages are those at the e that is returned.
    """
    lo, hi, step = -math.inf, math.inf, 0.5
    x = math.log(e)
    for _ in range(_HALVINGS):
        if draws.averages(math.exp(x), 0.0).means[1] > 1.0:
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
    found = draws.averages(math.exp(x), 0.0)
    R, _ = found.means
    return math.exp(x), 1.0 - math.exp(x) / R if R > 0.0 else -math.inf, found


class _Search:
    def __init__(self, draws: Draws) -> None:
        self._draws = draws
        self._path: list[tuple[float, float, float]] = []
        self.may_be_absent = draws.is_linear and draws.alpha < 1.0

    def _rows(self, x: float) -> tuple[float, float]:
        """P and e at log b = x."""
        p, e, _, _ = row_averages(math.exp(x), self._draws.kappa)
        return p, e

    def _residual(self, w: FloatArray) -> tuple[FloatArray, Averages]:
        """Log R − log p²b and p − S − q at w = (log b, q)."""
        p, e = self._rows(w[0])
        q = float(w[1])
        found = self._draws.averages(e, q)
        R, S = found.means
        rho_hat = float(np.mean(found.rho_hat))
        self._path.append((R / (q * q) if q > 0.0 else math.inf, p / q - 1.0, rho_hat))
        return np.array([math.log(R / p**2) - w[0], p - S - q]), found

    def _settled(self, f: FloatArray, found: Averages) -> bool:
        error = np.sqrt(np.diag(found.covariance))
        grain = np.array([1e-6, 0.5 / (self._draws.alpha * found.R.size * 1000.0)])
        return bool(np.all(np.abs(f) <= np.maximum(_SHARE * error, grain)))

    def accelerated(self, w: FloatArray) -> FloatArray | None:
        """Anderson's iteration; None if it leaves q > 0 or does not settle."""
        points: list[FloatArray] = []
        residuals: list[FloatArray] = []
        for _ in range(_STEPS):
            try:
                f, found = self._residual(w)
            except NotSolvedError:
                return None
            if self._settled(f, found):
                return w
            # The plain iteration: 1 + V follows S, and b follows R and the new V.
            R, S = found.means
            grown = 1.0 + S / w[1]
            new_x = math.log(R) - 2.0 * math.log(w[1] * grown)
            step = np.array([new_x - w[0], self._rows(new_x)[0] / grown - w[1]])
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
            if w[1] < _EDGE and self.may_be_absent:
                return None
        return None

    def bracketed(self, x: float) -> FloatArray | None:
        """The root by bisection in log b, for each of which q is found by bisection: safe."""
        lo, hi = -math.inf, math.inf
        w = np.array([x, 0.0])
        for _ in range(_HALVINGS):
            q = self._q(x)
            w = np.array([x, q])
            below = q > 0.0 and self._residual(w)[0][0] > 0.0
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

    def _q(self, x: float) -> float:
        """The q with q + S = p, of which the left side grows with q; 0 where there is none."""
        p, e = self._rows(x)
        lo, hi = 0.0, p
        if self._draws.averages(e, 0.0).means[1] >= p:
            return 0.0
        for _ in range(_HALVINGS):
            if hi - lo <= 1e-4 * p:
                break
            q = 0.5 * (lo + hi)
            if q + self._draws.averages(e, q).means[1] > p:
                hi = q
            else:
                lo = q
        return 0.5 * (lo + hi)

    def finished(self, w: FloatArray) -> Root:
        """One Newton step from w, and the errors of the root."""
        f, _ = self._residual(w)
        J = np.empty((2, 2))
        for k, size in enumerate((_DIFFERENCES[0], -_DIFFERENCES[1] * w[1])):
            moved = w.copy()
            moved[k] += size
            J[:, k] = (self._residual(moved)[0] - f) / size
        step = -np.linalg.solve(J, f)
        new = w + step
        if not (abs(step[0]) < 0.2 and 0.5 * w[1] < new[1] < 1.0):
            new = w
        _, found = self._residual(new)
        inverse = np.linalg.inv(J)
        covariance = inverse @ found.covariance @ inverse.T
        return Root(
            math.exp(new[0]), float(new[1]), self._draws.kappa, covariance,
            np.array(self._path), found,
        )  # fmt: skip
