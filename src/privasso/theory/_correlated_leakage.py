"""What a release from correlated columns leaks: the Fisher information Ī, and the overlap.

The law of the released x has the density of `log_density`. Its score in c = Fᵀ(y − Fx) is
s_i = ∂ log q_i/∂c_i for independent noise. A shift of c by any t leaves a density, so by Bartlett's
identities E[s_i s_j] = 0 for i ≠ j and E[s_i²] = −E[∂s_i/∂c_i]. Hence A = Σ f_i s_i for a new row
f ~ N(0, C/N) has the variance

    Ī = Σ_i C_ii E[−∂²log q_i/∂c_i²]/N,

and the rest of the derivation for independent columns (`_attack`) holds with P = E·Ī/(1+V)².

For noise of any covariance Σ a shift of c is one of η, so the score is −E[Σ⁻¹η | x]. Given x, η is
known on the support S, and off it η is normal, restricted to the box |c_j − η_j| ≤ λ. Hence

    Ī = tr(CΣ⁻¹)/N − tr W Cov(η | x) Wᵀ = tr(C_SS Σ_SS⁻¹)/N + tr W(Σ_{·|S} − Cov(η | x))Wᵀ,

averaged over x, with W = C^½Σ⁻¹/√N and the covariance Σ_{·|S} of η given η_S without a box. It is
also E‖E[Wη | x]‖². The first term alone is a lower bound, and tr(CΣ⁻¹)/N an upper one. The moments
in the box have no closed form and are computed by a Markov chain (`box_chain`). It starts at the η
that led to x, which has the law of η given x, so that no state is biased.
"""

from __future__ import annotations

import math

import numpy as np
from numba import njit
from numpy.typing import NDArray
from scipy.linalg import cho_factor, cho_solve

from privasso._blas import product
from privasso.model import GivenCovariance, Model
from privasso.noise import Covariance
from privasso.theory._density import log_mass
from privasso.theory._draws import ColumnNoise, Draws, covariance_of, given, noise_level
from privasso.theory._system import FloatArray

_STEPS = 30
#: States of the chain in the box: more where Ī has a relative standard error above the accuracy.
_STATES, _ACCURACY = (24, 96, 384), 0.1
#: How far apart two states count as independent; correlations are gone after three, as measured.
_APART = 4
_LOG_2PI = float(np.log(2.0 * np.pi))


def information(draws: Draws, e: float, u: float, variances: FloatArray) -> FloatArray:
    """Ī in each draw, at the fixed point (e, u); infinite if an active column has no noise."""
    z = draws.minimise(e, u)
    c = draws.field(e, u) - product(draws.C, z)
    on = z != 0.0
    if np.any(on & (variances == 0.0)[:, None]):
        return np.full(z.shape[1], np.inf)
    sigma = np.sqrt(variances)[:, None]
    with np.errstate(divide="ignore", invalid="ignore"):
        curvature = np.where(on, 1.0 / sigma**2, _curvature(c, draws.lam, sigma))
    curvature = np.where(sigma > 0.0, curvature, 0.0)
    return draws.v @ curvature / draws.v.size


def _curvature(c: FloatArray, lam: float, sigma: FloatArray) -> FloatArray:
    """−∂²/∂c² of log[Φ((c+λ)/σ) − Φ((c−λ)/σ)]."""
    a, b = (lam - np.abs(c)) / sigma, (lam + np.abs(c)) / sigma
    mass = log_mass(a.ravel(), b.ravel()).reshape(a.shape)
    # Densities over the mass, at the near and at the far end of the interval.
    near = np.exp(-0.5 * (a * a + _LOG_2PI) - mass)
    far = np.exp(-0.5 * (b * b + _LOG_2PI) - mass)
    return ((near - far) ** 2 + a * near + b * far) / sigma**2


def shared_information(
    draws: Draws, e: float, u: float, noise: ColumnNoise, seed: int
) -> FloatArray:
    """Ī in each draw for noise that is correlated over the columns, at the fixed point (e, u).

    An error says when the noise leaves a direction of the rows without cover, or a chain does not
    end.
    """
    C = given(draws.model)
    if noise_level(noise) == 0.0:
        return np.full(draws.x0.shape[1], np.inf)
    Sigma = covariance_of(noise, C)
    rows = Sigma.whiten(C.root) / np.sqrt(C.n_columns)
    if not np.isfinite(rows).all():
        raise ValueError(
            "the noise does not cover all directions in which the rows vary, so the OnAveKL is not "
            "known; onavekl(kind='bound') is infinite"
        )
    found = np.empty(0)
    for states in _STATES:
        found = _by_chain(draws, e, u, Sigma, rows, states, np.random.default_rng(seed))
        error = np.std(found, ddof=1) / np.sqrt(found.size)
        if error <= _ACCURACY * np.mean(found):
            break
    return found


