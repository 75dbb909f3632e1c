"""The data of the examples, and the methods that are compared on them."""

from __future__ import annotations

import math
import warnings
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from privasso._validation import generator
from privasso.fit import FitOptions, PrivacyWarning, plan_fit, posterior_mean
from privasso.noise import Gram, Isotropic, NoiseDesign, PowerLaw
from privasso.operators import Covariates
from privasso.planning import release_labels
from privasso.privacy import LabelDP
from privasso.scales import LogNormal

#: Bounds of the labels, which are scores of disease progression: round numbers that contain any
#: such score, not the extremes of the data.
DIABETES_BOUNDS = (0.0, 350.0)
_TEST_SHARE = 0.25


@dataclass(frozen=True, eq=False)
class Split:
    """Rows for fitting, rows for testing, and the bounds of the labels."""

    X: np.ndarray = field(repr=False)
    y: np.ndarray = field(repr=False)
    X_test: np.ndarray = field(repr=False)
    y_test: np.ndarray = field(repr=False)
    y_bounds: tuple[float, float]


def diabetes_columns(degree: int = 2) -> tuple[dict[str, np.ndarray], np.ndarray]:
    """Columns and labels of scikit-learn's diabetes data in their own units.

    With degree 1 these are the ten measurements. With degree 2 they also include the squares and
    products of the measurements minus their means; without this, a product would be nearly
    collinear with its factors. The square of `sex` is left out: `sex` takes two values, so its
    square is a linear function of it.
    """
    from sklearn.datasets import load_diabetes

    bunch: Any = load_diabetes(scaled=False)
    names: list[str] = bunch.feature_names
    target: np.ndarray = bunch.target
    columns: dict[str, np.ndarray] = dict(zip(names, bunch.data.T, strict=True))
    if degree == 1:
        return columns, target
    middle = {name: column - column.mean() for name, column in columns.items()}
    for i, first in enumerate(names):
        for second in names[i:]:
            if (first, second) != ("sex", "sex"):
                name = f"{first}^2" if first == second else f"{first}*{second}"
                columns[name] = middle[first] * middle[second]
    return columns, target


def diabetes_splits(
    count: int, degree: int = 2, *, rng: int | np.random.Generator | None = None
) -> Iterator[Split]:
    """Yield random splits of the diabetes data, with a quarter of the rows for testing."""
    rng = generator(rng)
    columns, y = diabetes_columns(degree)
    X = np.stack(list(columns.values()), axis=1)
    for _ in range(count):
        order = rng.permutation(y.size)
        cut = round((1.0 - _TEST_SHARE) * y.size) - 1
        fit, test = order[:cut], order[cut:]
        yield Split(X[fit], y[fit], X[test], y[test], DIABETES_BOUNDS)


def simulated_splits(
    n_rows: int = 20_000, n_features: int = 200, rng: int | np.random.Generator | None = None
) -> Iterator[Split]:
    """Yield one large simulated split with scales over orders of magnitude.

    One coefficient in ten is nonzero. The covariates explain about 70 % of the variance of the
    labels. The bounds are at plus and minus four standard deviations of the labels.
    """
    rng = generator(rng)
    law, rho = LogNormal(0.0, 1.5), 0.1
    s = law.draw(n_features, rng)
    x0 = np.zeros(n_features)
    x0[rng.permutation(n_features)[: max(1, round(rho * n_features))]] = 1.0
    x0 *= rng.standard_normal(n_features)
    signal = float(np.sum((s * x0) ** 2))
    noise = math.sqrt(0.3 / 0.7 * signal)
    total = n_rows + n_rows // 4
    X = rng.standard_normal((total, n_features)) * s
    y = X @ x0 + noise * rng.standard_normal(total)
    bound = 4.0 * math.sqrt(signal + noise**2)
    yield Split(X[:n_rows], y[:n_rows], X[n_rows:], y[n_rows:], (-bound, bound))


#: Methods with noise in the objective, by the design of the noise.
NOISES: dict[str, NoiseDesign] = {
    "isotropic": Isotropic(1.0),
    "power 1/2": PowerLaw(1.0, 0.5),
    "power 1": PowerLaw(1.0, 1.0),
    "Gram": Gram(1.0),
}
DEFAULT, LABEL_NOISE, NO_PRIVACY = "default", "label noise", "no privacy"
#: Methods that first divide the columns by their norms, and the method that follows. Under label
#: privacy the columns are public, so this costs no privacy.
STANDARDISED = {
    "isotropic, standardised": "isotropic",
    "label noise, standardised": LABEL_NOISE,
    "no privacy, standardised": NO_PRIVACY,
}
METHODS = (DEFAULT, *NOISES, LABEL_NOISE, NO_PRIVACY, *STANDARDISED)
#: Values of λ that are tried on the test rows, relative to the one that the default fit chooses.
_LAMS = np.geomspace(1e2, 1e-2, 18)


