"""Exact divergences of objective perturbation in one and two dimensions, for many pairs at once.

Units: κ = R = 1, so that Λ = 1/t and σ = Δψ/c. Nothing here uses the bounds that are tested, nor
the argument by which they are proved: the densities of the released coefficients are written down
and integrated.
"""

from dataclasses import dataclass, replace

import numpy as np
from scipy.special import ndtr


@dataclass(frozen=True)
class Data:
    """A batch of data sets: f and y have shape (pairs, records); lam and tilt are (pairs,).

    The penalty is λ|x| plus a public linear term, the tilt, as of many records that are clipped.
    """

    f: np.ndarray
    y: np.ndarray
    lam: np.ndarray
    tilt: np.ndarray

    def emptied(self):
        """The same without the first record."""
        f = self.f.copy()
        f[:, 0] = 0.0
        return replace(self, f=f)

    def relabelled(self, labels):
        """The same with other labels of the first record."""
        y = self.y.copy()
        y[:, 0] = labels
        return replace(self, y=y)

    def take(self, index):
        return Data(self.f[index], self.y[index], self.lam[index], self.tilt[index])


def gradient(data, ridge, x):
    """g(x) and g′(x) of the smooth part at x of shape (pairs, points)."""
    residual = data.y[:, None, :] - data.f[:, None, :] * x[:, :, None]
    psi, inside = np.clip(residual, -1.0, 1.0), np.abs(residual) < 1.0
    f = data.f[:, None, :]
    g = ridge[:, None] * x - (psi * f).sum(2) + data.tilt[:, None]
    return g, ridge[:, None] + (inside * f**2).sum(2)


def between(low, high):
    """Φ(high) − Φ(low) without cancellation in the tails."""
    return np.where(low > 0.0, ndtr(-low) - ndtr(-high), ndtr(high) - ndtr(low))


def line_divergence(p, q, epsilon, c, t, change=1.0):
    """sup_A P(A) − e^ε Q(A) for one coefficient, exactly: both densities are Gaussian on pieces.

    x̂ is a decreasing function of η, η = −g(x) − λ sgn x with g piecewise linear, and has an atom
    at zero. The ratio of the densities is the exponential of a quadratic on each piece.
    """
    ridge, sigma = 1.0 / t, change / c
    edges = [np.zeros((p.f.shape[0], 1))]
    for data in (p, q):
        safe = np.where(data.f == 0.0, 1.0, data.f)
        for sign in (-1.0, 1.0):
            edges.append(np.where(data.f == 0.0, 0.0, (data.y + sign) / safe))
    edges = np.sort(np.concatenate(edges, axis=1), axis=1)
    infinite = np.full((edges.shape[0], 1), np.inf)
    left, right = np.hstack([-infinite, edges]), np.hstack([edges, infinite])
    padded = np.hstack([edges[:, :1] - 2.0, edges, edges[:, -1:] + 2.0])
    middle = 0.5 * (padded[:, 1:] + padded[:, :-1])

    def line(data):
        g, slope = gradient(data, ridge, middle)
        at = -g - data.lam[:, None] * np.sign(middle) + slope * middle
        return at / sigma[:, None], slope / sigma[:, None]

    (a1, b1), (a2, b2) = line(p), line(q)
    two = 0.5 * (b2**2 - b1**2)
    one = a1 * b1 - a2 * b2
    none = np.log(b1 / b2) - epsilon[:, None] + 0.5 * (a2**2 - a1**2)
    with np.errstate(all="ignore"):
        root = np.sqrt(one**2 - 4.0 * two * none)
        half = -0.5 * (one + np.where(one >= 0.0, root, -root))
        roots = np.sort(np.stack([half / two, none / half]), axis=0)
    first, second = (np.clip(np.where(np.isnan(r), left, r), left, right) for r in roots)
    second = np.maximum(first, second)
    total = np.zeros(p.f.shape[0])
    factor = np.exp(epsilon)[:, None]
    for low, high in ((left, first), (first, second), (second, right)):
        mass1 = between(a1 - b1 * high, a1 - b1 * low)
        mass2 = between(a2 - b2 * high, a2 - b2 * low)
        # The sign is constant on each part, so a negative difference is a part that does not count.
        gain = np.where(high > low, mass1 - factor * mass2, 0.0)
        total += np.maximum(gain, 0.0).sum(axis=1)

    def atom(data):
        g = gradient(data, ridge, np.zeros((data.f.shape[0], 1)))[0][:, 0]
        return between((g - data.lam) / sigma, (g + data.lam) / sigma)

    return total + np.maximum(atom(p) - factor[:, 0] * atom(q), 0.0)


