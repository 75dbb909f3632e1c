"""What the mechanism releases: its mean, its noise, its sensitivity, by brute force."""

import dataclasses
import pickle
from dataclasses import dataclass

import numpy as np
import pytest
import scipy.linalg
import scipy.sparse as sp
from scipy import stats

import privasso as pv
from privasso.noise import Diagonal
from privasso.operators import Covariates
from privasso.planning import release_labels
from privasso.programs import Release

BOUNDS = (-1.0, 3.0)
PRIVACY = pv.LabelDP(1.0, 1e-5, BOUNDS, mechanism="release")
DESIGNS = [pv.Isotropic(1.0), pv.PowerLaw(3.0, 0.5), pv.Gram(0.0), pv.PowerLaw(1.0, -0.5)]
every_design = pytest.mark.parametrize("design", DESIGNS, ids=repr)
both_intercepts = pytest.mark.parametrize("fit_intercept", [False, True])


class Bolder(pv.LabelDP):
    """A subclass, which could override what the claim rests on."""


def covariates(seed=0, m=40, n=7):
    rng = np.random.default_rng(seed)
    F = rng.standard_normal((m, n)) * np.logspace(-3, 3, n) + np.linspace(-2, 2, n)
    F[rng.random((m, n)) < 0.4] = 0.0
    F[:, 2] = 0.0
    F[:, 4] = 0.1  # constant: carries no data once centred
    return F


class Silent(np.random.Generator):
    """A generator whose bits make all noise zero: the release is then its own mean."""

    def __init__(self):
        super().__init__(np.random.PCG64(0))

    def bytes(self, length):
        # One third each for position and sign (0), scale (the lowest bit ends it), acceptance (0).
        n = length // 24
        return np.repeat(np.array([0, 1, 0], dtype=np.uint64), n).tobytes()


def mean_of(F, y, design, fit_intercept, privacy: pv.LabelDP | pv.OnAverage = PRIVACY):
    return release_labels(F, y, privacy, design, fit_intercept=fit_intercept, rng=Silent())


def distance(a: Release, b: Release) -> float:
    """Mahalanobis distance of the means of the joint release."""
    shift, sigma = a.b - b.b, a.sigma
    assert np.all(shift[sigma == 0] == 0)
    total = np.sum((shift[sigma > 0] / sigma[sigma > 0]) ** 2)
    if a.label_sum is not None and b.label_sum is not None and a.sigma_sum is not None:
        total += ((a.label_sum - b.label_sum) / a.sigma_sum) ** 2
    return float(np.sqrt(total))


@every_design
@both_intercepts
@pytest.mark.parametrize("storage", ["dense", "fortran", "float32", "csr", "csc"])
def test_the_largest_change_of_one_label_is_exactly_mu(design, fit_intercept, storage):
    F = covariates()
    F = {
        "dense": F,
        "fortran": np.asfortranarray(F),
        "float32": F.astype(np.float32),
        "csr": sp.csr_array(F),
        "csc": sp.csc_array(F),
    }[storage]
    y = np.random.default_rng(1).uniform(*BOUNDS, 40)
    distances = []
    for row in range(40):
        low, high = y.copy(), y.copy()
        low[row], high[row] = -1e9, 1e9  # clipped to the bounds
        pair = [mean_of(F, labels, design, fit_intercept) for labels in (low, high)]
        distances.append(distance(*pair))
    assert max(distances) == pytest.approx(PRIVACY.mu, rel=1e-7)
    assert max(distances) <= PRIVACY.mu * (1 + 1e-11)


@every_design
@both_intercepts
def test_the_mean_is_what_the_formula_says(design, fit_intercept):
    F, y = covariates(), np.random.default_rng(1).uniform(-3, 5, 40)
    release = mean_of(F, y, design, fit_intercept)
    labels = np.clip(y, *BOUNDS) - 1.0
    rows = F - F.mean(axis=0) if fit_intercept else F
    # Rounding of rows and labels to their grids stays far below the noise.
    live = release.sigma > 0
    error = np.abs(release.b - rows.T @ labels)[live] / release.sigma[live]
    assert np.max(error) < 1e-6
    assert release.centre == 1.0
    if fit_intercept:
        assert release.label_sum == pytest.approx(np.sum(labels), abs=1e-6)
        assert release.mean_label == pytest.approx(np.clip(y, *BOUNDS).mean(), abs=1e-7)
    else:
        assert release.label_sum is None


