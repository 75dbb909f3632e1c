"""Fits from simulated releases, without simulated labels."""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import cached_property

import numpy as np

from privasso._blas import one_thread
from privasso.fit import ReleaseLaw, RowMoments, joint_noise
from privasso.forecast._population import Estimate, Truth
from privasso.noise import Covariance
from privasso.planning import clipped_law, whitened_moments
from privasso.privacy import LabelDP
from privasso.programs import Calibration
from privasso.queries import ObjectiveNoise
from privasso.solvers import Status, solve_problems


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


#: Length of the Markov chain of a guess, against up to 1500 in a fit, to save time. Single fits
#: change by up to 0.1 in R², but their mean by about 0.01 only, in either direction.
_SWEEPS = 400
#: Eigenvalues below this part of the largest are rounding.
_RANK = 1e-12
_TOL = 1e-6


@dataclass(frozen=True, eq=False)
class SimulatedFit:
    """Outcomes of fits on one table of covariates, whose questions have answers of a known law.

    A release of labels that follow a truth has the law N(G(x, a), σ²G₂ + Σ), up to the shape of
    the law of the residuals, which sums over many rows forget. That of a perturbed objective is in
    `ClippedReleases`. So one simulated release costs no more than a product with a matrix over the
    columns, however many rows there are.
    """

    privacy: LabelDP
    calibration: Calibration = field(repr=False)
    lam: float | None
    denoise: bool
    moments: RowMoments = field(repr=False)
    gram: np.ndarray = field(repr=False)
    n_rows: float
    weight: float

    def outcome(self, truth: Truth, rng: np.random.Generator) -> Estimate | None:
        """Draw labels and noise, and fit; None where the problem has no minimiser."""
        b = self._draw(truth, rng)
        lam, unit = self.lam, self.privacy.unit
        if not self.denoise:
            assert lam is not None
            return self._lasso(b, lam / unit)
        mean, _, level = self._law.posterior(b)
        guess = self.moments.scale * mean
        # With λ chosen from the release the LASSO keeps all but 1/400 of what the guess explains,
        # so that the guess stands for it.
        if lam is not None:
            root = self._root
            x, ok = _solution(root, root.T @ (root @ guess), lam / unit)
            return Estimate(x, level) if ok else None
        return Estimate(guess, level)

    def _draw(self, truth: Truth, rng: np.random.Generator) -> np.ndarray:
        moments = self.moments
        x = truth.coef / moments.scale
        x = np.append(x, truth.level) if moments.intercept else x
        if self._clipped is not None:
            return self._clipped.draw(x, truth.residual_sd, rng)
        labels, noise = rng.standard_normal(x.size), rng.standard_normal(x.size)
        spread = truth.residual_sd * (self._label_root @ labels) + self._noise_root @ noise
        return moments.G @ x + moments.units * spread

    @cached_property
    def _clipped(self) -> ClippedReleases | None:
        """The law of releases of a perturbed objective, if they are such."""
        calibration, privacy = self.calibration, self.privacy
        if calibration.objective is None:
            return None
        return ClippedReleases.of(
            self.moments,
            calibration.covariance,
            calibration.sigma_sum,
            calibration.objective,
            privacy.label_width / privacy.unit,
            self.n_rows,
            self.weight,
        )

    @cached_property
    def _noise(self) -> np.ndarray:
        calibration = self.calibration
        noise = calibration.covariance.matrix()
        return joint_noise(noise, calibration.sigma_sum) if self.moments.intercept else noise

    @cached_property
    def _law(self) -> ReleaseLaw:
        privacy = self.privacy
        assert privacy.label_deviation is not None
        deviation = privacy.label_deviation / privacy.unit
        return ReleaseLaw(self.moments, self._noise, deviation, many=True, sweeps=_SWEEPS)

    @cached_property
    def _label_root(self) -> np.ndarray:
        return _root(self.moments.G2 / np.outer(self.moments.units, self.moments.units))

    @cached_property
    def _noise_root(self) -> np.ndarray:
        return _root(self._noise / np.outer(self.moments.units, self.moments.units))

    @cached_property
    def _root(self) -> np.ndarray:
        """R with RᵀR = FᵀF of standardised columns."""
        return _root(self.gram / np.outer(self.moments.scale, self.moments.scale)).T

    def _lasso(self, b: np.ndarray, lam: float) -> Estimate | None:
        """The LASSO on the release itself, as `Postprocess` solves it, with its intercept."""
        G, scale = self.moments.G, self.moments.scale
        if not self.moments.intercept:
            x, ok = _solution(_root(G).T, b, lam)
            return Estimate(scale * x, 0.0) if ok else None
        # Centred by the weighted means, which differ from those of the rows by `shift`.
        total, shift = G[-1, -1], G[:-1, -1] / G[-1, -1]
        centred = G[:-1, :-1] - total * np.outer(shift, shift)
        x, ok = _solution(_root(centred).T, b[:-1] - b[-1] * shift, lam)
        return Estimate(scale * x, float(b[-1] / total - shift @ x)) if ok else None


def _solution(root: np.ndarray, b: np.ndarray, lam: float) -> tuple[np.ndarray, bool]:
    found = solve_problems(root, b[:, None], np.array([lam]), tol=_TOL, throw=False)
    return found.x[:, 0], found.status[0] is Status.CONVERGED


def _root(matrix: np.ndarray) -> np.ndarray:
    """S with SSᵀ equal to the matrix."""
    units = np.sqrt(np.diag(matrix))
    with one_thread():
        values, vectors = np.linalg.eigh(matrix / np.outer(units, units))
    kept = np.where(values > _RANK * values[-1], values, 0.0)
    return np.ascontiguousarray(units[:, None] * vectors * np.sqrt(kept))
