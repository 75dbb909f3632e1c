"""Peers of the benchmark: each fits well without noise and adds the noise that it must."""

import importlib

import numpy as np
import pytest
from scipy.integrate import quad
from scipy.stats import norm
from sklearn.linear_model import LinearRegression, LogisticRegression

from bench.real.peers import adassp, boosted_adassp, dp_sgd, label_noise, noisy_products
from bench.real.peers import objective_perturbation as objective
from bench.real.peers import randomised_response as response
from bench.real.peers.bounded import scaled, unscaled
from bench.real.peers.gaussian import delta_of, mu_for, release

BOUNDS = np.array([[0.0, 10.0], [-1.0, 1.0], [100.0, 300.0]])
Y_BOUNDS = (0.0, 20.0)


def data(rows=4000, seed=0):
    rng = np.random.default_rng(seed)
    X = rng.uniform(BOUNDS[:, 0], BOUNDS[:, 1], (rows, 3))
    y = 4.0 + 0.5 * X[:, 0] - 2.0 * X[:, 1] + 0.02 * X[:, 2] + 0.5 * rng.standard_normal(rows)
    return X, np.clip(y, *Y_BOUNDS)


def fitted(name, X, y, epsilon, seed=1, y_bounds=Y_BOUNDS):
    module = importlib.import_module(f"bench.real.peers.{name}")
    return module.fit(
        X,
        y,
        epsilon=epsilon,
        delta=1e-6,
        y_bounds=y_bounds,
        column_bounds=BOUNDS,
        rng=np.random.default_rng(seed),
    )


@pytest.mark.parametrize(
    ("name", "far"),
    [
        ("label_noise", 0.05),
        ("noisy_products", 0.02),
        ("adassp", 0.02),
        ("boosted_adassp", 0.02),
        ("tukey", 0.2),
        ("dp_sgd", 0.2),
    ],
)
def test_without_noise_a_peer_is_least_squares(name, far):
    X, y = data()
    expected = LinearRegression().fit(X, y).predict(X)
    assert np.abs(fitted(name, X, y, 1e5).predict(X) - expected).max() < far


@pytest.mark.parametrize("name", ["noisy_products", "adassp", "boosted_adassp", "tukey", "dp_sgd"])
def test_a_peer_learns_from_many_rows_at_epsilon_3(name):
    X, y = data(rows=20_000)
    error = np.mean((fitted(name, X, y, 3.0).predict(X) - y) ** 2)
    assert error < 0.5 * np.var(y)


@pytest.mark.parametrize(
    ("epsilon", "delta"), [(0.1, 1e-3), (1.0, 1e-6), (3.0, 1e-6), (10.0, 1e-4)]
)
def test_the_calibration_is_exact(epsilon, delta):
    mu = mu_for(epsilon, delta)
    # Beyond ε/μ + μ/2 the density with the record exceeds e^ε times the one without.
    start = epsilon / mu + mu / 2.0

    def excess(x):
        return norm.pdf(x - mu) - np.exp(epsilon) * norm.pdf(x)

    found = quad(excess, start, start + 12.0, epsabs=1e-14)[0]
    assert found == pytest.approx(delta, rel=1e-5)
    assert delta_of(epsilon, 1.01 * mu) > delta


def test_the_noise_of_a_release_has_the_stated_size():
    noise = release(np.zeros(40_000), 6.0, 1.5, np.random.default_rng(0))
    assert noise.std() == pytest.approx(4.0, rel=0.02)


class Tape:
    """Stands for `release`: records what goes in, and answers as it did for the first data."""

    def __init__(self):
        self.values, self.sensitivities, self.mus = [], [], []

    def __call__(self, value, sensitivity, mu, rng):
        self.values.append(np.array(value))
        self.sensitivities.append(sensitivity)
        self.mus.append(mu)
        return value

    def replay(self, first):
        def answer(value, sensitivity, mu, rng):
            self(value, sensitivity, mu, rng)
            return first.values[len(self.values) - 1]

        return answer


def spied(monkeypatch, module, name, X, y, first=None):
    tape = Tape()
    for place in {module, adassp}:
        monkeypatch.setattr(place, "release", tape if first is None else tape.replay(first))
    fitted(name, X, y, 1.0)
    return tape


@pytest.mark.parametrize(
    ("name", "module", "unit"),
    [
        ("label_noise", label_noise, "label"),
        ("noisy_products", noisy_products, "label"),
        ("adassp", adassp, "record"),
        ("boosted_adassp", boosted_adassp, "record"),
    ],
)
@pytest.mark.parametrize("changed", [0, 7])
def test_the_releases_of_a_peer_add_up_to_the_guarantee(monkeypatch, name, module, unit, changed):
    X, y = data(rows=60)
    # An extreme neighbour: the label at one end, then far beyond the other; a row at a corner.
    y[changed] = Y_BOUNDS[0]
    if unit == "label":
        X_other, y_other = X, y.copy()
        y_other[changed] = 1e6
    else:
        X[changed] = [10.0, 1.0, 1e9]
        X_other, y_other = np.delete(X, changed, axis=0), np.delete(y, changed)
    first = spied(monkeypatch, module, name, X, y)
    other = spied(monkeypatch, module, name, X_other, y_other, first)
    assert np.sqrt(np.sum(np.square(first.mus))) == pytest.approx(mu_for(1.0, 1e-6), rel=1e-9)
    for value, neighbour, sensitivity in zip(
        first.values, other.values, first.sensitivities, strict=True
    ):
        assert np.linalg.norm(value - neighbour) <= sensitivity * (1.0 + 1e-9)


