"""The strongest membership attack on a released estimate, predicted without data.

The attacker knows all records but one, a = (f, y_a), and asks whether it was among the data. In the
limit of many columns the log likelihood ratio of the released x for "in" against "out" is

    ℓ = log(1+V) + A·r − ½ Ī r²,      r = y_a − fᵀx,

with A = Σ_i f_i s_i, s the score of the density of x in c = Fᵀ(y − Fx) (`log_density`). For a given
record, r has the mean r̄ and the variance s² over the noise, A has mean 0 and variance Ī, and their
covariance is −V, the only value at which E e^ℓ = 1 under "out". Then

    out:  r ~ N(r̄, s²),                ℓ | r ~ N(m(r), k²r²),
    in:   r ~ N(r̄/(1+V), s²/(1+V)²),   ℓ | r ~ N(m(r) + k²r², k²r²),

    m(r) = log(1+V) − V r(r − r̄)/s² − ½ Ī r²,    k² = Ī − V²/s².

Over all records r̄ ~ N(0, C) and r̄² + s² has the mean E: C is the overlap of two releases with
independent noise (`overlap`). Averaged over records, r̄ = 0 and s² = E. Here r is in units of √E
and J = Ī·E = P(1+V)² with the component-wise OnAveKL P.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import ArrayLike
from scipy.special import ndtr, ndtri

from privasso._validation import real_array
from privasso.theory._system import FloatArray, System

_SHARED_REACH = 9.0
_SHARED_NODES = 8
_OVERLAP_STEPS = 200
_SETTLED = 1e-9
#: A threshold of so many deviations is never passed: the chance is below the smallest double.
_NEVER = 40.0
_INV_ROOT_2PI = 1.0 / math.sqrt(2.0 * math.pi)


def overlap(s: System, E: float, V: float) -> float:
    """C at a fixed point (E, V) without clipping and ridge.

    Two minimisers x¹, x² of the same data have residuals on a new record with the covariance

        C = σ_ξ² + E_v[ v·E[(x¹ − x₀)(x² − x₀)] ].

    Their fields share the Gaussian part of variance C/(αv) and the signal; the rest of the
    variance, (E − C)/(αv) + Σ²σ_η², is their own. With g(h) = E soft(h + τZ, θ), τ² that rest and h
    the shared part, of variance S² = k + C/(αv) where the coefficient is zero (k = 0) or not
    (k = 1),

        E[(x¹ − x₀)(x² − x₀)] = (1−ρ) E g(h₀)² + ρ (E g(h₁)² − 2P₁ + 1),

    P₁ the probability that a coefficient of the signal is selected. C is a fixed point of this map.

    The map rises from C = 0, where two releases share the signal alone, to at most E, and its
    slope falls below one at the fixed point; Aitken's extrapolation makes the iteration short.
    """
    alpha, rho, lam, label_variance = s.alpha, s.rho, s.lam, s.xi2
    v, w, noise = s.v, s.w, s.power * s.profile
    # Columns so small that they are never selected keep their signal as an error, and nothing else.
    scale, spread = lam * (1.0 + V), np.sqrt(alpha * v * (E + alpha * v) + (1.0 + V) ** 2 * noise)
    seen = scale <= _NEVER * spread
    unseen = rho * float(w[~seen] @ v[~seen])
    v, w, noise = v[seen], w[seen], noise[seen]
    Sigma = (1.0 + V) / (alpha * v)
    theta = lam * Sigma
    total = E / (alpha * v) + Sigma**2 * noise
    selected = 2.0 * ndtr(-theta / np.sqrt(1.0 + total))

    def step(C: float) -> float:
        shared = C / (alpha * v)
        own = np.sqrt(np.maximum(total - shared, 0.0))
        zero = _mean_square(np.sqrt(shared), own, theta)
        one = _mean_square(np.sqrt(1.0 + shared), own, theta)
        each = (1.0 - rho) * zero + rho * (one - 2.0 * selected + 1.0)
        return min(label_variance + unseen + float(w @ (v * each)), E)

    C = label_variance
    for _ in range(_OVERLAP_STEPS):
        first = step(C)
        second = step(first)
        bend = second - 2.0 * first + C
        guess = second if abs(bend) < 1e-300 else C - (first - C) ** 2 / bend
        found = guess if second <= guess <= E else second
        if abs(found - C) <= _SETTLED * E:
            return float(found)
        C = found
    return float(C)


def _mean_square(spread: FloatArray, own: FloatArray, theta: FloatArray) -> FloatArray:
    """E g(h)², h ~ N(0, spread²), by Gauss–Legendre in panels that end where g bends."""
    size = np.maximum(spread, 1e-150)
    x, weight = np.polynomial.legendre.leggauss(_SHARED_NODES)
    bends = theta[:, None] + own[:, None] * np.array([-8.0, -3.0, -1.0, 0.0, 1.0, 3.0, 8.0])
    steps = np.broadcast_to(np.linspace(0.0, _SHARED_REACH, 10), (size.size, 10))
    edges = np.sort(np.clip(np.hstack([steps, bends / size[:, None]]), 0.0, _SHARED_REACH), axis=1)
    half = 0.5 * np.diff(edges, axis=1)[:, :, None]
    z = edges[:, :-1, None] + half * (1.0 + x)
    value = _mean_soft(size[:, None, None] * z, own[:, None, None], theta[:, None, None])
    density = np.exp(-0.5 * z * z) * _INV_ROOT_2PI
    return 2.0 * np.sum(half * weight * density * value**2, axis=(1, 2))


def _mean_soft(h: FloatArray, own: FloatArray, theta: FloatArray) -> FloatArray:
    """g(h) = E soft(h + own·Z, θ)."""
    tau = np.maximum(own, 1e-150)
    above, below = (h - theta) / tau, (-h - theta) / tau
    return tau * (_ramp(above) - _ramp(below))


def _ramp(t: FloatArray) -> FloatArray:
    """E (t + Z)₊ = tΦ(t) + φ(t)."""
    with np.errstate(over="ignore"):
        return t * ndtr(t) + _INV_ROOT_2PI * np.exp(-0.5 * np.minimum(t * t, 1e4))


#: Residuals beyond so many deviations are left out.
_REACH = 12.0
#: ℓ has no spread where r = 0. Panels shrink towards it by this factor, so many times.
_SHRINK, _PANELS = 0.4, 30
_NODES = 8
#: Steps of the search for a threshold.
_STEPS = 70
_LARGEST = 1e15
#: Less information than this tells nothing: differences of ℓ are beyond its rounding errors.
_NOTHING = 1e-24
#: Points whose advantages are computed at once.
_BATCH = 256


@dataclass(frozen=True)
class Attack:
    """The most powerful test for membership, by someone who knows everything but the noise.

    It describes an average under the model, over the noise and, unless it is about one record, over
    records. It bounds nothing for any one person.

    Attributes
    ----------
    V : float
        Variance parameter of the fixed point.
    information : float
        J = Ī·E, the Fisher information in one residual of usual size.
    overlap : float
        C/E: the part of the mean squared residual that does not change from one draw of the noise
        to another.
    residual : float or None
        Mean residual r̄/√E of the record; None for the average over records.
    """

    V: float
    information: float
    overlap: float
    residual: float | None = None
    _cache: dict[str, float] = field(default_factory=dict, repr=False, compare=False)

    @property
    def auc(self) -> float:
        """Probability that the score of a member exceeds that of a non-member."""
        if "auc" not in self._cache:
            self._cache["auc"] = self._auc()
        return self._cache["auc"]

    @property
    def advantage(self) -> float:
        """Largest true-positive rate minus false-positive rate, the total variation distance."""
        false, true = self.rates(0.0)
        return float(true - false)

    def rates(self, threshold: ArrayLike) -> tuple[FloatArray, FloatArray]:
        """False- and true-positive rate of the rule "in if ℓ exceeds the threshold"."""
        at = real_array("threshold", threshold, finite=False)
        if math.isinf(self.information):
            return np.zeros(at.shape), np.ones(at.shape)
        if self.information <= _NOTHING:  # ℓ = 0
            passed = np.where(at < 0.0, 1.0, 0.0)
            return passed, passed.copy()
        out, into = (_exceeds(side, at.reshape(-1, 1)) for side in self._sides())
        return out.reshape(at.shape), into.reshape(at.shape)

    def tpr(self, fpr: ArrayLike) -> FloatArray:
        """True-positive rate at given false-positive rates between 0 and 1."""
        wanted = real_array("fpr", fpr)
        if np.any((wanted < 0.0) | (wanted > 1.0)):
            raise ValueError("fpr must lie between 0 and 1")
        inside = (wanted > 0.0) & (wanted < 1.0)
        found = np.where(wanted >= 1.0, 1.0, 0.0)
        if math.isinf(self.information):
            return np.ones(wanted.shape)
        if self.information <= _NOTHING:  # a guess that is right as often as it is wrong
            return np.where(inside, wanted, found)
        found[inside] = self.rates(self._thresholds(wanted[inside]))[1]
        return found

    def of_record(self, residual: float) -> Attack:
        """The attack on a record with this mean residual, in units of √E."""
        return Attack(self.V, self.information, self.overlap, float(residual))

    def of_quantile(self, share: float) -> Attack:
        """The attack on a record that is more exposed than this share of all records."""
        if not 0.0 <= share < 1.0:
            raise ValueError(f"share must be at least 0 and below 1, not {share!r}")
        return self.of_record(math.sqrt(self.overlap) * float(ndtri(0.5 + 0.5 * share)))

    def _thresholds(self, fpr: FloatArray) -> FloatArray:
        """Thresholds at which the false-positive rate is as given, by bisection."""
        low, high = np.full(fpr.shape, -1.0), np.ones(fpr.shape)
        for _ in range(_STEPS):
            wide = (self.rates(low)[0] < fpr) & (low > -_LARGEST)
            narrow = (self.rates(high)[0] > fpr) & (high < _LARGEST)
            if not (wide.any() or narrow.any()):
                break
            low, high = np.where(wide, 4.0 * low, low), np.where(narrow, 4.0 * high, high)
        for _ in range(_STEPS):
            middle = 0.5 * (low + high)
            above = self.rates(middle)[0] > fpr
            low, high = np.where(above, middle, low), np.where(above, high, middle)
        return 0.5 * (low + high)

    def _auc(self) -> float:
        if math.isinf(self.information):
            return 1.0
        if self.information <= _NOTHING:
            return 0.5
        out, into = self._sides()
        gap = into.mean[:, None] - out.mean[None, :]
        spread = np.hypot(into.spread[:, None], out.spread[None, :])
        with np.errstate(over="ignore"):
            higher = ndtr(gap / np.maximum(spread, 1e-300))
        return min(float(into.weight @ higher @ out.weight), 1.0)

    def _sides(self) -> tuple[_Side, _Side]:
        """ℓ under "out" and under "in", as mixtures of normal laws over the residual."""
        V, J = self.V, self.information
        whole = self.residual is None
        centre = 0.0 if self.residual is None else self.residual
        # The covariance of A and r, −V, is at most √(J·variance), also where rounding hides that
        # releases differ.
        variance = 1.0 if whole else max(1.0 - self.overlap, V * V / J)
        spread2 = J - V * V / variance
        if spread2 < -1e-6 * J:
            raise ValueError(
                "the fixed point is too close to instability for a prediction of the attack"
            )
        spread2 = max(spread2, 0.0)
        deviation = math.sqrt(variance)

        def side(shrunk: float, shift: float) -> _Side:
            z, weight = _nodes(-centre / deviation)
            r = (centre + deviation * z) / shrunk
            mean = math.log1p(V) - V * r * (r - centre) / variance - 0.5 * J * r * r
            return _Side(mean + shift * spread2 * r * r, math.sqrt(spread2) * np.abs(r), weight)

        return side(1.0, 0.0), side(1.0 + V, 1.0)


def advantages(V: FloatArray, information: FloatArray) -> FloatArray:
    """Advantage of the attack on all records at many points, as `Attack.advantage`."""
    z, weight = _nodes(0.0)
    found = np.ones(V.shape)
    for part in np.array_split(np.flatnonzero(np.isfinite(information)), -(-V.size // _BATCH) or 1):
        v, J = V[part, None], information[part, None]
        k = np.sqrt(np.maximum(J - v * v, 0.0))
        sides = []
        for shrunk, shift in ((1.0, 0.0), (1.0 + v, 1.0)):
            r = z / shrunk
            mean = np.log1p(v) + (shift * k * k - v - 0.5 * J) * r * r
            sides.append(ndtr(mean / np.maximum(k * np.abs(r), 1e-300)) @ weight)
        found[part] = sides[1] - sides[0]
    return found


@dataclass(frozen=True, eq=False)
class _Side:
    """A mixture of normal laws: means, deviations and weights."""

    mean: FloatArray
    spread: FloatArray
    weight: FloatArray


def _exceeds(side: _Side, threshold: FloatArray) -> FloatArray:
    """P(ℓ > threshold), for a column of thresholds."""
    return ndtr((side.mean - threshold) / np.maximum(side.spread, 1e-300)) @ side.weight


def _nodes(zero: float) -> tuple[FloatArray, FloatArray]:
    """Nodes and weights of a standard normal law, dense near `zero`, where residuals vanish."""
    near = _SHRINK ** np.arange(_PANELS)
    edges = np.concatenate([np.linspace(-_REACH, _REACH, 25), zero - near, [zero], zero + near])
    edges = np.unique(np.clip(edges, -_REACH, _REACH))
    x, w = np.polynomial.legendre.leggauss(_NODES)
    half = 0.5 * np.diff(edges)
    z = (edges[:-1] + half)[:, None] + half[:, None] * x
    density = np.exp(-0.5 * z * z) / math.sqrt(2.0 * math.pi)
    return z.ravel(), (half[:, None] * w * density).ravel()
