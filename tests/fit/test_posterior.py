"""The best guess from a release, against exact posteriors, conditioning by hand, and simulation."""

import os
import subprocess
import sys
from itertools import product

import numpy as np
import pytest
from scipy.special import logsumexp
from sklearn.datasets import load_diabetes

import privasso as pv
from privasso.fit import posterior_mean
from privasso.fit._gibbs import posterior_moments
from privasso.fit._release_law import posterior
from privasso.noise import Factored
from privasso.operators import Covariates
from privasso.programs import Release

N = 8
NARROW = 1e-4


def exact(A, h, pi, wide):
    """Posterior mean and deviation by enumeration, hyperparameters known."""
    logs, means, squares = [], [], []
    for bits in product([0, 1], repeat=N):
        on = np.array(bits)
        g = np.where(on == 1, wide, NARROW)
        P = A + np.diag(1.0 / g)
        S = np.linalg.inv(P)
        m = S @ h
        prior = np.sum(np.where(on == 1, np.log(pi), np.log1p(-pi)))
        logs.append(prior + 0.5 * h @ m - 0.5 * np.linalg.slogdet(P)[1] - 0.5 * np.sum(np.log(g)))
        means.append(m)
        squares.append(m * m + np.diag(S))
    p = np.exp(np.array(logs) - logsumexp(logs))
    mean = p @ np.array(means)
    return mean, np.sqrt(p @ np.array(squares) - mean**2)


@pytest.mark.parametrize(("pi", "wide"), [(0.2, 1.0), (0.999, 0.5)], ids=["sparse", "dense"])
def test_against_enumeration(pi, wide):
    rng = np.random.default_rng(3)
    errors = {"guess": [], "best": []}
    for _ in range(60):
        R = rng.standard_normal((12, N)) @ (np.eye(N) + 0.3 * rng.standard_normal((N, N)))
        A = R.T @ R / 3.0
        on = rng.random(N) < pi
        x = np.sqrt(np.where(on, wide, NARROW)) * rng.standard_normal(N)
        h = A @ x + R.T @ rng.standard_normal(12) / np.sqrt(3.0)
        mean, _ = posterior_moments(A, h, largest=4.5)
        best, _ = exact(A, h, pi, wide)
        errors["guess"].append(np.sum((mean - x) ** 2))
        errors["best"].append(np.sum((best - x) ** 2))
    assert np.mean(errors["guess"]) <= 1.15 * np.mean(errors["best"])


def test_the_enumeration_itself():
    # Integration on a grid in one dimension, the other seven without data.
    A, h = np.zeros((N, N)), np.zeros(N)
    A[0, 0], h[0] = 3.0, 2.0
    mean, deviation = exact(A, h, 0.3, 0.8)
    x = np.linspace(-6, 6, 400_001)
    normal = [np.exp(-0.5 * x * x / g) / np.sqrt(2 * np.pi * g) for g in (0.8, NARROW)]
    density = (0.3 * normal[0] + 0.7 * normal[1]) * np.exp(-1.5 * x * x + 2.0 * x)
    density /= density.sum()
    assert mean[0] == pytest.approx(density @ x, abs=1e-6)
    assert deviation[0] == pytest.approx(np.sqrt(density @ x**2 - (density @ x) ** 2), rel=1e-5)


def test_precise_data_leave_nothing_to_the_prior():
    rng = np.random.default_rng(0)
    R = rng.standard_normal((60, 12))
    A = 1e6 * R.T @ R
    x = rng.standard_normal(12) * 0.3
    mean, deviation = posterior_moments(A, A @ x, largest=4.5)
    exactly = np.sqrt(np.diag(np.linalg.inv(A)))
    assert np.max(np.abs(mean - x) / exactly) < 0.1
    np.testing.assert_allclose(deviation, exactly, rtol=0.1)


def test_no_data_leave_the_prior():
    mean, deviation = posterior_moments(np.zeros((6, 6)), np.zeros(6), largest=4.5)
    assert np.all(np.abs(mean) < 0.3 * deviation)
    assert np.sum(deviation**2) < 4.0 * 4.5


