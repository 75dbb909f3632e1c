"""Exact densities of a release with noise that is correlated over the columns.

Two kinds of noise whose box probabilities are one-dimensional integrals, at any number of columns:
a Markov chain along the columns, and groups of columns with one common factor each. Nothing here
uses the package's own Monte Carlo.
"""

from dataclasses import replace

import numpy as np
from scipy.linalg import cho_factor, cho_solve
from scipy.special import log_ndtr, logsumexp

import privasso as pv
from privasso.model import AutoRegressive, Blocks, Factors
from privasso.noise import MatrixPower


class MarkovNoise:
    """η_j = ρ_j η_{j−1} + N(0, q_j): log mass of {η_S = c_S − λ sgn, |c_j − η_j| ≤ λ off S}."""

    def __init__(self, Sigma, nodes=40):
        d = np.diag(Sigma)
        self.first = d[0]
        self.rho = np.diag(Sigma, 1) / d[:-1]
        self.q = d[1:] - self.rho**2 * d[:-1]
        assert np.allclose(Sigma[0, 2], self.rho[0] * self.rho[1] * d[0])  # Markov indeed
        self.x, self.w = np.polynomial.legendre.leggauss(nodes)

    def log_mass(self, c, lam, signs):
        """Of many c, the rows of an array, by a recursion along the columns."""
        rows, N = c.shape
        total = np.zeros(rows)
        before = mass = np.empty((rows, 1))
        for j in range(N):
            if signs[j]:
                at, weight = (c[:, j] - lam * signs[j])[:, None], np.ones((rows, 1))
            else:
                at, weight = c[:, j, None] + lam * self.x, np.tile(lam * self.w, (rows, 1))
            if j == 0:
                value = np.exp(-0.5 * at**2 / self.first) / np.sqrt(2 * np.pi * self.first)
            else:
                gap = at[:, :, None] - self.rho[j - 1] * before[:, None, :]
                kernel = np.exp(-0.5 * gap**2 / self.q[j - 1]) / np.sqrt(2 * np.pi * self.q[j - 1])
                value = np.einsum("rij,rj->ri", kernel, mass)
            mass, before = value * weight, at
            size = mass.sum(axis=1)
            total += np.log(size)
            mass = mass / size[:, None]
        return total


class FactorNoise:
    """η_i = √a ε_i + l_i t_g for column i of group g: one integral over t per group."""

    def __init__(self, a, loadings, groups, nodes=400):
        self.a, self.l, self.groups = a, loadings, groups
        self.t = np.linspace(-9.0, 9.0, nodes)

    def matrix(self):
        same = self.groups[:, None] == self.groups
        return self.a * np.eye(self.l.size) + np.where(same, np.outer(self.l, self.l), 0.0)

    def log_mass(self, c, lam, signs):
        total = np.zeros(len(c))
        for g in np.unique(self.groups):
            here = self.groups == g
            S, rest = np.flatnonzero(here & (signs != 0)), np.flatnonzero(here & (signs == 0))
            # t given η_S is normal; the density of η_S is normal too.
            loads, eta = self.l[S], c[:, S] - lam * signs[S]
            precision = 1.0 + loads @ loads / self.a
            mean = eta @ loads / self.a / precision
            square = np.sum(eta**2, axis=1) / self.a - precision * mean**2
            total += -0.5 * (square + np.log(precision) + S.size * np.log(2 * np.pi * self.a))
            t = mean[:, None] + self.t / np.sqrt(precision)
            log_weight = -0.5 * self.t**2 + np.log((self.t[1] - self.t[0]) / np.sqrt(2 * np.pi))
            inside = np.zeros_like(t)
            for j in rest:
                high = (c[:, j, None] + lam - self.l[j] * t) / np.sqrt(self.a)
                low = (c[:, j, None] - lam - self.l[j] * t) / np.sqrt(self.a)
                flip = low > 0
                high, low = np.where(flip, -low, high), np.where(flip, -high, low)
                upper = log_ndtr(high)
                inside += upper + np.log1p(-np.exp(log_ndtr(low) - upper))
            total += logsumexp(inside + log_weight, axis=1)
        return total


def exact_divergence(model, lam, Sigma, density, reps, records, seed=0):
    """OnAveKL by Monte Carlo of the exact density: mean and standard error.

    KL(D ‖ D∪a) over new records and KL(D∪a ‖ D) over members: a replaced record is both.
    """
    rng = np.random.default_rng(seed)
    N = model.covariance.n_columns
    m = round(model.alpha * N)
    larger = replace(model, alpha=(m + records) / N)
    root = np.linalg.cholesky(Sigma)
    means = []
    for _ in range(reps):
        s = larger.sample(rng=rng)
        F, y = s.F[:m], s.y[:m]
        x = pv.solve(F, y, lam, root @ rng.standard_normal(N)).x
        S, signs = np.flatnonzero(x), np.sign(x)
        gram = cho_factor(F[:, S].T @ F[:, S])
        c = F.T @ (y - F @ x)
        base = density.log_mass(c[None], lam, signs)[0]
        half = []
        for rows, labels, sign in (
            (s.F[m:], s.y[m:], 1.0),
            (*(part[: min(m, records)] for part in (F, y)), -1.0),
        ):
            leverage = np.einsum("rs,sr->r", rows[:, S], cho_solve(gram, rows[:, S].T))
            moved = c + sign * (labels - rows @ x)[:, None] * rows
            ratio = np.log1p(sign * leverage) + density.log_mass(moved, lam, signs) - base
            half.append(-np.mean(ratio))
        means.append(sum(half))
    return np.mean(means), np.std(means, ddof=1) / np.sqrt(reps)


def along_columns(sigma):
    """Noise Σ ∝ C, and its density, for columns whose correlations are those of a Markov chain."""

    def make(C):
        shape = MatrixPower(sigma, 1.0)
        return shape, MarkovNoise(shape.covariance(C).matrix())

    return make


def by_groups(sigma, gamma):
    """Noise Σ ∝ C^γ, and its density, for groups that share one factor: C^γ has that form too."""

    def make(C):
        shape = MatrixPower(sigma, gamma)
        Sigma = shape.covariance(C).matrix()
        groups = np.argmax(np.abs(C) > 1e-12, axis=1)
        common = np.array([Sigma[g, g + 1] * np.sign(C[g, g + 1]) for g in groups])
        loadings = np.sqrt(common) * np.sign(C[groups, np.arange(len(C))])
        density = FactorNoise(Sigma[0, 0] - common[0], loadings, groups)
        assert np.allclose(density.matrix(), Sigma, atol=1e-12)
        return shape, density

    return make


ONE = pv.Constant(1.0)
#: Name, columns, scales, α, λ and noise.
SHARED = [
    ("AR .7, C", AutoRegressive(0.7), ONE, 0.5, 0.2, along_columns(0.1)),
    ("blocks of 20, .7, C²", Blocks(20, 0.7), ONE, 0.5, 0.2, by_groups(0.1, 2.0)),
    ("AR .9, log-normal, C", AutoRegressive(0.9), pv.LogNormal(0.0, 0.3), 0.5, 0.2,
     along_columns(0.1)),
    ("blocks of 10, .6, C^½", Blocks(10, 0.6), ONE, 1.5, 0.3, by_groups(0.2, 0.5)),
    ("1 factor, .5, C²", Factors(1, 0.5), ONE, 0.5, 0.2, by_groups(0.1, 2.0)),
    ("blocks of 20, .7, C^½", Blocks(20, 0.7), ONE, 0.8, 0.2, by_groups(0.15, 0.5)),
]  # fmt: skip
