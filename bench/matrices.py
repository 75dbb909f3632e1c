"""Matrices of many kinds on which solvers are compared: real tables, and simulated ones."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import scipy.sparse as sp
from sklearn.datasets import load_breast_cancer, load_diabetes, load_digits
from sklearn.feature_extraction.text import TfidfTransformer
from sklearn.preprocessing import PolynomialFeatures

Data = tuple[Any, np.ndarray]


def _standardised(F: np.ndarray) -> np.ndarray:
    F = F - F.mean(axis=0)
    spread = F.std(axis=0)
    return F[:, spread > 1e-9] / spread[spread > 1e-9]


def _labels(F: Any, seed: int = 0, n_active: int = 30, noise: float = 0.5) -> np.ndarray:
    """A sparse linear model plus noise of half its size."""
    rng = np.random.default_rng(seed)
    active = rng.choice(F.shape[1], min(n_active, F.shape[1]), replace=False)
    signal = F[:, active] @ rng.standard_normal(active.size)
    signal = signal / max(float(np.std(signal)), 1e-300)
    return signal - signal.mean() + noise * rng.standard_normal(F.shape[0])


def gaussian(m: int, n: int, seed: int = 0) -> Data:
    F = np.random.default_rng(seed).standard_normal((m, n))
    return F, _labels(F)


def autoregressive(m: int, n: int, r: float) -> Data:
    F = np.random.default_rng(1).standard_normal((m, n))
    for j in range(1, n):
        F[:, j] = r * F[:, j - 1] + np.sqrt(1 - r * r) * F[:, j]
    return F, _labels(F)


def factors(m: int, n: int, k: int = 5, noise: float = 0.3) -> Data:
    rng = np.random.default_rng(2)
    F = rng.standard_normal((m, k)) @ rng.standard_normal((k, n))
    F = F + noise * rng.standard_normal((m, n))
    return F, _labels(F)


def genotypes(m: int, n: int) -> Data:
    """Counts 0, 1, 2 of an allele; neighbours are in linkage."""
    rng = np.random.default_rng(3)
    frequency = rng.uniform(0.05, 0.5, n)
    F = np.zeros((m, n))
    for _ in range(2):
        z = rng.standard_normal((m, n))
        for j in range(1, n):
            z[:, j] = 0.95 * z[:, j - 1] + np.sqrt(1 - 0.95**2) * z[:, j]
        ranks = z.argsort(axis=0).argsort(axis=0) / m
        F += ranks < frequency
    F -= F.mean(axis=0)
    return F, _labels(F)


def counts(m: int, n: int) -> np.ndarray:
    """Counts like those of single cells: gamma–Poisson, with cell sizes and gene programmes."""
    rng = np.random.default_rng(4)
    programme = np.exp(0.8 * rng.standard_normal((m, 4)) @ rng.standard_normal((4, n)) * 0.7)
    mean = rng.lognormal(0.0, 0.6, (m, 1)) * rng.lognormal(-1.0, 1.8, n) * programme
    return rng.poisson(mean * rng.gamma(2.0, 0.5, (m, n))).astype(float)


def cells(m: int, n: int) -> Data:
    F = np.log1p(counts(m, n))
    F = F[:, F.std(axis=0) > 0.05]
    F -= F.mean(axis=0)
    return F, _labels(F)


def expression(m: int, n: int) -> Data:
    """Logarithms of intensities: few samples, many probes, modules of genes that vary together."""
    rng = np.random.default_rng(10)
    modules = rng.standard_normal((m, 25)) @ (
        rng.standard_normal((25, n)) * (rng.random((25, n)) < 0.15)
    )
    F = rng.uniform(4, 12, n) + 0.5 * modules + 0.3 * rng.standard_normal((m, n))
    return _standardised(F), _labels(F)


def raw_counts(m: int, n: int) -> Data:
    F = counts(m, n)
    F = F[:, F.std(axis=0) > 0.05]
    return F, _labels(F)


def polynomial(load: Callable[..., Any], degree: int, take: slice = slice(None)) -> Data:
    table, y = load(return_X_y=True)
    table = _standardised(np.asarray(table, dtype=float))[:, take]
    F = PolynomialFeatures(degree, include_bias=False).fit_transform(table)
    return _standardised(F), np.asarray(y, dtype=float) - np.mean(y)


def insurance() -> Data:
    """Claims-like columns: levels, amounts over orders of magnitude, and their products."""
    rng = np.random.default_rng(5)
    m = 5000
    amounts = rng.lognormal(rng.uniform(0, 4, 20), 1.0, (m, 20))
    levels = np.concatenate(
        [np.eye(k)[rng.choice(k, m, p=rng.dirichlet(np.ones(k)))] for k in (5, 12, 30)], axis=1
    )
    cross = (amounts[:, :6, None] * levels[:, None, :]).reshape(m, -1)
    F = np.hstack([amounts, levels, cross])
    F = F[:, F.std(axis=0) > 0]
    return F, _labels(F)


def vandermonde(m: int, n: int) -> Data:
    t = np.linspace(-1, 1, m)
    F = _standardised(np.vander(t, n + 1, increasing=True)[:, 1:])
    return F, np.sin(6 * t) + 0.1 * np.random.default_rng(6).standard_normal(m)


def conditioned(m: int, n: int, condition: float) -> Data:
    rng = np.random.default_rng(7)
    k = min(m, n)
    U = np.linalg.qr(rng.standard_normal((m, k)))[0]
    V = np.linalg.qr(rng.standard_normal((n, k)))[0]
    F = (U * np.geomspace(1, 1 / condition, k)) @ V.T * np.sqrt(m)
    return F, _labels(F)


def one_hot(m: int, n: int, per_row: int = 5) -> Data:
    rng = np.random.default_rng(8)
    p = 1.0 / (1 + np.arange(n)) ** 0.6
    columns = rng.choice(n, (m, per_row), p=p / p.sum()).ravel()
    rows = np.repeat(np.arange(m), per_row)
    F = sp.csc_array((np.ones(rows.size), (rows, columns)), shape=(m, n))
    F.sum_duplicates()
    F.data[:] = 1.0
    return F, _labels(F, n_active=500)


def tf_idf(m: int, n: int) -> Data:
    rng = np.random.default_rng(9)
    p = 1.0 / (3 + np.arange(n)) ** 1.1
    lengths = rng.poisson(60, m) + 5
    rows = np.repeat(np.arange(m), lengths)
    words = rng.choice(n, lengths.sum(), p=p / p.sum())
    F = sp.csr_array((np.ones(rows.size), (rows, words)), shape=(m, n))
    F.sum_duplicates()
    F = sp.csc_array(TfidfTransformer().fit_transform(F))
    return F, _labels(F, n_active=100)


#: Every kind of matrix by name.
MATRICES: dict[str, Callable[[], Data]] = {
    "Gaussian 1000 × 2000": lambda: gaussian(1000, 2000),
    "Gaussian 2000 × 1000, C order": lambda: gaussian(2000, 1000),
    "AR(.9) 1000 × 3000": lambda: autoregressive(1000, 3000, 0.9),
    "AR(.99) 500 × 2000": lambda: autoregressive(500, 2000, 0.99),
    "factor model 500 × 2000": lambda: factors(500, 2000),
    "genotypes 800 × 4000": lambda: genotypes(800, 4000),
    "cells × genes 1500 × 1000": lambda: cells(1500, 1000),
    "genes × cells 700 × 3000": lambda: cells(700, 3000),
    "raw counts 700 × 765": lambda: raw_counts(700, 765),
    "diabetes, degree 4: 442 × 1000": lambda: polynomial(load_diabetes, 4),
    "breast cancer, degree 3: 569 × 5455": lambda: polynomial(load_breast_cancer, 3),
    "digits, degree 2: 1797 × 2144": lambda: polynomial(load_digits, 2),
    "insurance 5000 × 350": insurance,
    "Vandermonde 300 × 40": lambda: vandermonde(300, 40),
    "condition 1e6, 600 × 600": lambda: conditioned(600, 600, 1e6),
    "condition 1e12, 600 × 600": lambda: conditioned(600, 600, 1e12),
    "one-hot 50,000 × 50,000": lambda: one_hot(50_000, 50_000),
    "TF-IDF 5000 × 20,000": lambda: tf_idf(5000, 20_000),
    "tall 200,000 × 50": lambda: gaussian(200_000, 50),
    "tall 20,000 × 500": lambda: gaussian(20_000, 500),
    "tall 1,000,000 × 20": lambda: gaussian(1_000_000, 20),
    "tall 200,000 × 1,000": lambda: gaussian(200_000, 1000),
    "wide 200 × 1,000,000": lambda: gaussian(200, 1_000_000),
    "expression 80 × 7000": lambda: expression(80, 7000),
    "Gaussian 1000 × 2000, Fortran order": lambda: _by_columns(gaussian(1000, 2000)),
    "genotypes 800 × 4000, Fortran order": lambda: _by_columns(genotypes(800, 4000)),
    "float32, AR(.9) 1000 × 3000": lambda: _single(autoregressive(1000, 3000, 0.9)),
    "large means 500 × 300": lambda: _shifted(gaussian(500, 300)),
}


#: These take long to make, and no set of columns is large beside them.
LARGE = ("wide 200 × 1,000,000", "tall 200,000 × 1,000", "tall 1,000,000 × 20")


def noisy_problems(
    parts: tuple[int, ...], level: float, n_rhs: int
) -> Iterator[tuple[str, int, Any, np.ndarray, float, np.ndarray]]:
    """Name, λmax/λ, F, y, λ and noise vectors, for every matrix that is not LARGE and every part.

    The noise is in the row space, as if the labels had noise of `level` times their size.
    """
    for name, make in MATRICES.items():
        if name in LARGE:
            continue
        F, y = make()
        largest = float(np.abs(F.T @ y).max())
        noise = np.random.default_rng(0).standard_normal((F.shape[0], n_rhs))
        etas = np.asarray(F.T @ (level * float(np.sqrt(np.mean(y**2))) * noise))
        for part in parts:
            yield name, part, F, y, largest / part, etas


def _by_columns(data: Data) -> Data:
    F, y = data
    return np.asfortranarray(F), y


def _single(data: Data) -> Data:
    F, y = data
    return F.astype(np.float32), y


def _shifted(data: Data) -> Data:
    F, y = data
    return F + 1e6, y