@pytest.mark.parametrize("part", [0.1, 1.0], ids=["sparse", "dense"])
def test_sixty_coefficients(part):
    """Enough to find out how many are large, and how large: the deviations are calibrated.

    A dense signal is then plain conditioning under a Gaussian prior of its size.
    """
    rng = np.random.default_rng(1)
    n, g = 60, 0.05 / part
    R = rng.standard_normal((200, n))
    A = R.T @ R / 4.0
    stated, distances, errors = [], [], []
    for _ in range(12):
        x = np.sqrt(g) * rng.standard_normal(n) * (rng.random(n) < part)
        h = A @ x + R.T @ rng.standard_normal(200) / 2.0
        gauss = np.linalg.solve(A + np.eye(n) / (part * g), h)
        mean, deviation = posterior_moments(A, h, largest=4.5)
        stated.append(np.sum(deviation**2))
        distances.append(np.sum((mean - gauss) ** 2))
        errors.append([np.sum((gauss - x) ** 2), np.sum((mean - x) ** 2)])
    ridge, ours = np.mean(errors, axis=0)
    assert 0.8 < np.sqrt(ours / np.mean(stated)) < 1.25
    if part == 1.0:
        assert np.mean(distances) < 0.05 * ridge
    else:
        assert ours < 0.6 * ridge  # a prior that knows of sparsity is worth much


def simulated(seed, weights, centre=True, m=4000, size=1.0):
    """A release from the model: weighted rows, normal labels, normal noise."""
    rng = np.random.default_rng(seed)
    n = 6
    F = rng.standard_normal((m, n)) @ (np.eye(n) + 0.1 * rng.standard_normal((n, n)))
    F = F * np.logspace(-2, 2, n) + np.linspace(-4, 4, n) * np.logspace(-2, 2, n)
    w = np.ones(m) if weights is None else weights(rng, m)
    rows = Covariates(F, centre=centre, weights=None if weights is None else w)
    x = np.array([0.5, 0.0, -0.4, 0.0, 0.0, 0.3]) / np.sqrt(rows.squares / rows.total)
    C = F - rows.mean
    y = 2.0 + C @ x + 0.5 * rng.standard_normal(m) if centre else C @ x + 0.5
    scale = np.sqrt(rows.squares)
    root = size * scale[:, None] * (np.eye(n) + 0.3 * rng.standard_normal((n, n)))
    b = C.T @ (w * (y - 1.5)) + root @ rng.standard_normal(n)
    total = float(w @ (y - 1.5) + 20.0 * rng.standard_normal())
    release = Release(
        b=b,
        covariance=Factored(root),
        n_rows=m,
        centre=1.5,
        label_sum=total if centre else None,
        sigma_sum=20.0 if centre else None,
        weight_sum=float(w.sum()),
    )
    return release, rows, (None if weights is None else w), x


WEIGHTS = {
    "none": None,
    "any": lambda rng, m: rng.exponential(size=m) + 0.1,
    "zeros": lambda rng, m: rng.exponential(size=m) * (rng.random(m) < 0.6),
}


@pytest.mark.parametrize("weights", WEIGHTS)
def test_it_recovers_the_coefficients_and_the_level(weights):
    z, levels = [], []
    for seed in range(12):
        release, rows, w, x = simulated(seed, WEIGHTS[weights])
        found = posterior(release, rows, w, label_deviation=1.0)
        z.append((found.coef - x) / found.deviation)
        levels.append(found.mean_label - 2.0)
        scale = np.sqrt(rows.squares / rows.total)
        assert np.max(np.abs(scale * (found.coef - x))) < 0.15
    # The prior has no exact zeros and the label variance is larger than half of that stated, so
    # that deviations are on the careful side.
    assert 0.3 < np.sqrt(np.mean(np.square(z))) < 1.3
    assert np.max(np.abs(levels)) < 0.06


def test_without_an_intercept_the_centre_of_the_bounds_is_put_back():
    release, rows, w, _ = simulated(3, WEIGHTS["any"], centre=False)
    assert w is not None
    found = posterior(release, rows, w, label_deviation=1.0)
    shifted = Release(
        b=release.b + 1.5 * rows.rmatvec(w),
        covariance=release.covariance,
        n_rows=release.n_rows,
        centre=0.0,
        weight_sum=release.weight_sum,
    )
    again = posterior(shifted, rows, w, label_deviation=1.0)
    scale = np.sqrt(rows.squares / rows.total)
    np.testing.assert_allclose(scale * found.coef, scale * again.coef, atol=0.01)
    assert found.mean_label == again.mean_label == 0.0


def problem(seed, m=40, n=5):
    rng = np.random.default_rng(seed)
    F = rng.standard_normal((m, n)) @ (np.eye(n) + 0.5 * rng.standard_normal((n, n)))
    F *= np.exp(rng.normal(0, 1, n))
    A = rng.standard_normal((n, n))
    return F, A @ A.T * np.trace(F.T @ F) / n + np.diag(np.diag(F.T @ F)), rng