@pytest.mark.parametrize("fit_intercept", [pytest.param(False, marks=pytest.mark.slow), True])
def test_the_noise_is_gaussian_with_the_stated_deviations(fit_intercept):
    F, y = covariates(), np.zeros(40)
    mean = mean_of(F, y, DESIGNS[1], fit_intercept)
    draws = [
        release_labels(F, y, PRIVACY, DESIGNS[1], fit_intercept=fit_intercept, rng=seed)
        for seed in range(2000)
    ]
    noise = np.array([d.b for d in draws]) - mean.b
    live = mean.sigma > 0
    assert live.sum() == (5 if fit_intercept else 6)
    assert np.all(noise[:, ~live] == 0)
    columns = list((noise[:, live] / mean.sigma[live]).T)
    if fit_intercept:
        columns.append(np.array([d.label_sum for d in draws]) - mean.label_sum)
        columns[-1] /= mean.sigma_sum
    for column in columns:
        assert stats.kstest(column, "norm").pvalue > 1e-3
    correlation = np.corrcoef(columns) - np.eye(len(columns))
    assert np.max(np.abs(correlation)) < 4.5 / np.sqrt(2000)


@every_design
def test_sparse_and_dense_agree(design):
    F, y = covariates(), np.linspace(-1, 3, 40)
    for fit_intercept in (False, True):
        a = release_labels(F, y, PRIVACY, design, fit_intercept=fit_intercept, rng=3)
        b = release_labels(sp.csr_array(F), y, PRIVACY, design, fit_intercept=fit_intercept, rng=3)
        assert np.all(np.abs(a.b - b.b) <= 1e-6 * a.sigma)  # their grids differ
        np.testing.assert_allclose(a.sigma, b.sigma, rtol=1e-6)


def test_the_design_shapes_the_noise_and_units_do_not_matter():
    F = np.random.default_rng(0).standard_normal((50, 4)) * [0.1, 1.0, 10.0, 100.0]
    v = np.sum((F - F.mean(axis=0)) ** 2, axis=0)
    release = mean_of(F, np.zeros(50), pv.PowerLaw(1.0, 1.5), True)
    shape = release.sigma**2 / v**1.5
    np.testing.assert_allclose(shape, shape[0], rtol=1e-12)
    bigger = mean_of(1e6 * F, np.zeros(50), pv.PowerLaw(1.0, 1.5), True)
    np.testing.assert_allclose(bigger.sigma, 1e6 * release.sigma, rtol=1e-9)
    assert bigger.sigma_sum == release.sigma_sum


def test_given_scales_and_a_law():
    F, y = covariates(), np.zeros(40)
    s = np.array([1.0, 2.0, 3.0, 4.0, 5.0, 6.0, 7.0])
    release = release_labels(F, y, PRIVACY, pv.Gram(1.0), scales=s, rng=0)
    live = release.sigma > 0
    assert np.ptp((release.sigma / s**2)[live]) < 1e-12 * np.max(release.sigma)
    release = release_labels(F, y, PRIVACY, pv.Gram(1.0), scales=pv.LogNormal(), rng=0)
    assert np.ptp(release.sigma[live]) == 0.0
    with pytest.raises(ValueError, match="gives column 0 no noise"):
        release_labels(F, y, PRIVACY, pv.Gram(1.0), scales=np.arange(7.0), rng=0)


def test_a_design_that_spares_a_column_is_refused():
    @dataclass(frozen=True)
    class Cut(pv.NoiseDesign):
        def log_profile(self, v):
            return np.where(v >= np.max(v), 0.0, -np.inf)

    with pytest.raises(ValueError, match="no level of noise protects"):
        release_labels(covariates(), np.zeros(40), PRIVACY, Cut(1.0))