def test_a_step_of_dp_sgd_moves_by_at_most_the_clipping_norm(monkeypatch):
    X, y = data(rows=400)
    X[0], y[0] = [10.0, 1.0, 300.0], Y_BOUNDS[0]
    first = spied(monkeypatch, dp_sgd, "dp_sgd", X, y)
    y[0] = Y_BOUNDS[1]  # another record in the same place moves a sum by at most two norms
    other = spied(monkeypatch, dp_sgd, "dp_sgd", X, y, first)
    moves = [
        np.linalg.norm(a - b) / s
        for a, b, s in zip(first.values, other.values, first.sensitivities, strict=True)
    ]
    assert 0.0 < max(moves) <= 2.0 * (1.0 + 1e-9)
    assert len(moves) == dp_sgd.STEPS
    assert first.mus[0] == pytest.approx(1.0 / dp_sgd.noise_multiplier(1.0, 1e-6))


def test_the_noise_of_dp_sgd_without_sampling_is_that_of_the_gaussian_mechanism():
    found = dp_sgd.noise_multiplier(1.0, 1e-5, rate=1.0, steps=4)
    assert found == pytest.approx(2.0 / mu_for(1.0, 1e-5), rel=0.01)


def test_rows_in_the_unit_of_their_bounds_are_short():
    X = np.array([[1e9, -1e9, 0.0], [5.0, 0.0, 200.0]])
    F, z = scaled(X, np.array([1e9, 10.0]), BOUNDS, Y_BOUNDS)
    assert np.linalg.norm(F, axis=1).max() <= 1.0 + 1e-12
    assert z.tolist() == [1.0, 0.0]
    theta = np.array([1.0, 2.0, 3.0, 4.0])
    X, y = data(rows=50)
    F, _ = scaled(X, y, BOUNDS, Y_BOUNDS)
    assert unscaled(theta, BOUNDS, Y_BOUNDS).predict(X) == pytest.approx(10.0 + 10.0 * (F @ theta))


def test_the_lasso_of_noisy_products_meets_its_optimality_conditions():
    rng = np.random.default_rng(0)
    F = rng.standard_normal((30, 8))
    G, b = F.T @ F, rng.normal(0.0, 20.0, 8)
    x = noisy_products.lasso(G, b, 10.0)
    slope = b - G @ x
    assert 0 < np.count_nonzero(x) < 8
    assert np.abs(slope).max() <= 10.0 + 1e-3
    assert slope[x != 0] == pytest.approx(10.0 * np.sign(x[x != 0]), abs=1e-3)


def test_randomised_response_flips_as_often_as_it_says():
    y = np.zeros(40_000)
    flips = response.flipped(y, 1.0, np.random.default_rng(0)).mean()
    assert flips == pytest.approx(1.0 / (1.0 + np.e), abs=0.01)
    assert response.flipped(y, 50.0, np.random.default_rng(0)).sum() == 0


def test_randomised_response_undoes_what_flips_do_to_probabilities():
    X, odds = np.array([[-2.0], [0.0], [1.5]]), np.array([-2.0, 0.0, 1.5])
    q = 1.0 / (1.0 + np.e)
    p = 1.0 / (1.0 + np.exp(-odds))
    model = response.Unflipped(np.array([1.0]), 0.0, flip=q)
    true = np.clip((p - q) / (1.0 - 2.0 * q), 0.01, 0.99)
    found = 1.0 / (1.0 + np.exp(-model.predict(X)))
    np.testing.assert_allclose(found, true, atol=1e-5)


def binary_data():
    X, y = data(rows=2000)
    return X, (y > np.median(y)).astype(float)


def test_objective_perturbation_without_noise_is_ridge_logistic_regression():
    X, y = binary_data()
    F, _ = scaled(X, y, BOUNDS, (0.0, 1.0))
    # scikit-learn's C is 1 over M·Λ = 1.
    expected = LogisticRegression(C=1.0, fit_intercept=False, tol=1e-10, max_iter=1000).fit(F, y)
    found = fitted("objective_perturbation", X, y, 1e7, y_bounds=(0.0, 1.0)).predict(X)
    assert found == pytest.approx(expected.decision_function(F), abs=1e-3)


@pytest.mark.parametrize(("epsilon", "rows", "ridge"), [(1.0, 1000, 0.01), (0.1, 100, 1e-3)])
def test_objective_perturbation_keeps_to_its_budget(epsilon, rows, ridge):
    left, raised = objective.budget(epsilon, rows, ridge)
    c = 0.25 / (rows * raised)
    assert raised >= ridge
    assert left > 0.0
    # The noise and the change of the Jacobian together, as the proof adds them up.
    assert left + np.log(1.0 + 2.0 * c + c * c) == pytest.approx(epsilon, rel=1e-9)
