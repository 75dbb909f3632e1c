"""Simulated releases of a perturbed objective with clipped residuals."""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np

from privasso.fit import RowMoments
from privasso.noise import Covariance
from privasso.planning import clipped_law, whitened_moments
from privasso.queries import ObjectiveNoise


@dataclass(frozen=True, eq=False)
class ClippedReleases:
    """b = (A + Λ)u for minimisers u of a perturbed objective, drawn without drawing labels.

    In the eigenbasis of A = GᵀG, u = (qA + Λ)⁻¹(qAx + √E_g A^½ z + σz') in law; the mean slope q
    and the mean square E_g of the clipped residuals follow from the variance of a residual, which
    follows from u. See `design.clipped_settings`.

    Attributes
    ----------
    root : ndarray of shape (N, r)
        Columns: eigenvectors of A in the units of the products of rows and labels.
    a : ndarray of shape (r,)
        Eigenvalues of A.
    noise : ObjectiveNoise
        Of rows and labels in units of `width`.
    width : float
        Range of the labels.
    n_rows, weight : float
        Number of rows, and their mean weight.
    """

    root: np.ndarray = field(repr=False)
    a: np.ndarray = field(repr=False)
    noise: ObjectiveNoise
    width: float
    n_rows: float
    weight: float

    @classmethod
    def of(
        cls,
        moments: RowMoments,
        covariance: Covariance,
        sigma_sum: float,
        noise: ObjectiveNoise,
        width: float,
        n_rows: float,
        weight: float,
    ) -> ClippedReleases:
        """From the moments of the rows, and the calibrated noise on columns and label sum."""
        level = noise.sigma * width
        a, root = whitened_moments(moments.G, covariance, sigma_sum, moments.scale)
        return cls(root / level, level**2 * a, noise, width, n_rows, weight)

    def draw(self, x: np.ndarray, residual_sd: float, rng: np.random.Generator) -> np.ndarray:
        """Draw b for coefficients x, the intercept last, and residuals of that deviation."""
        a, m, kappa, ridge = self.a, self.n_rows, self.noise.kappa, self.noise.ridge
        truth = self.root.T @ x / self.width
        noise = self.noise.sigma**2
        own = self.weight * (residual_sd / self.width) ** 2
        q, square = clipped_law(kappa, a, truth**2, np.float64(own), noise, ridge, m)
        z = rng.standard_normal((2, a.size))
        u = (q * a * truth + np.sqrt(square * a) * z[0] + np.sqrt(noise) * z[1]) / (q * a + ridge)
        return self.width * (self.root @ ((a + ridge) * u))
