"""Noise of a full covariance and rows that are shrunk: no label moves the release too far."""

import itertools
from fractions import Fraction

import numpy as np
import pytest
import scipy.sparse as sp
from products import moved, statistic

import privasso as pv
from privasso.noise import Diagonal, Factored
from privasso.operators import Covariates
from privasso.planning import calibrate, release_labels, release_mechanism
from privasso.programs import Calibration

M = 28
BOUNDS = (-1.0, 3.0)
PRIVACY = pv.LabelDP(1.0, 1e-5, BOUNDS, mechanism="release")
SHRINKS = (0.0, 0.25, 0.75)
STORAGES = {"dense": np.asarray, "float32": np.float32, "csr": sp.csr_array}
KINDS = ("ordinary", "heavy tails", "wide", "collinear", "sparse rows")


def matrix(kind, seed=0):
    rng = np.random.default_rng(seed)
    F = rng.standard_normal((M, 40 if kind == "wide" else 5))
    F *= np.exp(rng.uniform(-5, 5, F.shape[1]))
    if kind == "heavy tails":  # rows whose weights go down to a millionth
        F *= np.geomspace(1.0, 1e6, M)[:, None]
    elif kind == "collinear":
        F[:, 1], F[:, 3] = F[:, 0], 2.5
    elif kind == "sparse rows":
        F[rng.random(F.shape) < 0.6] = 0.0
        F[::3] = 0.0
    return np.float32(F).astype(np.float64)  # the same numbers in every storage


def given_weights(kind):
    rng = np.random.default_rng(3)
    if kind == "none":
        return None
    w = rng.exponential(size=M)
    if kind == "zeros":
        w[rng.random(M) < 0.4] = 0.0
    return np.geomspace(1e-6, 10.0, M) if kind == "spread" else w


def moves(rows, calibration, privacy=PRIVACY):
    """By how many deviations each label moves the integers from one bound to the other, squared."""
    y = np.random.default_rng(1).uniform(-2.0, 4.0, rows.shape[0])
    base = statistic(rows, y, privacy, calibration)
    return base, moved(rows, y, range(rows.shape[0]), privacy, calibration)


#: Every kind of weights, and every storage; all pairs of them are slow.
PAIRS = [("dense", "any"), ("dense", "spread"), ("float32", "none"), ("csr", "zeros")]
ALL = list(itertools.product(STORAGES, ("none", "any", "zeros", "spread")))


@pytest.mark.parametrize(
    "pairs", [PAIRS, pytest.param(ALL, marks=pytest.mark.slow)], ids=["few", "all"]
)
@pytest.mark.parametrize("centre", [False, True])
@pytest.mark.parametrize(
    ("kind", "shrink"),
    # Without shrinking, the search for the best shape takes long on rows that all matter.
    [
        (kind, shrink)
        for kind, shrink in itertools.product(KINDS, SHRINKS)
        if shrink > 0.0 or kind not in ("heavy tails", "wide")
    ],
)
def test_no_label_exceeds_the_sensitivity_and_most_of_it_is_used(shrink, centre, kind, pairs):
    for storage, weights in pairs:
        if shrink == 0.0 and weights == "spread":
            continue
        stored, w = STORAGES[storage](matrix(kind)), given_weights(weights)
        rows = Covariates(stored, centre=centre, weights=w)
        calibration = calibrate(rows, PRIVACY, pv.Shaped(shrink=shrink))
        base, squared = moves(rows, calibration)
        case = (storage, weights)
        assert base.mu <= PRIVACY.mu, case
        assert max(squared) <= Fraction(base.mu) ** 2, case
        assert max(squared) >= Fraction(0.99 * PRIVACY.mu) ** 2, case
        if w is not None:
            assert all(squared[k] == 0 for k in np.flatnonzero(w == 0.0)), case


def test_weights_of_a_millionth_and_of_nothing():
    rows = Covariates(matrix("heavy tails"), centre=False)
    calibration = calibrate(rows, PRIVACY, pv.Shaped())
    assert calibration.weights is not None
    assert calibration.weights.min() < 1e-4
    # Noise that does not cover a row: its label is left out altogether.
    F = np.column_stack([np.arange(1.0, 5.0), np.zeros(4)])
    F[2] = [0.0, 1.0]
    thin = Factored(np.array([[3.0], [0.0]]))
    w = release_mechanism(PRIVACY).weights(Covariates(F, centre=False), thin, 0.0)
    assert w is not None
    assert w[2] == 0.0
    calibration = Calibration(thin, 0.0, PRIVACY.mu, w)
    base, squared = moves(Covariates(F, centre=False), calibration)
    assert squared[2] == 0
    assert max(squared) <= Fraction(base.mu) ** 2 <= Fraction(PRIVACY.mu) ** 2


