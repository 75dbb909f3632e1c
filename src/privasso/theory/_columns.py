"""The averages of state evolution for given independent columns, with given noise if wanted.

With η at hand, column i has the field b_i ~ N(−η_i, A_k), A_k as in `_recursion`, and
with a = (λ−m)/√A, a' = (λ+m)/√A for the mean m,

    P(z_i ≠ 0) = Q(a) + Q(a'),
    E soft(b_i, λ)² = A [(1+a²)Q(a) − aφ(a) + (1+a'²)Q(a') − a'φ(a')].
"""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import NDArray
from scipy.special import ndtr

from privasso.theory._draws import Averages

FloatArray = NDArray[np.float64]

_INV_ROOT_2PI = 1.0 / math.sqrt(2.0 * math.pi)


class GivenColumns:
    """R and ρ̂ for independent columns of squared scales v, exactly.

    Parameters
    ----------
    alpha, rho, label_variance, lam : float
    v : ndarray of shape (N,)
    variances : ndarray of shape (N,)
        Variances of the noise; zero where η is given.
    eta : ndarray of shape (N,), optional
        Noise at hand.
    """

    def __init__(
        self,
        alpha: float,
        rho: float,
        label_variance: float,
        lam: float,
        v: FloatArray,
        variances: FloatArray,
        eta: FloatArray | None = None,
    ) -> None:
        self.alpha, self.rho, self.label_variance, self.lam = alpha, rho, label_variance, lam
        self.v, self.variances = v, variances
        self.mean = np.zeros_like(v) if eta is None else -eta

    def averages(self, e: float, u: float) -> Averages:
        """R and ρ̂ at (e, u)."""
        active, error = self.columns(e, u)
        R = self.label_variance * u * u + float(np.mean(error))
        return Averages(np.array([R]), np.array([float(np.mean(active))]), exact=True)

    def columns(self, e: float, u: float) -> tuple[FloatArray, FloatArray]:
        """Chance of each column to be active, and its part u²v E(x̂ − x⁰)² of the error.

        Examples
        --------
        >>> one = np.ones(1)
        >>> active, error = GivenColumns(1.0, 1.0, 0.0, 1e-9, one, 0.0 * one).columns(0.04, 1.0)
        >>> round(float(active[0]), 6), round(float(error[0]), 6)
        (1.0, 0.04)
        """
        av = self.alpha * self.v
        zero = av * e + self.variances
        signal = (av * u) ** 2
        p0, s0 = self._soft(zero)
        p1, s1 = self._soft(zero + signal)
        # E[soft(b) x⁰] = αvu P(active), by Stein's lemma.
        error = (1.0 - self.rho) * s0 + self.rho * (s1 + signal * (1.0 - 2.0 * p1))
        return (1.0 - self.rho) * p0 + self.rho * p1, error / (self.alpha * av)

    def _soft(self, A: FloatArray) -> tuple[FloatArray, FloatArray]:
        root = np.sqrt(np.maximum(A, 1e-300))
        active, square = np.zeros_like(A), np.zeros_like(A)
        for m in (self.mean, -self.mean):
            a = np.minimum((self.lam - m) / root, 1e8)
            q = ndtr(-a)
            density = _INV_ROOT_2PI * np.exp(-0.5 * a * a)
            active += q
            square += np.maximum((1.0 + a * a) * q - a * density, 0.0)
        return active, A * square
