"""Ways to spend one guarantee: noise in the objective, or noise on every label."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, field

import numpy as np

from privasso.examples._data import Split
from privasso.noise import Gram, Isotropic, NoiseDesign, PowerLaw
from privasso.operators import Covariates
from privasso.privacy import LabelDP, release_labels

#: Standard errors added to the estimate of the error, as in `choose_lambda`.
_CAUTION = 2.0

DESIGNS: dict[str, NoiseDesign] = {
    "isotropic": Isotropic(1.0),
    "power 1/2": PowerLaw(1.0, 0.5),
    "power 1": PowerLaw(1.0, 1.0),
    "Gram": Gram(1.0),
}
LABEL_NOISE, NO_PRIVACY = "label noise", "no privacy"
#: Columns divided by their norms first, which is free: under label privacy they are public.
STANDARDISED = {
    "isotropic, standardised": "isotropic",
    "label noise, standardised": LABEL_NOISE,
    "no privacy, standardised": NO_PRIVACY,
}


@dataclass(frozen=True, eq=False)
class Fitted:
    """What the candidates on one set of covariates share."""

    split: Split
    rows: Covariates
    gram: np.ndarray = field(repr=False)
    root: np.ndarray = field(repr=False)
    labels: np.ndarray = field(repr=False)
    X_test: np.ndarray = field(repr=False)

    @property
    def label_variance(self) -> float:
        """Variance of labels that fill their bounds."""
        low, high = self.split.y_bounds
        return ((high - low) / 6.0) ** 2


@dataclass(frozen=True, eq=False)
class Candidate:
    """A noisy b, and the law of its noise: independent of variances D, or covariance s²FᵀF."""

    method: str
    epsilon: float
    draw: int
    b: np.ndarray = field(repr=False)
    mean_label: float = 0.0
    D: np.ndarray | None = field(default=None, repr=False)
    s2: float = 0.0

    def risk(self, data: Fitted, x: np.ndarray) -> tuple[float, float]:
        """Stein's estimate plus two standard errors, and one: the rule of `choose_lambda`.

        For label noise tr(s²FᵀF J) = s²|S| and the mean squared deviation is
        4 (s²‖Fx‖² + s⁴|S|): the same formulae with the other covariance.
        """
        S = np.flatnonzero(x)
        if S.size == 0:
            return 0.0, 0.0
        gram = data.gram[np.ix_(S, S)]
        fitted = float(x[S] @ gram @ x[S])
        sure = fitted - 2.0 * float(self.b[S] @ x[S]) + 2.0 * data.label_variance * S.size
        if self.D is None:
            trace, spread = self.s2 * S.size, self.s2 * fitted + self.s2**2 * S.size
        else:
            norms = np.sqrt(np.diag(gram))
            inverse = np.linalg.inv(np.linalg.cholesky(gram / norms / norms[:, None]))
            J = (inverse.T @ inverse) / norms / norms[:, None]
            D = self.D[S]
            trace, spread = float(D @ np.diag(J)), float(D @ x[S] ** 2 + D @ J**2 @ D)
        error = 2.0 * math.sqrt(spread)
        return sure + 2.0 * trace + _CAUTION * error, error


def prepared(split: Split, *, standardise: bool, root: Callable[..., np.ndarray]) -> Fitted:
    """Centre the columns, and divide them by their norms if asked."""
    X, X_test = split.X, split.X_test
    if standardise:
        norms = np.sqrt(Covariates(X, centre=True).squares)
        X, X_test = X / norms, X_test / norms
    rows = Covariates(X, centre=True)
    low, high = split.y_bounds
    labels = np.clip(split.y, low, high) - 0.5 * (low + high)
    return Fitted(split, rows, rows.gram, root(rows), labels, X_test)


def candidate(
    data: Fitted, method: str, privacy: LabelDP, draw: int, rng: np.random.Generator
) -> Candidate:
    """Draw the noise of a method once."""
    how = STANDARDISED.get(method, method)
    m = data.rows.shape[0]
    if how in DESIGNS:
        release = release_labels(data.rows, data.split.y, privacy, DESIGNS[how], rng=rng)
        D = release.sigma**2
        return Candidate(method, privacy.epsilon, draw, release.b, release.mean_label, D=D)
    # One label moves its own noisy copy by at most the width: sensitivity width/s = μ.
    s = privacy.width / privacy.mu if how == LABEL_NOISE else 0.0
    noisy = data.labels + s * rng.standard_normal(m)
    mean = privacy.centre + float(noisy.mean())
    return Candidate(method, privacy.epsilon, draw, data.rows.rmatvec(noisy), mean, s2=s**2)
