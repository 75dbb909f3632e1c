"""A likelihood-ratio attack on released coefficients, with their exact density in N dimensions.

The attacker knows the two data sets and all settings. From x and a data set he finds the noise:
η_i = −g_i(x) − λ sgn x_i where x_i ≠ 0, and −g_i(x) ± λ encloses η_i where x_i = 0, with g the
gradient of the smooth part. So the density of x is that of the noise, times the determinant of the
Hessian of the coefficients that are not zero, times the probability of the intervals of the others.
"""

from dataclasses import dataclass, replace

import numpy as np
from scipy import stats
from scipy.special import log_ndtr

import privasso as pv
from privasso.planning import calibrate_objective
from privasso.problem import Huber
from privasso.queries import EMPTIED, LABEL_REPLACED, ObjectiveNoise, bit_source
from privasso.queries._minimiser import perturbed_minimiser
from privasso.solvers import solve_clipped

PAIRS = {"records": EMPTIED, "labels": LABEL_REPLACED}
#: Runs that are solved at once.
BATCH = 2000
#: Thresholds of the log likelihood ratio; they are fixed beforehand.
THRESHOLDS = np.linspace(0.0, 3.0, 13)
#: Probability that some bound of an attack is not valid.
LEVEL = 1e-3


@dataclass(frozen=True)
class Mechanism:
    """Rows, labels and settings: all that decides the law of the coefficients."""

    F: np.ndarray
    y: np.ndarray
    lam: float
    kappa: float
    ridge: float
    sigma: float

    def gradient(self, x):
        """g(x) for a batch, and which residuals are not clipped."""
        residual = self.y - x @ self.F.T
        g = self.ridge * x - np.clip(residual, -self.kappa, self.kappa) @ self.F
        return g, np.abs(residual) < self.kappa

    def hessian(self, inside):
        m, n = self.F.shape
        products = (self.F[:, :, None] * self.F[:, None, :]).reshape(m, n * n)
        H = (inside.astype(float) @ products).reshape(-1, n, n)
        return H + self.ridge * np.eye(n)

    def objective(self, x, eta):
        r = np.abs(self.y - x @ self.F.T)
        huber = np.where(r < self.kappa, 0.5 * r**2, self.kappa * (r - 0.5 * self.kappa)).sum(
            axis=1
        )
        rest = self.lam * np.abs(x) + 0.5 * self.ridge * x**2 + eta * x
        return huber + rest.sum(axis=1)

    def log_density(self, x):
        """Exact, up to a constant that is the same for all data sets."""
        found = [self._log_density(part) for part in np.array_split(x, -(-len(x) // BATCH))]
        return np.concatenate(found)

    def _log_density(self, x):
        g, inside = self.gradient(x)
        shown = (x != 0.0) | (self.lam == 0.0)
        eta = (-g - self.lam * np.sign(x)) / self.sigma
        out = np.where(shown, -0.5 * eta**2 - 0.5 * np.log(2.0 * np.pi) - np.log(self.sigma), 0.0)
        low, high = (-g - self.lam) / self.sigma, (-g + self.lam) / self.sigma
        # log(Φ(high) − Φ(low)), on the side where both are small.
        turned = low > 0.0
        low, high = np.where(turned, -high, low), np.where(turned, -low, high)
        with np.errstate(divide="ignore", invalid="ignore"):
            upper = log_ndtr(high)
            out += np.where(shown, 0.0, upper + np.log(-np.expm1(log_ndtr(low) - upper)))
        both = shown[:, :, None] & shown[:, None, :]
        H = np.where(both, self.hessian(inside), np.eye(x.shape[1]))
        return out.sum(axis=1) + np.linalg.slogdet(H)[1]

    def minimisers(self, eta):
        """Exact minimisers for a batch of η, by a semismooth Newton method: the fast twin."""
        parts = np.array_split(eta, -(-len(eta) // BATCH))
        return np.concatenate([self._minimisers(part) for part in parts])

    def _minimisers(self, eta):
        n = self.F.shape[1]
        x, left = np.zeros_like(eta), np.arange(len(eta))
        for k in range(40):
            here = x[left]
            g, inside = self.gradient(here)
            g = g + eta[left]
            H = self.hessian(inside)
            moved = here - g / np.diagonal(H, axis1=1, axis2=2)
            shown = np.abs(moved) * np.diagonal(H, axis1=1, axis2=2) > self.lam
            wrong = np.where(shown, g + self.lam * np.sign(moved), self.ridge * here)
            far = np.max(np.abs(wrong), axis=1) > 1e-11 * self.sigma
            if not far.any():
                return x
            left, here, shown, wrong, H = (a[far] for a in (left, here, shown, wrong, H))
            gone = np.where(shown, 0.0, here)
            right = np.where(shown, -wrong + np.einsum("bij,bj->bi", H, gone), -here)
            both = shown[:, :, None] & shown[:, None, :]
            change = np.linalg.solve(np.where(both, H, np.eye(n)), right[:, :, None])[:, :, 0]
            # Full steps may go round in circles; the best of some shorter ones breaks them.
            steps = np.array([1.0, 0.6, 0.3, 0.1, 0.02]) if k > 5 else np.ones(1)
            tried = here + steps[:, None, None] * change
            best = np.argmin([self.objective(one, eta[left]) for one in tried], axis=0)
            x[left] = tried[best, np.arange(left.size)]
        # The few that go round in circles for ever are left to the solver of the library.
        assert left.size < 0.01 * len(eta)
        for i in left:
            x[i] = solve_clipped(
                self.F, self.y, self.lam, eta[i], kappa=self.kappa, ridge=self.ridge
            ).x
        return x

    def twin(self, count, rng):
        """Coefficients of many runs with exact minimisers and floating-point noise."""
        return self.minimisers(self.sigma * rng.standard_normal((count, self.F.shape[1])))

    def true(self, count, noise: ObjectiveNoise, rng):
        """Coefficients of many runs of the program itself, its noise on the output included."""
        bits, weights = bit_source(rng), np.ones(self.F.shape[1])
        runs = (
            perturbed_minimiser(self.F, self.y, self.lam, noise, bits, penalty_weights=weights)
            for _ in range(count)
        )
        return np.array(list(runs))


@dataclass(frozen=True)
class Pair:
    """Two neighbouring data sets under one claim."""

    first: Mechanism
    second: Mechanism
    noise: ObjectiveNoise
    kind: str

    def faulty(self, **changes):
        """The same claim, but a mechanism that is run in another way."""
        return replace(
            self,
            first=replace(self.first, **changes),
            second=replace(self.second, **changes),
        )

    def ratios(self, x):
        return self.first.log_density(x) - self.second.log_density(x)

    def attacked(self, from_first, from_second):
        """The largest ε̂/ε along the claimed profile, for the two orders of the pair."""
        one, two = self.ratios(from_first), self.ratios(from_second)
        return (
            largest_share(one, two, self.noise, self.kind),
            largest_share(-two, -one, self.noise, self.kind),
        )


def limits(score, threshold, level):
    """Clopper–Pearson limits of the probability that the score exceeds the threshold."""
    hits, count = int(np.sum(score > threshold)), score.size
    low = stats.beta.ppf(level, hits, count - hits + 1) if hits else 0.0
    high = stats.beta.ppf(1.0 - level, hits + 1, count - hits) if hits < count else 1.0
    return float(low), float(high)


def largest_share(here, there, noise, kind):
    """The largest ratio of a refuted ε̂ to the claimed ε, over points (ε, δ) with δ ≥ 0.01.

    ε̂ = log((P(A) − δ)/Q(A)) for the sets A on which the likelihood ratio exceeds a threshold, with
    limits of P(A) and Q(A) that hold for all thresholds and both orders at once.
    """
    level = LEVEL / (4 * THRESHOLDS.size)
    P = np.array([limits(here, t, level)[0] for t in THRESHOLDS])
    Q = np.array([limits(there, t, level)[1] for t in THRESHOLDS])
    epsilons = np.linspace(0.2, 6.0, 117)
    deltas = pv.objective_delta(epsilons, noise.c, noise.t, kind)
    shares = [
        np.max(np.log(np.maximum(P - delta, 1e-300) / Q)) / epsilon
        for epsilon, delta in zip(epsilons, deltas, strict=True)
        if delta >= 0.01
    ]
    return float(max(shares))


#: Label of the first record in units of κ, the push of others and λ in units of σ, where searches
#: in one dimension find the largest divergence.
TILTED = {"records": (0.73, 2.66, 0.18), "labels": (0.46, 2.23, 0.18)}


def neighbours(kind, budget, t, *, kappa=0.1, radius=2.0, shape="alone", lam=0.0, seed=0):
    """Two neighbouring data sets of 200 records and 20 columns, for a budget (ε, δ).

    The first record is emptied, or gets a label so low that its residual is always clipped.

    Shapes: in "alone" no other record touches the direction of the first, which is no axis, and its
    residual is in the middle of the noise. In "tilted" that direction is the first axis, and others
    whose residuals are always clipped push along it. In "mixed" the rows are random.
    """
    m, n = 200, 20
    rng = np.random.default_rng(seed)
    epsilon, delta = budget
    pair, given = PAIRS[kind], {"loss": Huber(kappa), "radius": radius, "t": t, "n_rows": m}
    noise = calibrate_objective(epsilon, delta, pair, **given)
    F = rng.standard_normal((m, n)) * np.exp(rng.normal(0.0, 0.5, n))
    direction = rng.standard_normal(n) if shape == "alone" else np.eye(n)[0]
    direction /= np.linalg.norm(direction)
    if shape != "mixed":
        F -= np.outer(F @ direction, direction)
    F *= radius * rng.uniform(0.3, 1.0, m)[:, None] / np.linalg.norm(F, axis=1)[:, None]
    y = 0.05 * F @ rng.standard_normal(n) + 2.0 * kappa * rng.standard_normal(m)
    F[0], y[0] = radius * direction, 0.0
    if shape == "tilted":
        place, push, lam = TILTED[kind]
        lam *= noise.sigma
        whole, part = divmod(push * noise.sigma / (kappa * radius), 1.0)
        pushing = slice(1, 2 + int(whole))
        F[pushing], y[pushing] = F[0], -1e3 * kappa
        F[1] *= part
        y[0] = place * kappa
    G, other = F.copy(), y.copy()
    if kind == "labels":
        other[0] = -1e3 * kappa
    else:
        G[0], other[0] = 0.0, 0.0
    settings = (lam, kappa, noise.ridge, noise.sigma)
    return Pair(Mechanism(F, y, *settings), Mechanism(G, other, *settings), noise, kind)