def _by_chain(
    draws: Draws,
    e: float,
    u: float,
    Sigma: Covariance,
    rows: FloatArray,
    n_states: int,
    rng: np.random.Generator,
) -> FloatArray:
    z = draws.minimise(e, u)
    c = draws.field(e, u) - product(draws.C, z)
    full = Sigma.matrix()
    by_covariance, by_mean, least = np.empty((3, z.shape[1]))
    for k in range(z.shape[1]):
        on = z[:, k] != 0.0
        known = _Support(full, draws.C, on)
        mean = known.expected(draws.eta[on, k])
        off = c[~on, k] - mean
        velocities = known.draws(Sigma, n_states, rng)
        states, complete = box_chain(
            known.within, off - draws.lam, off + draws.lam,
            np.clip(draws.eta[~on, k] - mean, off - draws.lam, off + draws.lam), velocities,
        )  # fmt: skip
        if not (complete and np.isfinite(states).all()):
            raise ValueError(
                "the moments of the noise given the release could not be computed: a trajectory "
                "has too many reflections, or leaves the range of double precision; "
                "onavekl(kind='bound') is an upper bound"
            )
        in_box, without = (_spread(part, on, Sigma, rows) for part in (states, velocities))
        # The velocities have the law without the box, and take part of the Monte Carlo error away.
        less = float(np.sum(without * without) - np.sum(in_box * in_box)) / n_states
        least[k] = known.information
        by_covariance[k] = known.information + less + _squared_mean(in_box)
        whole = _spread(states + mean, on, Sigma, rows, draws.eta[on, k])
        by_mean[k] = _squared_mean(whole)
    found = _combined(by_covariance, by_mean)
    # The lower bound is also that of the leakage where chance puts the estimate below it.
    return found if np.mean(found) >= np.mean(least) else least


def _squared_mean(states: FloatArray) -> float:
    """‖E Wη‖², by products of states that are far apart."""
    far = np.tri(len(states), k=-_APART)
    return float(np.sum(far * (states @ states.T)) / np.sum(far))


def _combined(first: FloatArray, second: FloatArray) -> FloatArray:
    """The mixture of two estimates of the same number that varies least from draw to draw.

    The share in a draw is that of least variance in the others, so that no draw is biased.
    """
    gap = second - first
    share = np.zeros(first.size)
    for k in range(first.size) if first.size > 3 else ():
        others = np.arange(first.size) != k
        both = np.cov(first[others], gap[others])
        if both[1, 1] > 0.0:
            share[k] = min(max(-both[0, 1] / both[1, 1], 0.0), 1.0)
    return first + share * gap


class _Support:
    """The noise η ~ N(0, Σ) given its entries where `on` holds.

    `information` is tr(C_SS Σ_SS⁻¹)/N, and `within` the covariance of the other entries.
    """

    def __init__(self, Sigma: FloatArray, C: FloatArray, on: NDArray[np.bool_]) -> None:
        S, rest = np.flatnonzero(on), np.flatnonzero(~on)
        self._on = on
        self._gain = np.zeros((S.size, rest.size))
        self.information = 0.0
        if S.size:
            factor = cho_factor(Sigma[np.ix_(S, S)])
            self.information = float(np.trace(cho_solve(factor, C[np.ix_(S, S)]))) / on.size
            self._gain = cho_solve(factor, Sigma[np.ix_(S, rest)])
        self.within: FloatArray = Sigma[np.ix_(rest, rest)] - Sigma[np.ix_(rest, S)] @ self._gain

    def expected(self, eta: FloatArray) -> FloatArray:
        """Expectation of the other entries."""
        return self._gain.T @ eta

    def draws(self, noise: Covariance, count: int, rng: np.random.Generator) -> FloatArray:
        """Draws of the other entries around it, one per row."""
        free = noise.draw(rng, count)
        return np.ascontiguousarray((free[~self._on] - self._gain.T @ free[self._on]).T)


def _spread(
    states: FloatArray,
    on: NDArray[np.bool_],
    noise: Covariance,
    rows: FloatArray,
    active: FloatArray | float = 0.0,
) -> FloatArray:
    """Wη for states of the noise off the support, and `active` on it."""
    full = np.empty((on.size, len(states)))
    full[~on], full[on] = states.T, np.reshape(active, (-1, 1))
    return (rows.T @ noise.whiten(full)).T


def information_bound(C: GivenCovariance, noise: ColumnNoise) -> float:
    """tr(CΣ⁻¹)/N, infinite where the noise leaves a direction of the rows without cover."""
    if noise_level(noise) == 0.0:
        return float("inf")
    white = covariance_of(noise, C).whiten(C.root)
    return float(np.sum(white * white)) / C.n_columns