def test_covariates_without_data():
    release = release_labels(np.ones((5, 2)), np.zeros(5), PRIVACY, pv.Gram(1.0), rng=0)
    assert np.all(release.b == 0.0)
    # The whole budget goes to the label sum.
    assert release.sigma_sum == pytest.approx(PRIVACY.label_width / PRIVACY.mu, rel=1e-11)


def test_on_average_has_the_stated_level_and_does_not_clip():
    F, y = covariates(), 100.0 * np.ones(40)
    release = mean_of(F, y, pv.PowerLaw(9.0, 1.0), False, pv.OnAverage(0.5))
    live = release.sigma > 0
    assert np.mean(release.sigma[live] ** 2) == pytest.approx(0.25, rel=1e-12)
    np.testing.assert_allclose(release.b, F.T @ y, rtol=1e-12)
    assert release.mu is None
    with_sum = mean_of(F, y, pv.PowerLaw(9.0, 1.0), True, pv.OnAverage(0.5))
    # Noise of the label sum relative to √M is that of a column relative to its norm.
    norm = np.linalg.norm(F[:, 0] - F[:, 0].mean())
    assert with_sum.sigma_sum == pytest.approx(with_sum.sigma[0] / norm * np.sqrt(40), rel=0.2)
    nothing = release_labels(F, y, pv.OnAverage(0.0), pv.Gram(1.0), fit_intercept=False)
    np.testing.assert_allclose(nothing.b, F.T @ y, rtol=1e-12)


@both_intercepts
def test_a_release_holds_no_labels(fit_intercept):
    F, y = covariates(), np.random.default_rng(1).uniform(0.0, 2.0, 40)
    release = release_labels(F, y, PRIVACY, DESIGNS[1], fit_intercept=fit_intercept, rng=5)
    assert set(vars(release)) == {f.name for f in dataclasses.fields(Release)}
    stored = pickle.dumps(release)
    variance = release.covariance.diagonal[0]
    assert variance.tobytes() in stored  # numbers of the release are found in this way
    for label in np.concatenate([y, y - release.centre]):
        assert label.tobytes() not in stored
    assert all(np.size(value) < 40 for value in vars(release).values())
    assert release.b.base is None

    # Other labels with the same products and the same sum give the same release.
    hidden = scipy.linalg.null_space(np.column_stack([F, np.ones(40)]).T)[:, 0]
    other = release_labels(
        F, y + 0.5 * hidden, PRIVACY, DESIGNS[1], fit_intercept=fit_intercept, rng=5
    )
    assert np.max(np.abs(hidden)) > 0.1
    assert distance(release, other) < 1e-7  # labels are rounded to a grid
    np.testing.assert_array_equal(other.sigma, release.sigma)
    for name in ("n_rows", "centre", "sigma_sum", "mu"):
        assert getattr(other, name) == getattr(release, name)


def test_blocks_cover_all_rows(monkeypatch):
    F, y = covariates(m=100), np.linspace(-1, 3, 100)
    whole = mean_of(F, y, DESIGNS[1], True)
    monkeypatch.setattr("privasso.operators._covariates._CHUNK", 21)
    parts = mean_of(F, y, DESIGNS[1], True)
    np.testing.assert_allclose(parts.b, whole.b, rtol=1e-10)
    np.testing.assert_allclose(parts.sigma, whole.sigma, rtol=1e-12)


