"""State evolution for columns of any covariance: the averages, by simulation of a smaller LASSO.

Rows of F are N(0, C/N). In the slope q and the square e of the clipped residuals (`_system`) the
minimiser behaves, with a ridge of matrix Q, as

    x̂ = argmin ½xᵀ(αqC + Q)x − (αq Cx⁰ + √(αe) h − η)ᵀx + λ‖x‖₁,    h ~ N(0, C),

a LASSO in Gram form of size N without rows, and over the supports T

    R = q²E = q²σ_ξ² + q² E‖C^½(x̂ − x⁰)‖²/N,    S = qV = q E tr[C_TT (αqC_TT + Q_TT)⁻¹]/N.

Without a ridge z = αq x̂ is found instead, and S = ρ̂/α: nothing diverges at the edge of stability,
q → 0. For a diagonal C these are the averages of `_system`. They self-average, so a few draws of
(x⁰, h, η) are enough. The draws are kept while (e, q) changes, so that R and S are functions of
(e, q), and every solve starts from the last one.

The fixed point (`find_root`) has standard errors. It is a root of log R = log p²b and p − S = q in
(log b, q), as in `_root`, found by Anderson acceleration of the plain iteration with memory two,
which for two unknowns is a secant method. It stops when what is missing is small against the Monte
Carlo error of the two equations. Their derivatives by differences then give a last Newton step, and
the errors of b and q.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from scipy.linalg import cho_factor, cho_solve
from scipy.special import ndtri

from privasso._blas import one_thread, product
from privasso.model import GivenCovariance, Model
from privasso.noise import Covariance, Diagonal, MatrixPower, NoiseDesign
from privasso.solvers import GramLasso
from privasso.theory._points import out_of_range
from privasso.theory._system import FloatArray, row_averages

#: What the noise of a prediction for given columns may be.
ColumnNoise = NoiseDesign | MatrixPower | Covariance

#: Accuracy of the inner minimisers, relative to λ.
_TOL = 1e-6


@dataclass(frozen=True, eq=False)
class Averages:
    """R, S and ρ̂ at one (e, q), in each draw."""

    R: FloatArray
    S: FloatArray
    rho_hat: FloatArray

    @property
    def means(self) -> tuple[float, float]:
        """R and S, which are finite; an error says so where they are not."""
        R, S = float(np.mean(self.R)), float(np.mean(self.S))
        if not (math.isfinite(R) and math.isfinite(S)):
            raise out_of_range("columns")
        return R, S

    @property
    def covariance(self) -> FloatArray:
        """Covariance of the errors of log R and −S."""
        return np.cov(np.vstack([self.R / np.mean(self.R), -self.S])) / self.R.size


class NotSolvedError(Exception):
    """An inner problem has no minimiser: C is singular, and the noise lies outside its range."""


class Draws:
    """Common random numbers (x⁰, h, η) for given columns, and the minimisers they lead to.

    The model has a covariance matrix; `eta` is noise at hand, the same in all draws.
    """

    def __init__(
        self,
        model: Model,
        lam: float,
        noise: ColumnNoise,
        n_draws: int,
        rng: np.random.Generator,
        eta: FloatArray | None = None,
        kappa: float = math.inf,
        ridge: FloatArray | None = None,
    ) -> None:
        C = given(model)
        self.alpha, self.lam, self.model = model.alpha, lam, model
        self.kappa, self.ridge = kappa, ridge
        self.C: FloatArray = C.covariance
        self.v: FloatArray = C.diagonal
        N = C.n_columns
        self.x0 = signals(model.rho, N, n_draws, rng)
        self.h = product(C.root, rng.standard_normal((C.rank, n_draws)))
        self.eta: FloatArray = (
            _noise_draws(C, noise, n_draws, rng)
            if eta is None
            else np.repeat(eta[:, None], n_draws, axis=1)
        )
        self.Cx0 = product(self.C, self.x0)
        self._lasso = GramLasso(self.C, C.rank)
        self.z: FloatArray | None = None

    @property
    def is_linear(self) -> bool:
        """Whether nothing is clipped and there is no ridge."""
        return self.kappa == math.inf and self.ridge is None

    def averages(self, e: float, q: float) -> Averages:
        """R, S and ρ̂ at (e, q); `z` holds the minimisers afterwards."""
        N = self.v.size
        z = self.minimise(e, q)
        active = np.count_nonzero(z, axis=0) / N
        if self.ridge is None:
            w, S = z / self.alpha - q * self.x0, active / self.alpha
        else:
            H = self.alpha * q * self.C + self.ridge
            w = q * (z - self.x0)
            S = q * np.array([_response(self.C, H, np.flatnonzero(x)) for x in z.T]) / N
        spread = np.einsum("ik,ik->k", w, product(self.C, w)) / N
        return Averages(self.model.sigma_xi**2 * q * q + spread, S, active)

    def field(self, e: float, q: float) -> FloatArray:
        """The linear terms but for the noise."""
        return self.alpha * q * self.Cx0 + np.sqrt(self.alpha * e) * self.h

    def minimise(self, e: float, q: float) -> FloatArray:
        """The minimisers z, or x̂ with a ridge, at (e, q), from where the last call ended."""
        B = self.field(e, q) - self.eta
        if self.ridge is None:
            self.z, solved = self._lasso.minimise(B, self.lam, self.z, tol=_TOL)
        else:
            lasso = GramLasso(self.alpha * q * self.C + self.ridge)
            self.z, solved = lasso.minimise(B, self.lam, self.z)
        if not solved.all():
            self.z = None
            raise NotSolvedError
        return self.z


def _response(C: FloatArray, H: FloatArray, T: NDArray[np.intp]) -> float:
    """tr[C_TT (H_TT)⁻¹]."""
    if T.size == 0:
        return 0.0
    at = np.ix_(T, T)
    with one_thread():
        return float(np.trace(cho_solve(cho_factor(H[at]), C[at])))


def given(model: Model) -> GivenCovariance:
    """The covariance matrix of a model that has one."""
    return model.covariance


def signals(rho: float, N: int, n_draws: int, rng: np.random.Generator) -> FloatArray:
    """Bernoulli–Gaussian vectors whose nonzero entries are a stratified normal sample.

    Each entry has its exact law; the number and the sizes of the nonzero ones vary less from draw
    to draw than those of independent entries do, which makes the averages more accurate.
    """
    x = np.zeros((N, n_draws))
    for k in range(n_draws):
        count = int(np.floor(rho * N + rng.random()))
        p = (np.arange(count) + rng.random(count)) / max(count, 1)
        x[rng.choice(N, count, replace=False), k] = rng.permutation(ndtri(p))
    return x


def _noise_draws(
    C: GivenCovariance, noise: ColumnNoise, n_draws: int, rng: np.random.Generator
) -> FloatArray:
    if isinstance(noise, Covariance):
        return noise.draw(rng, n_draws)
    if isinstance(noise, MatrixPower):
        root = noise.root(C.covariance)
        return product(root, rng.standard_normal((root.shape[1], n_draws)))
    return noise.draw(C.diagonal, rng, n_draws)


def covariance_of(noise: ColumnNoise, C: GivenCovariance) -> Covariance:
    """Σ on the columns of C."""
    if isinstance(noise, Covariance):
        return noise
    return noise.covariance(C.covariance if isinstance(noise, MatrixPower) else C.diagonal)


def noise_level(noise: ColumnNoise) -> float:
    """Root of the mean variance."""
    if isinstance(noise, Covariance):
        return float(np.sqrt(np.mean(noise.diagonal)))
    return noise.sigma


def own_variances(noise: ColumnNoise, C: GivenCovariance) -> FloatArray | None:
    """Variances of independent noise, or None for noise that is correlated over the columns."""
    if isinstance(noise, MatrixPower):
        if noise.gamma == 0.0:
            return np.full(C.n_columns, noise.mean_power)
        return None if not C.is_diagonal else np.sum(noise.root(C.covariance) ** 2, axis=1)
    if isinstance(noise, Covariance):
        return noise.diagonal if isinstance(noise, Diagonal) else None
    return noise.variances(C.diagonal)


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