@pytest.mark.parametrize("noise", [pv.PowerLaw(1.0, 0.5), pv.Gram(1.0)], ids=repr)
@pytest.mark.parametrize("centre", [False, True])
@pytest.mark.parametrize("storage", STORAGES)
def test_designs_hold_with_weights_too(noise, centre, storage):
    for weights in ("any", "zeros", "spread"):
        w = given_weights(weights)
        rows = Covariates(STORAGES[storage](matrix("ordinary")), centre=centre, weights=w)
        calibration = calibrate(rows, PRIVACY, noise)
        assert calibration.weights is rows.weights  # nothing is shrunk
        base, squared = moves(rows, calibration)
        assert max(squared) <= Fraction(base.mu) ** 2 <= Fraction(PRIVACY.mu) ** 2
        # The shares of columns and label sum are bounded one by one, which may waste a part.
        assert max(squared) >= Fraction(0.6 * PRIVACY.mu) ** 2


class Silent(np.random.Generator):
    """A generator whose bits make all noise zero: the release is then its own mean."""

    def __init__(self):
        super().__init__(np.random.PCG64(0))

    def bytes(self, length):
        n = length // 24
        return np.repeat(np.array([0, 1, 0], dtype=np.uint64), n).tobytes()


@pytest.mark.parametrize("shrink", SHRINKS)
@pytest.mark.parametrize("centre", [False, True])
@pytest.mark.parametrize("weights", ["none", "any", "zeros"])
def test_the_mean_is_what_the_formula_says(shrink, centre, weights):
    F, y = matrix("ordinary"), np.random.default_rng(1).uniform(-3, 5, M)
    w0 = np.ones(M) if weights == "none" else given_weights(weights)
    assert w0 is not None
    rows = Covariates(F, centre=centre, weights=None if weights == "none" else w0)
    noise = pv.Shaped(shrink=shrink)
    release = release_labels(rows, y, PRIVACY, noise, fit_intercept=centre, rng=Silent())
    # Dense algebra: the covariance of the release alone tells the weights.
    Fc = F - (w0 @ F) / w0.sum() if centre else F
    S = release.covariance.matrix()
    size = np.sqrt(
        np.sum(Fc * np.linalg.solve(S, Fc.T).T, axis=1)
        + (0.0 if release.sigma_sum is None else release.sigma_sum**-2)
    )
    w = np.minimum(w0, PRIVACY.mu / PRIVACY.label_width / size)
    labels = w * (np.clip(y, *BOUNDS) - 1.0)
    assert np.max(np.abs(release.b - Fc.T @ labels) / release.sigma) < 1e-6
    assert release.weight_sum == pytest.approx(w.sum(), rel=1e-6)
    assert (release.label_sum is not None) == centre
    if centre:
        assert release.label_sum == pytest.approx(labels.sum(), abs=1e-5)
        assert release.mean_label == pytest.approx(1.0 + labels.sum() / w.sum(), abs=1e-5)
    shrunk = int(np.sum(w < w0 * (1 - 1e-7)))
    assert shrunk == pytest.approx(shrink * np.sum(w0 > 0), abs=1)


def test_the_noise_has_the_stated_covariance():
    F = matrix("ordinary")
    rows = Covariates(F, centre=True)
    calibration = calibrate(rows, PRIVACY, pv.Shaped())
    y = np.zeros(M)
    mean = release_labels(rows, y, PRIVACY, calibration, rng=Silent())
    draws = [release_labels(rows, y, PRIVACY, calibration, rng=seed) for seed in range(1200)]
    joint = np.array([np.append(d.b, d.label_sum or 0.0) for d in draws])
    noise = joint - np.append(mean.b, mean.label_sum or 0.0)
    white = np.column_stack(
        [mean.covariance.whiten(noise[:, :-1].T).T, noise[:, -1] / (mean.sigma_sum or 1.0)]
    )
    found = white.T @ white / 1200
    assert np.max(np.abs(found - np.eye(6))) < 4.5 * np.sqrt(2.0 / 1200)
    # and it is correlated over the columns
    assert not isinstance(mean.covariance, Diagonal)


def test_storages_agree():
    F, y = matrix("ordinary"), np.linspace(-1, 3, M)
    for centre in (False, True):
        made = [
            release_labels(how(F), y, PRIVACY, pv.Shaped(), fit_intercept=centre, rng=Silent())
            for how in STORAGES.values()
        ]
        for other in made[1:]:
            matrices = [r.covariance.matrix() for r in (made[0], other)]
            np.testing.assert_allclose(*matrices, rtol=1e-6)
            assert np.max(np.abs(other.b - made[0].b) / made[0].sigma) < 1e-5
            assert other.weight_sum == pytest.approx(made[0].weight_sum, rel=1e-7)


@pytest.mark.parametrize("shrink", [0.25, 0.75])
def test_rows_far_beyond_the_others_among_many(shrink):
    # The integers of rows a thousand times larger than the bound must still be summed exactly.
    rng = np.random.default_rng(0)
    F = np.exp(1.5 * rng.standard_normal((20_000, 3)))
    rows = Covariates(F, centre=True)
    calibration = calibrate(rows, PRIVACY, pv.Shaped(shrink=shrink))
    weights = calibration.weights
    assert weights is not None
    assert weights.min() < 0.05
    y = rng.uniform(*BOUNDS, 20_000)
    base = statistic(rows, y, PRIVACY, calibration)
    chosen = (int(np.argmin(weights)), 0, 19_999)
    assert max(moved(rows, y, chosen, PRIVACY, calibration)) <= Fraction(base.mu) ** 2
    assert 0.999 * PRIVACY.mu < base.mu <= PRIVACY.mu