@pytest.mark.parametrize("storage", [np.asarray, sp.csr_array])
def test_the_operator_of_the_covariates_is_the_centred_matrix(storage):
    F = covariates()
    rows = Covariates(storage(F), centre=True)
    op, C = rows.operator(), (F - F.mean(axis=0))[:, [0, 1, 3, 5, 6]]
    np.testing.assert_allclose(op.toarray(), C, atol=1e-12)
    g, x = np.random.default_rng(0).standard_normal(40), np.arange(5.0)
    take = np.array([1, 3])
    np.testing.assert_allclose(op.matvec(x), C @ x, rtol=1e-10)
    np.testing.assert_allclose(op.rmatvec(g), C.T @ g, rtol=1e-9)
    np.testing.assert_allclose(op.pair_rmatvec(g, g * g)[1], C.T @ (g * g), rtol=1e-9)
    np.testing.assert_allclose(op.columns(take), C[:, take], atol=1e-12)
    np.testing.assert_allclose(op.gram(), C.T @ C, rtol=1e-9, atol=1e-9)
    np.testing.assert_allclose(op.matmat(np.eye(5)), C, atol=1e-12)
    np.testing.assert_allclose(op.rmatmat(np.eye(40)), C.T, atol=1e-12)
    np.testing.assert_allclose(op.column_squares(), np.sum(C**2, axis=0), rtol=1e-12)
    out, block = op.update(x, h := g.copy(), 0.5, 2.0, take)
    np.testing.assert_allclose(h, 0.5 * g + 2 * C @ x, rtol=1e-10)
    np.testing.assert_allclose(out, C.T @ h, rtol=1e-9)
    assert block is not None
    np.testing.assert_allclose(block, C[:, take], atol=1e-12)
    np.testing.assert_allclose(op.single(), C.astype(np.float32), atol=1e-3)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"F": np.array([[np.nan, 1.0]])}, "F contains NaN"),
        ({"y": np.zeros(3)}, "one label for each of the 40 rows"),
        ({"y": ["secret"] * 40}, "one column of finite numbers"),
        ({"y": np.full(40, np.nan), "privacy": pv.OnAverage(1.0)}, "one column of finite numbers"),
        ({"privacy": 1.0}, "privacy must say what to protect"),
        ({"privacy": Bolder(1.0, 1e-5, BOUNDS)}, "must be exactly LabelDP, OnAverage or RecordDP"),
        ({"noise": "gram"}, r"noise must be Shaped\(\) or a noise design"),
        ({"scales": "rows"}, "scales must be 'data'"),
        ({"scales": -np.ones(7)}, "scales must be zero or more"),
    ],
)
def test_bad_arguments(change, message):
    options = {"F": covariates(), "y": np.zeros(40), "privacy": PRIVACY, "noise": pv.Gram(1.0)}
    with pytest.raises(ValueError, match=message):
        release_labels(**(options | change))


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: pv.LabelDP(0.0, 0.1, (0, 1)), "epsilon must be positive"),
        (lambda: pv.LabelDP(1.0, 1.0, (0, 1)), "delta is a probability"),
        (lambda: pv.LabelDP(1.0, 0.1, (1, 1)), "y_bounds must increase"),
        (lambda: pv.LabelDP(1.0, 0.1, (0, np.inf)), "must be finite"),
        (lambda: pv.LabelDP(1.0, 0.1, (-1.7e308, 1.7e308)), "must be finite"),
        (lambda: pv.LabelDP(1.0, 0.1, (2**53, 2**53 + 2)), "too close together"),
        (lambda: pv.LabelDP(1.0, 0.1, (1e10, 1e10 + 1e-5)), "subtract a public number"),
        (lambda: pv.LabelDP(1.0, 0.1, (0, 1), kappa=1e200), "change the units"),
        (lambda: pv.LabelDP(1.0, 0.1, 3.0), "must be a pair"),  # pyright: ignore[reportArgumentType]
        (lambda: dataclasses.replace(PRIVACY, neighbours="add-one"), "neighbours must be"),
        (lambda: pv.LabelDP(1.0, 0.1, (0, 1), "laplace"), "mechanism must be"),  # pyright: ignore[reportArgumentType]
        (lambda: pv.LabelDP(1.0, 0.1, (0, 1), kappa=-1.0), "kappa must be positive"),
        (lambda: pv.LabelDP(1.0, 0.1, (0, 1), "release", t=0.1), "belongs to objective"),
        (lambda: pv.OnAverage(-1.0), "sigma must be zero or positive"),
        (lambda: Release(np.ones(2), Diagonal([1, 1]), 1, 0.0, label_sum=1.0), "go together"),
        (lambda: Release(np.ones(2), Diagonal([1]), 1, 0.0), "over the 2 entries of b"),
    ],
)
def test_bad_settings(call, message):
    with pytest.raises(ValueError, match=message):
        call()