def test_the_size_of_the_signal_follows_from_the_release():
    F, noise, rng = problem(1, m=200, n=20)
    G, m = F.T @ F, F.shape[0]
    errors = {"posterior": [], "nothing": [], "least squares": []}
    for size in (0.05, 0.2, 0.5):
        for _ in range(40):
            x0 = size * rng.standard_normal(20) / np.sqrt(np.diag(G) / m)
            y = F @ x0 + rng.standard_normal(m)
            b = F.T @ y + np.linalg.cholesky(noise) @ rng.standard_normal(20)
            guesses = {
                "posterior": posterior_mean(G, b, noise, m, 1.0),
                "nothing": np.zeros(20),
                "least squares": np.linalg.solve(G, b),
            }
            for name, x in guesses.items():
                errors[name].append(np.sum((F @ (x - x0)) ** 2))
    totals = np.array([np.reshape(errors[name], (3, 40)).mean(axis=1) for name in errors])
    assert np.all(totals[0] <= 1.05 * totals.min(axis=0))


def test_units_do_not_matter():
    F, noise, rng = problem(2)
    G, b, m = F.T @ F, 30 * rng.standard_normal(5), F.shape[0]
    plain = posterior_mean(G, b, noise, m, 2.0)
    # Powers of two change no digit. Labels in other units: b, its noise, coefficients follow.
    scaled = posterior_mean(G, 2.0**10 * b, 2.0**20 * noise, m, 2.0**11)
    np.testing.assert_array_equal(scaled, 2.0**10 * plain)
    # Columns in other units: coefficients shrink.
    s = 2.0 ** np.array([7, -3, 0, 20, -11])
    other = posterior_mean(G * np.outer(s, s), b * s, noise * np.outer(s, s), m, 2.0)
    np.testing.assert_array_equal(other, plain / s)
    # Other units to the error of the chain.
    other = posterior_mean(1e4 * G, 1e2 * b, 1e4 * noise, m, 2.0)
    np.testing.assert_allclose(other * 1e2, plain, atol=0.1 * np.max(np.abs(plain)))


@pytest.mark.parametrize("epsilon", [pytest.param(3.0, marks=pytest.mark.slow), 10.0])
def test_close_to_the_best_lambda_on_real_columns(epsilon):
    X, y = load_diabetes(return_X_y=True, scaled=False)
    X, y = np.asarray(X) / np.std(X, axis=0), np.asarray(y)
    lost = []
    for seed in range(12):
        test = np.random.default_rng(seed).permutation(442) < 110
        privacy = pv.LabelDP(epsilon, 1e-6, (0.0, 350.0))
        est = pv.PrivateLasso("auto", privacy, random_state=seed).fit(X[~test], y[~test])
        lams = np.max(np.abs(est.release_.b)) * np.geomspace(1.0, 1e-3, 30)
        path = est.path(X[~test], lams)
        spread = np.mean((y[test] - y[test].mean()) ** 2)
        predicted = X[test] @ path.coef + path.intercept
        best = np.max(1.0 - np.mean((y[test][:, None] - predicted) ** 2, axis=0) / spread)
        lost.append(best - est.score(X[test], y[test]))
    assert np.median(lost) < 0.06


INTERRUPTED = """
import random, signal
import numpy as np
from privasso.fit._gibbs import posterior_moments
inside, stopped = False, 0
def stop(*_):
    if inside:
        raise KeyboardInterrupt
signal.signal(signal.SIGALRM, stop)
draw = random.Random(0)
posterior_moments(np.eye(3), np.ones(3), 1.0, sweeps=3)
for _ in range(1500):
    signal.setitimer(signal.ITIMER_REAL, draw.uniform(1e-6, 3e-4))
    try:
        inside = True
        posterior_moments(np.eye(3), np.ones(3), 1.0, sweeps=3)
    except KeyboardInterrupt:
        stopped += 1
    inside = False
print(stopped)
"""


@pytest.mark.skipif(os.name == "nt", reason="there are no timers that send signals")
def test_an_interruption_does_not_end_the_process():
    """Compiled code that looks into a Python object must not meet Ctrl-C."""
    done = subprocess.run([sys.executable, "-c", INTERRUPTED], capture_output=True, text=True)
    assert done.returncode == 0
    assert int(done.stdout) > 100
