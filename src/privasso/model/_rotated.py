"""Sparse linear data whose covariates have a given spectrum and random directions."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import SupportsIndex

import numpy as np
from numpy.typing import NDArray

from privasso._validation import generator, integer
from privasso.model._model import Model, Sample
from privasso.model._spectrum import MarchenkoPastur, Spectrum
from privasso.scales import ScaleLaw, Uniform

FloatArray = NDArray[np.float64]


@dataclass(frozen=True)
class RotatedModel:
    """y = F x⁰ + ξ with F = A diag(s), A = U D^½ Vᵀ, U and V uniform among orthogonal matrices.

    D holds the eigenvalues of AᵀA, so F is a right-rotationally invariant matrix with rescaled
    columns. Coefficients, label noise and scales are those of `Model`, which is the case of the
    Marchenko–Pastur spectrum. Only `state_evolution` makes predictions for a `RotatedModel`.

    Parameters
    ----------
    alpha, rho, sigma_xi, scales
        As in `Model`.
    spectrum : Spectrum
        The eigenvalues of AᵀA. Their mean over the columns is made α, so that s keeps its meaning.

    Examples
    --------
    >>> from privasso.model import Orthogonal, RotatedModel
    >>> s = RotatedModel(alpha=0.5, spectrum=Orthogonal()).sample(n_features=100, rng=0)
    >>> A = s.F / s.v**0.5
    >>> bool(abs(A @ A.T - np.eye(50)).max() < 1e-9)
    True
    """

    alpha: float = 0.5
    rho: float = 0.1
    sigma_xi: float = 0.1
    scales: ScaleLaw = field(default_factory=Uniform)
    spectrum: Spectrum = field(default_factory=MarchenkoPastur)

    def __post_init__(self) -> None:
        plain = self.independent()
        for name in ("alpha", "rho", "sigma_xi"):
            object.__setattr__(self, name, getattr(plain, name))
        if not isinstance(self.spectrum, Spectrum):
            raise ValueError(
                "spectrum must be a Spectrum, such as Orthogonal() or TwoLevel(ratio), not an "
                f"object of type {type(self.spectrum).__name__}"
            )

    def independent(self) -> Model:
        """The model of independent entries with the same sizes, signal, noise and scales."""
        return Model(self.alpha, self.rho, self.sigma_xi, self.scales)

    def sample(
        self, n_features: SupportsIndex, rng: int | np.random.Generator | None = None
    ) -> Sample:
        """Draw a data set with N = n_features columns and M = round(alpha·N) rows.

        It takes two factorisations of random matrices of the size of F.

        Examples
        --------
        >>> from privasso.model import RotatedModel, TwoLevel
        >>> RotatedModel(alpha=1.5, spectrum=TwoLevel(100.0)).sample(40, rng=0)
        Sample(<60 rows, 40 columns>)
        """
        N = integer("n_features", n_features, minimum=1)
        M = round(self.alpha * N)
        if M < 1:
            raise ValueError(f"alpha={self.alpha!r} with n_features={N} gives no rows; use more")
        rng = generator(rng)
        s = self.scales.draw(N, rng)
        x0 = np.where(rng.random(N) < self.rho, rng.standard_normal(N), 0.0)
        d = self.spectrum.values(M, N)
        left, right = uniform_frame(M, d.size, rng), uniform_frame(N, d.size, rng)
        F = (left * np.sqrt(d)) @ right.T
        F *= s
        y = F @ x0 + self.sigma_xi * rng.standard_normal(M)
        return Sample(F=F, y=y, x0=x0, v=s * s)


def uniform_frame(n: int, k: int, rng: np.random.Generator) -> FloatArray:
    """K orthonormal vectors of length n in uniformly random directions, as columns."""
    Q, R = np.linalg.qr(rng.standard_normal((n, k)))
    # Without the signs of R the law would depend on how the factorisation chooses them.
    return Q * np.sign(np.diag(R))
