"""Oracles of the theory: brute-force integration, and sampling of the exact privacy loss.

The integration follows the definitions of state evolution by numpy alone: every average is taken
over the scale, the signal and the noise, with no Stein lemma and no merged Gaussians. Kinks of the
soft threshold are ends of the pieces, so each piece is smooth and Gauss–Legendre converges.
"""

from dataclasses import replace

import numpy as np
import pytest

import privasso as pv
from privasso import Constant, LogNormal, Uniform


def gauss(low, high, n):
    x, w = np.polynomial.legendre.leggauss(n)
    low, high = np.asarray(low)[..., None], np.asarray(high)[..., None]
    return low + 0.5 * (high - low) * (1 + x), 0.5 * (high - low) * w


def normal(x):
    return np.exp(-0.5 * x * x) / np.sqrt(2 * np.pi)


def scale_rule(law):
    """Squared scales and weights from the density of the law."""
    if isinstance(law, Constant):
        return np.array([law.value**2]), np.array([1.0])
    if isinstance(law, Uniform):
        edges = law.low + (law.high - law.low) * np.array([0.0, 0.05, 0.2, 0.5, 1.0])
        s, w = gauss(edges[:-1], edges[1:], 24)
        return s.ravel() ** 2, w.ravel() / (law.high - law.low)
    assert isinstance(law, LogNormal)
    z, w = gauss(np.arange(-9.0, 13.0), np.arange(-8.0, 14.0), 8)
    return np.exp(2 * (law.mu + law.sigma * z)).ravel(), (w * normal(z)).ravel()


def variances(design, v, w):
    power = v**design.gamma
    return design.sigma**2 * power / np.sum(w * power)


def clipped_slopes(E, V, kappa):
    """E[g'(r)] and E[g(r)²] of the clipped residual g(r) = clip(r/(1+V), ±κ), r ~ N(0, E)."""
    kink = min(kappa * (1 + V) / np.sqrt(E), 9.0)
    edges = [0.0, 0.5 * kink, kink, 0.5 * (kink + 12.0), 12.0]
    z, weight = gauss(edges[:-1], edges[1:], 60)
    mass = 2 * weight * normal(z)
    g = np.minimum(z * np.sqrt(E) / (1 + V), kappa)
    return np.sum(mass[:2]) / (1 + V), np.sum(mass * g**2)


def step(model, lam, design, E, V, kappa=np.inf, ridge=None):
    """One iteration (E, V) -> (E, V, rho_hat), straight from the definition."""
    v, w = scale_rule(model.scales)
    slope, power = clipped_slopes(E, V, kappa)
    Sigma = 1 / (model.alpha * v * slope)
    theta = lam * Sigma
    spread = np.sqrt(power / (model.alpha * v * slope**2) + Sigma**2 * variances(design, v, w))
    shrink = 1 + (0.0 if ridge is None else ridge(v)) * Sigma

    def errors(x0):
        """E[(x0 - soft(x0 + spread·g, theta))²] and P(active), given x0 (v along axis 0)."""
        t, s = theta[:, None], spread[:, None]
        lower, upper = (-t - x0) / s, (t - x0) / s
        far = 9.0
        ends = [np.full_like(lower, -far), np.clip(lower, -far, far), np.clip(upper, -far, far)]
        ends.append(np.full_like(lower, far))
        loss = np.zeros_like(lower)
        active = np.zeros_like(lower)
        for k, shift in enumerate((t, None, -t)):
            g, weight = gauss(ends[k], ends[k + 1], 40)
            mass = weight * normal(g)
            m = x0[..., None] + s[..., None] * g
            x = np.zeros_like(m)
            if shift is not None:
                x = (m + shift[..., None]) / np.broadcast_to(shrink, v.shape)[:, None, None]
            loss += np.sum(mass * (x0[..., None] - x) ** 2, axis=-1)
            if shift is not None:
                active += np.sum(mass, axis=-1)
        return loss, active

    zero_loss, zero_active = errors(np.zeros((1, 1)))
    # Given x0 the error is smooth on the scale of the noise, which the pieces resolve.
    edges = np.array([0.0, 0.05, 0.1, 0.2, 0.4, 0.7, 1.0, 1.5, 2.0, 3.0, 4.0, 6.0, 9.0])
    x0, weight = gauss(edges[:-1], edges[1:], 12)
    x0, weight = x0.ravel(), 2 * (weight * normal(x0)).ravel()
    signal_loss, signal_active = errors(x0[None, :])
    rho = model.rho
    loss = (1 - rho) * zero_loss[:, 0] + rho * signal_loss @ weight
    active = (1 - rho) * zero_active[:, 0] + rho * signal_active @ weight
    rho_hat = np.sum(w * active)
    # V is the average of v·Σ·1{active}/D.
    V_new = np.sum(w * v * Sigma * active / shrink)
    return np.sum(w * v * loss) + model.sigma_xi**2, V_new, rho_hat


@pytest.fixture(scope="session")
def brute_step():
    return step


def _replacement_losses(model, lam, design, *, N, data_sets, records, seed=0):
    """Exact losses of one record replaced, added and removed; one row of means per data set.

    The loss is log p(x|D)/p(x|D') at an x released from D.
    """
    rng = np.random.default_rng(seed)
    M = round(model.alpha * N)
    larger = replace(model, alpha=(M + records) / N)
    rows = []
    for _ in range(data_sets):
        s = larger.sample(N, rng)
        F, y = s.F[:M], s.y[:M]
        x = pv.solve(F, y, lam, design.draw(s.v, rng)).x
        variances = design.variances(s.v)

        def loss(F2, y2, F=F, y=y, variances=variances, x=x):
            return pv.privacy_loss(F, y, F2, y2, lam, variances, x)

        means = np.zeros(3)
        for k in range(records):
            f, label = s.F[M + k : M + k + 1], s.y[M + k]
            F2, y2 = F.copy(), y.copy()
            F2[k], y2[k] = f, label
            means[0] += loss(F2, y2) / records
            means[1] += loss(np.vstack([F, f]), np.append(y, label)) / records
            means[2] += loss(np.delete(F, k, 0), np.delete(y, k)) / records
        rows.append(means)
    return np.array(rows)


@pytest.fixture(scope="session")
def replacement_losses():
    return _replacement_losses