def replica_overlap(
    model: Model,
    lam: float,
    noise: ColumnNoise,
    e: float,
    u: float,
    n_draws: int,
    rng: np.random.Generator,
) -> float:
    """C/E: correlation of the residuals of two releases from the same data (see `overlap`)."""
    pair = [Draws(model, lam, noise, n_draws, rng) for _ in range(2)]
    shared = pair[0].C, pair[0].x0, pair[0].Cx0
    common = Draws(model, lam, noise, n_draws, rng).h
    own = [one.h for one in pair]
    for one in pair:
        one.C, one.x0, one.Cx0 = shared
    kappa = model.sigma_xi**2 * u * u / e
    history: list[float] = []
    for _ in range(_STEPS):
        errors = []
        for one, h in zip(pair, own, strict=True):
            one.h = np.sqrt(kappa) * common + np.sqrt(1.0 - kappa) * h
            errors.append(one.minimise(e, u) / model.alpha - u * one.x0)
        cross = np.einsum("ik,ik->k", errors[0], product(shared[0], errors[1])) / shared[0].shape[0]
        new = (model.sigma_xi**2 * u * u + float(np.mean(cross))) / e
        new = min(max(new, 0.0), 1.0)
        error = float(np.std(cross) / e / np.sqrt(n_draws))
        history.append(new)
        if abs(new - kappa) <= max(0.1 * error, 1e-4):
            return new
        if len(history) % 3 == 0:  # Aitken's extrapolation of the last three
            a, b, c = history[-3:]
            bend = c - 2.0 * b + a
            guess = a - (b - a) ** 2 / bend if abs(bend) > 1e-12 else c
            new = guess if 0.0 <= guess <= 1.0 and abs(guess - c) < 0.3 else c
        kappa = new
    return kappa


_QUARTER = 0.5 * math.pi
#: Reflections of one trajectory beyond which it ends early.
_REFLECTIONS = 1_000_000


@njit(cache=True, nogil=True, error_model="numpy")
def box_chain(
    covariance: FloatArray,
    low: FloatArray,
    high: FloatArray,
    start: FloatArray,
    velocities: FloatArray,
) -> tuple[FloatArray, bool]:
    """States after each of several quarter periods, one per row, and whether all are complete.

    For u ~ N(0, Σ) the flow u(t) = u cos t + w sin t with a velocity w ~ N(0, Σ) leaves the law
    unchanged. Where an entry reaches a side of its box, the velocity is reflected in the metric of
    Σ⁻¹,

        w ← w − 2 (w_j/Σ_jj) Σ_:j,

    which leaves its length and the truncated law unchanged (Pakman and Paninski, 2014). Every step
    is accepted, and correlations between the entries do not slow it down: without sides, one
    quarter of a period is an independent draw.

    `covariance` is Σ, `low` and `high` the box, and `start` a point in it. If that has the
    truncated law, so has every state. `velocities` are draws from N(0, Σ), one row per trajectory.
    """
    u = start.copy()
    states = np.empty_like(velocities)
    n = u.size
    for k in range(velocities.shape[0]):
        w = velocities[k].copy()
        left = _QUARTER
        reflections = 0
        while True:
            time, who = left, -1
            for j in range(n):
                size2 = u[j] * u[j] + w[j] * w[j]
                up = high[j] <= 0.0 or size2 > high[j] * high[j]
                down = low[j] >= 0.0 or size2 > low[j] * low[j]
                if size2 == 0.0 or not (up or down):
                    continue
                size, phase = math.sqrt(size2), math.atan2(w[j], u[j])
                # u_j(t) = size·cos(t − phase): each side is reached from inside once per period.
                if up:
                    t = phase - math.acos(min(1.0, max(-1.0, high[j] / size)))
                    t = t + 2.0 * math.pi if t < 0.0 else t
                    if t < time:
                        time, who = t, j
                if down:
                    t = phase + math.acos(min(1.0, max(-1.0, low[j] / size)))
                    t = t + 2.0 * math.pi if t < 0.0 else t
                    t = t - 2.0 * math.pi if t >= 2.0 * math.pi else t
                    if t < time:
                        time, who = t, j
            c, s = math.cos(time), math.sin(time)
            for j in range(n):
                before = u[j]
                u[j] = before * c + w[j] * s
                w[j] = w[j] * c - before * s
            if who < 0:
                break
            left -= time
            factor = 2.0 * w[who] / covariance[who, who]
            for j in range(n):
                w[j] -= factor * covariance[who, j]
            reflections += 1
            if reflections == _REFLECTIONS:
                return states, False
        states[k] = u
    return states, True