def random_data(rng, c, t, others=3, change=1.0):
    """Data sets whose first record is clipped over a part of the likely coefficients."""
    size = c.size
    f = rng.uniform(-1.0, 1.0, (size, 1 + others)) * rng.integers(0, 2, (size, 1 + others))
    f[:, 0] = rng.choice([1.0, 1.0, 1.0, 0.7, -0.3], size)
    spread = (t * change / c)[:, None]
    y = f * rng.normal(0.0, 2.0, (size, 1)) * spread + rng.uniform(-2.0, 2.0, f.shape)
    lam = rng.choice([0.0, 0.3, 1.0], size) * change / c
    tilt = rng.choice([0.0, 2.0], size) * rng.normal(0.0, 1.0, size) * change / c
    return Data(f, y, lam, tilt)


def mutated(rng, data, c, t, size, change=1.0):
    """Data sets a little different from these, by `size` of a plausible spread."""

    def moved(values, scale):
        shape = values.shape
        return values + scale * size * rng.normal(0.0, 1.0, shape) * (rng.random(shape) < 0.3)

    return Data(
        np.clip(moved(data.f, 0.5), -1.0, 1.0),
        moved(data.y, 3.0 * t * change / c),
        np.abs(moved(data.lam, change / c)),
        moved(data.tilt, 3.0 * change / c),
    )


def joined(one, two):
    """Both batches in one."""
    names = ("f", "y", "lam", "tilt")
    return Data(*(np.concatenate([getattr(one, n), getattr(two, n)]) for n in names))


def plane_divergence(p, q, sizes, shape, epsilon, c, t, change=1.0, points=181):
    """The same for two coefficients, by a midpoint rule; p, q are (F, y), sizes is λ.

    Returns the divergence and the total mass of p, which tells how good the rule is.
    """
    ridge, sigma = 1.0 / t, change / c
    reach = t * (6.0 * sigma + 2.0 * len(p[1])) / np.sqrt(np.linalg.eigvalsh(shape)[0])
    # Denser near zero, where the noise is likely to put the coefficients.
    s = (np.arange(points) + 0.5) / points * 2.0 - 1.0
    axis, weight = reach * np.sinh(3.0 * s) / np.sinh(3.0), None
    weight = reach * 3.0 * np.cosh(3.0 * s) / np.sinh(3.0) * (2.0 / points)
    inverse = np.linalg.inv(shape)
    logdet = np.log(np.linalg.det(shape))

    def smooth(data, x):
        F, y = data
        residual = y - x @ F.T
        g = ridge * x @ shape - np.clip(residual, -1.0, 1.0) @ F
        inside = (np.abs(residual) < 1.0).astype(float)
        return g, ridge * shape + np.einsum("...m,mi,mj->...ij", inside, F, F)

    def both(data):
        x = np.stack(np.meshgrid(axis, axis, indexing="ij"), axis=-1)
        g, hessian = smooth(data, x)
        eta = (-g - sizes * np.sign(x)) / sigma
        quadratic = np.einsum("...i,ij,...j->...", eta, inverse, eta)
        det = hessian[..., 0, 0] * hessian[..., 1, 1] - hessian[..., 0, 1] ** 2
        return det * np.exp(-0.5 * quadratic - 0.5 * logdet) / (2.0 * np.pi * sigma**2)

    def single(data, i):
        j = 1 - i
        x = np.zeros((points, 2))
        x[:, i] = axis
        g, hessian = smooth(data, x)
        eta = (-g[:, i] - sizes * np.sign(axis)) / sigma
        mean, deviation = shape[i, j] / shape[i, i] * eta, 1.0 / np.sqrt(inverse[j, j])
        low, high = (-g[:, j] - sizes) / sigma, (-g[:, j] + sizes) / sigma
        mass = between((low - mean) / deviation, (high - mean) / deviation)
        density = np.exp(-0.5 * eta**2 / shape[i, i]) / np.sqrt(2.0 * np.pi * shape[i, i]) / sigma
        return hessian[:, i, i] * density * mass

    def atom(data):
        g = -smooth(data, np.zeros((1, 2)))[0][0] / sigma
        nodes, weights = np.polynomial.legendre.leggauss(60)
        eta = g[0] + sizes / sigma * nodes
        mean, deviation = shape[0, 1] / shape[0, 0] * eta, 1.0 / np.sqrt(inverse[1, 1])
        low, high = g[1] - sizes / sigma, g[1] + sizes / sigma
        mass = between((low - mean) / deviation, (high - mean) / deviation)
        density = np.exp(-0.5 * eta**2 / shape[0, 0]) / np.sqrt(2.0 * np.pi * shape[0, 0])
        return sizes / sigma * (weights @ (mass * density))

    factor, area = np.exp(epsilon), weight[:, None] * weight

    def gain(here, there, weights):
        return float((weights * np.maximum(here - factor * there, 0.0)).sum())

    parts = [(both(p), both(q), area)]
    if sizes > 0.0:
        parts += [(single(p, i), single(q, i), weight) for i in (0, 1)]
        parts.append((np.array(atom(p)), np.array(atom(q)), np.ones(())))
    return sum(gain(*part) for part in parts), sum(float((w * a).sum()) for a, _, w in parts)