@dataclass(frozen=True, eq=False)
class Prepared:
    """The centred columns of a split and what is computed from them once, for all methods."""

    split: Split
    rows: Covariates
    gram: np.ndarray = field(repr=False)
    """FᵀF of the centred columns F."""
    root: np.ndarray = field(repr=False)
    """R with RᵀR = FᵀF."""
    labels: np.ndarray = field(repr=False)
    """Labels clipped to their bounds, minus the middle of the bounds."""
    X_test: np.ndarray = field(repr=False)

    @property
    def label_deviation(self) -> float:
        """Assumed deviation of the labels: their bounds are six of them apart."""
        low, high = self.split.y_bounds
        return (high - low) / 6.0


@dataclass(frozen=True, eq=False)
class Perturbed:
    """b = Fᵀy with the noise of one method, drawn once, and the covariance of that noise."""

    method: str
    epsilon: float
    draw: int
    b: np.ndarray = field(repr=False)
    mean_label: float
    noise: np.ndarray = field(repr=False)

    def target(self, data: Prepared) -> np.ndarray:
        """The coefficients that the rule of `choose_lambda` looks for along the path."""
        m = data.rows.shape[0]
        return posterior_mean(data.gram, self.b, self.noise, m, data.label_deviation)


def prepare(split: Split, *, standardise: bool) -> Prepared:
    """Centre the columns; with `standardise`, divide them by their norms first."""
    X, X_test = split.X, split.X_test
    if standardise:
        norms = np.sqrt(Covariates(X, centre=True).squares)
        X, X_test = X / norms, X_test / norms
    rows = Covariates(X, centre=True)
    low, high = split.y_bounds
    labels = np.clip(split.y, low, high) - 0.5 * (low + high)
    return Prepared(split, rows, rows.gram, _root(rows), labels, X_test)


def _root(rows: Covariates) -> np.ndarray:
    """R with RᵀR = FᵀF, from eigenvalues, so that collinear columns are allowed."""
    norms = np.sqrt(rows.squares)
    values, vectors = np.linalg.eigh(rows.gram / norms / norms[:, None])
    return (np.sqrt(np.maximum(values, 0.0))[:, None] * vectors.T) * norms


def is_private(method: str) -> bool:
    """Whether a method has a guarantee at all."""
    return STANDARDISED.get(method, method) != NO_PRIVACY


def perturb(
    data: Prepared, method: str, privacy: LabelDP, draw: int, rng: np.random.Generator
) -> Perturbed:
    """Draw the noise of a method once."""
    base = STANDARDISED.get(method, method)
    if base in NOISES:
        release = release_labels(data.rows, data.split.y, privacy, NOISES[base], rng=rng)
        b, mean, covariance = release.b, release.mean_label, release.covariance.matrix()
    else:
        # A change of one label shifts its noisy copy by at most the width, so that μ = width/s.
        s = privacy.width / privacy.mu if base == LABEL_NOISE else 0.0
        noisy = data.labels + s * rng.standard_normal(data.rows.shape[0])
        mean = privacy.centre + float(noisy.mean())
        b, covariance = data.rows.rmatvec(noisy), s * s * data.gram
    return Perturbed(method, privacy.epsilon, draw, b, mean, covariance)


def default_fits(
    split: Split, privacy: LabelDP, draws: int, rng: np.random.Generator
) -> Iterator[dict[str, tuple[float, int]]]:
    """R² on new rows and non-zero coefficients of default fits, for their own λ and the best one.

    All settings of a fit follow from X and the guarantee. They are computed once for all draws.
    """
    plan = plan_fit(split.X, FitOptions(privacy), seeded=True)
    for _ in range(draws):
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", PrivacyWarning)  # the labels are fitted many times
            released = plan.release(split.y, rng=rng)
        model = released.solve()
        path = released.path(model.lam * _LAMS)
        coefs, intercepts = [model.coef, *path.coef.T], [model.intercept, *path.intercept]
        found = [
            (r2(split.y_test, split.X_test @ coef + intercept), int(np.count_nonzero(coef)))
            for coef, intercept in zip(coefs, intercepts, strict=True)
            if np.isfinite(intercept)
        ]
        yield {"auto": found[0], "oracle": max(found)}


def r2(y: np.ndarray, predicted: np.ndarray) -> float:
    """R² of predictions."""
    return 1.0 - float(np.sum((y - predicted) ** 2) / np.sum((y - y.mean()) ** 2))
