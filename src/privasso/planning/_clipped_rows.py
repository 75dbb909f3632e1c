"""Perturbed fits on given rows: their law, and ridge and shrinking by the error to expect."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from weakref import WeakKeyDictionary

import numpy as np

from privasso._blas import one_thread
from privasso._tuned import (
    EXPLAINED,
    EXPLAINED_PARTS,
    LABEL_DEVIATION,
    LABEL_DEVIATIONS,
    RIDGE_WORTH,
    SHRINK_GAIN,
    SHRINK_OBJECTIVE,
)
from privasso.noise import Covariance
from privasso.operators import Covariates
from privasso.planning._release_shape import ReleaseShape, release_shape, row_sample
from privasso.theory import clipped_moments

_STEPS = 80


@dataclass(frozen=True)
class ClippedSettings:
    """What is chosen from the rows, and the error to expect with it.

    `t`: R²/Λ. `shrink`: part of the rows that is shrunk. `error`: expected squared error of a
    prediction, as a part of the variance of the labels.
    """

    t: float
    shrink: float
    error: float


def clipped_settings(
    rows: Covariates,
    kappa: float,
    sensitivities: Mapping[float, float],
    shrinks: Sequence[float] = (0.0, SHRINK_OBJECTIVE),
    gain: float = SHRINK_GAIN,
) -> ClippedSettings:
    """Choose the ridge R²/t and the part of the rows to shrink with the least expected error.

    What the minimiser u of the perturbed objective tells about x₀ (see `clipped_law`; here A is the
    Gram matrix of the shrunk rows) is worth the
    error (1/M) tr A(P⁻¹ + q²A(E_g A + σ²)⁻¹A)⁻¹ of the best linear guess, P the prior covariance
    of x₀. The error is averaged over the labels of the prior, which vary by 1/12, 1/6 and 1/4 of
    their range, and of whose variance the columns explain 30, 60 and 90 per cent. By default
    shrinking must gain at least one per cent of the variance. No label is read.

    - `kappa`: κ, in units of the range of the labels.
    - `sensitivities`: the values of t to choose from, and c = 2κR/σ for each of them.
    - `shrinks`: parts of the rows to choose from, increasing.
    - `gain`: what a larger part must gain, as a part of the variance of the labels.
    """
    best: ClippedSettings | None = None
    c, t = np.array([*sensitivities.values()]), np.array([*sensitivities])
    for shrink in shrinks:
        spectrum = _spectrum(rows, shrink)
        found = spectrum.errors(kappa, c, t, LABEL_DEVIATIONS, EXPLAINED_PARTS)
        errors = dict(zip(sensitivities, found.tolist(), strict=True))
        enough = (1.0 + RIDGE_WORTH) * min(errors.values())
        least = min(t for t, error in errors.items() if error <= enough)
        if best is None or best.error - errors[least] > gain:
            best = ClippedSettings(least, shrink, errors[least])
    assert best is not None
    return best


def clipped_r2(rows: Covariates, kappa: float, sensitivities: Mapping[float, float]) -> float:
    """R² to expect of labels that vary by 1/6 of their range, half of which is explained."""
    found = clipped_settings(rows, kappa, sensitivities)
    c, t = np.array([sensitivities[found.t]]), np.array([found.t])
    errors = _spectrum(rows, found.shrink).errors(kappa, c, t, (LABEL_DEVIATION,), (EXPLAINED,))
    return EXPLAINED - float(errors[0])


def _spectrum(rows: Covariates, shrink: float) -> _Spectrum:
    """That of a sample of the rows, which is found once: first for the part, then for the ridge."""
    known = _SPECTRA.setdefault(rows, {})
    if shrink not in known:
        part = row_sample(rows)
        shape = release_shape(part, shrink, roots=True)
        known[shrink] = _Spectrum.of(part, shape, rows.shape[0] / part.shape[0])
    return known[shrink]


@dataclass(frozen=True, eq=False)
class _Spectrum:
    """The rows in the eigenbasis of A.

    - `a`: eigenvalues of A = GᵀG.
    - `signal`: variances of x₀ along the eigenvectors if the coefficients of standardised columns
      have the variance 1/N each.
    - `level`: the same for an intercept of variance 1.
    - `n_rows`: M.
    - `weight`: mean weight of a row.
    """

    a: np.ndarray = field(repr=False)
    signal: np.ndarray = field(repr=False)
    level: np.ndarray = field(repr=False)
    n_rows: float
    weight: float

    @classmethod
    def of(cls, rows: Covariates, shape: ReleaseShape, copies: float) -> _Spectrum:
        weights = np.ones(rows.shape[0]) if rows.weights is None else rows.weights
        with np.errstate(divide="ignore"):
            weights = np.minimum(weights, 1.0 / shape.squares)
        moments = copies * rows.moments(weights, ones=rows.centred)
        scale = np.sqrt(rows.squares[rows.live] / rows.total)
        a, root = whitened_moments(moments, shape.covariance, shape.sigma_sum, scale)
        n = shape.covariance.size
        signal = np.sum((root[:n] / scale[:, None]) ** 2, axis=0) / n
        level = root[-1] ** 2 if rows.centred else np.zeros_like(a)
        return cls(a, signal, level, copies * rows.shape[0], float(np.mean(weights)))

    def errors(
        self,
        kappa: float,
        c: np.ndarray,
        t: np.ndarray,
        deviations: Sequence[float],
        parts: Sequence[float],
    ) -> np.ndarray:
        """Expected squared error for each c and its t, averaged over what is supposed of labels."""
        deviation, explained = (x.ravel() for x in np.meshgrid(deviations, parts))
        total = deviation**2
        noise, ridge = ((2.0 * kappa / c) ** 2)[:, None, None], (1.0 / t)[:, None, None]
        a, m = self.a, self.n_rows
        prior = total[:, None] * (explained[:, None] * self.signal + self.level)
        residual = total * (1.0 - explained) * self.weight
        own = np.tile(residual, (t.size, 1))
        q, square = clipped_law(kappa, a, prior, own, noise, ridge, m, _STEPS)
        told = q[..., None] ** 2 * a**2 / (square[..., None] * a + noise)
        left = prior / (1.0 + prior * told)
        return np.mean(left @ a / (m * self.weight * total), axis=-1)


_SPECTRA: WeakKeyDictionary[Covariates, dict[float, _Spectrum]] = WeakKeyDictionary()


def clipped_law(
    kappa: float,
    a: np.ndarray,
    prior: np.ndarray,
    own: np.ndarray | float,
    noise: np.ndarray | float,
    ridge: np.ndarray | float,
    n_rows: float,
    steps: int = 40,
) -> tuple[np.ndarray, np.ndarray]:
    """Mean slope q and mean square of the clipped residuals of a perturbed fit, for several cases.

    In coordinates in which noise and ridge are multiples of the identity the minimiser is
    u = (qA + Λ)⁻¹(qAx₀ + √E_g A^½ z + σz') in law, and a residual has the variance

        E = τ² + (1/M) E‖G(x₀ − u)‖²,

    from which q and E_g follow as in state evolution.

    - `a` (N,): eigenvalues of A = GᵀG.
    - `prior` (..., N): squares of x₀, or their variances.
    - `own` (...): τ². `noise`, `ridge`: σ² and Λ. `n_rows`: M.
    """
    E = own + prior @ a / n_rows
    q, square = np.ones_like(E), np.full_like(E, 0.25 * kappa**2)
    for _ in range(steps):
        inverse = 1.0 / (q[..., None] * a + ridge)
        V = inverse @ a / n_rows
        spread = ridge**2 * prior + square[..., None] * a + noise
        E = 0.5 * (E + own + (spread * inverse**2) @ a / n_rows)
        q, square = clipped_moments(kappa, E, V)
    return q, square


def whitened_moments(
    moments: np.ndarray, covariance: Covariance, sigma_sum: float, scale: np.ndarray
) -> tuple[np.ndarray, np.ndarray]:
    """Return the eigenvalues a of L⁺GL⁺ᵀ, and LV, V its eigenvectors, where LLᵀ is the noise.

    Where G is larger than the covariance by one, its last entry belongs to a column of ones, whose
    noise is independent and has the deviation `sigma_sum`.

    - `moments` (n, n) or (n + 1, n + 1): G, of rows that the noise covers.
    - `covariance`: of the noise on n columns.
    - `scale` (n,): scales of the columns; they keep the arithmetic accurate, whatever the units
      are.
    """
    n, rank = covariance.size, covariance.rank
    ones = moments.shape[0] - n
    units = np.append(scale, np.ones(ones))
    L, left = np.zeros((n + ones, rank + ones)), np.zeros((rank + ones, n + ones))
    white = covariance.whitener
    L[:n, :rank] = covariance.colour(np.eye(rank))
    left[:rank, :n] = (np.diag(white) if white.ndim == 1 else white) * scale
    if ones:
        L[-1, -1], left[-1, -1] = sigma_sum, 1.0 / sigma_sum
    with one_thread():
        A = left @ (moments / np.outer(units, units)) @ left.T
        a, vectors = np.linalg.eigh(0.5 * (A + A.T))
        return np.maximum(a, 0.0), L @ vectors
