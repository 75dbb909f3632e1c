"""Sensitivity in exact rationals: no label moves the integers by more than the claim allows."""

import math
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
from privasso.programs._label_programs import ProductSum
from privasso.programs._label_rows import integer_rows, scaled_labels

DESIGNS = [pv.Isotropic(1.0), pv.PowerLaw(1.0, 0.5), pv.PowerLaw(1.0, 1.0), pv.Gram(1.0)]


STORAGES = ["dense", "fortran", "strided", "mapped", "float32", "csr", "csc", "coo"]


def stored(F, name, folder):
    if name == "mapped":
        mapped = np.memmap(folder / "F.dat", dtype=np.float64, mode="w+", shape=F.shape)
        mapped[:] = F
        return mapped
    if name == "strided":
        wide = np.zeros((2 * F.shape[0], 3 * F.shape[1]))
        wide[::2, ::3] = F
        return wide[::2, ::3]
    how = {
        "dense": np.asarray,
        "fortran": np.asfortranarray,
        "float32": np.float32,
        "csr": sp.csr_array,
        "csc": sp.csc_array,
        "coo": sp.coo_array,
    }
    return how[name](F)


def matrix(rng):
    """A small matrix with the features that have gone wrong somewhere."""
    m, n = int(rng.integers(1, 7)), int(rng.integers(1, 6))
    F = rng.standard_normal((m, n)) * np.exp(rng.uniform(-1, 1) * rng.uniform(-9, 9, n))
    if rng.random() < 0.3:
        F = np.rint(4 * F / np.max(np.abs(F)))
    if rng.random() < 0.4:
        F[rng.random((m, n)) < 0.5] = 0.0
    if rng.random() < 0.2:
        F[:, rng.integers(n)] = 0.0
    if rng.random() < 0.2:
        F[:, rng.integers(n)] = F[:, rng.integers(n)]
    if rng.random() < 0.2:
        F[:, rng.integers(n)] = 1e6 + 1e-3 * rng.standard_normal(m)
    if rng.random() < 0.2:
        F *= 10.0 ** rng.choice([-100, -30, 30, 100])
    return F


def shape_of(rows, rng):
    """A calibrated covariance: of a design, or full."""
    width = 10.0 ** rng.uniform(-3, 3)
    low = rng.uniform(-2, 2) * width
    privacy = pv.LabelDP(
        float(10 ** rng.uniform(-1, 1)), 1e-6, (low, low + width), mechanism="release"
    )
    n = int(rows.live.sum())
    if rng.random() < 0.6 or n == 0:
        return privacy, calibrate(rows, privacy, DESIGNS[rng.integers(len(DESIGNS))])
    root = np.sqrt(rows.squares[rows.live])[:, None] * (rng.standard_normal((n, n)) + 2 * np.eye(n))
    return privacy, release_mechanism(privacy).calibrate(rows, Factored(root), rows.v)


def worst(rows, privacy, calibration, y):
    """The largest change of one label, exactly, as the square of a number of deviations."""
    base = statistic(rows, y, privacy, calibration)
    return base, max(moved(rows, y, range(y.size), privacy, calibration))


def check(seed, folder):
    rng = np.random.default_rng([11, seed])
    F = matrix(rng)
    name = STORAGES[rng.integers(len(STORAGES))]
    if name == "float32":
        F = F / max(np.max(np.abs(F)), 1e-300)
    rows = Covariates(stored(F, name, folder), centre=bool(rng.random() < 0.5))
    if not rows.centred and not rows.live.any():
        return None
    privacy, calibration = shape_of(rows, rng)
    low, high = privacy.y_bounds
    y = rng.uniform(low - 0.2 * (high - low), high + 0.2 * (high - low), rows.shape[0])
    base, squared = worst(rows, privacy, calibration, y)
    assert squared <= Fraction(base.mu) ** 2
    assert base.mu <= privacy.mu
    return math.sqrt(squared) / privacy.mu, name


@pytest.mark.parametrize(
    "block",
    [pytest.param(k, marks=[pytest.mark.slow] if k >= 1 else []) for k in range(20)],
)
def test_the_claim_is_never_exceeded_and_nearly_reached(block, tmp_path):
    found = [check(seed, tmp_path) for seed in range(500 * block, 500 * block + 500)]
    dense = [ratio for ratio, name in filter(None, found) if name not in ("csr", "csc", "coo")]
    assert min(dense) > 0.999


@pytest.mark.parametrize("storage", [np.asarray, sp.csr_array])
@pytest.mark.parametrize("centre", [False, True])
def test_the_integers_are_those_of_the_formula(storage, centre):
    # Everything again in rationals: rows, labels, sums.
    rng = np.random.default_rng(5)
    F = rng.standard_normal((9, 3)) * [0.01, 1.0, 50.0]
    rows = Covariates(storage(F), centre=centre)
    covariance, sigma_sum = Diagonal([0.5, 3.0, 900.0]), 7.0
    privacy = pv.LabelDP(1.0, 1e-6, (-1.0, 3.0), mechanism="release")
    # So much noise that no row is shrunk.
    calibration = Calibration(covariance.scaled(1e6), 1e3 * sigma_sum * centre, mu=privacy.mu)
    y = rng.uniform(-1, 3, 9)
    found = statistic(rows, y, privacy, calibration)
    for i, sigma in enumerate(calibration.covariance.sigma):
        exact = sum(
            (Fraction(F[k, i]) - (Fraction(rows.mean[i]) if centre else 0))
            / Fraction(sigma)
            * ((Fraction(y[k]) - 1) / 4)
            for k in range(9)
        )
        # In units in which a row as long as the noise allows has the length 1.
        scaled = exact * 4 / Fraction(privacy.mu) * 2**found.unit
        # Each of the nine rows was rounded by at most a half, times its label, and each label.
        assert abs(scaled - found.values[i]) <= 9 * (2**25 / 2 + 2**26 / 2)
    assert len(found.values) == 3 + centre


def test_labels_keep_their_order_and_their_bounds():
    rng = np.random.default_rng(6)
    for _ in range(300):
        low = rng.uniform(-1, 1) * 10.0 ** rng.integers(-200, 200)
        high = low + abs(rng.uniform(0.001, 1)) * 10.0 ** rng.integers(-200, 200)
        if not low < high:
            continue
        y = np.sort(np.concatenate([rng.uniform(low, high, 20), [low, high, -1e300, 1e300]]))
        labels = scaled_labels(y, (low, high))
        assert np.all(np.diff(labels) >= 0)
        assert Fraction(labels[-1]) - Fraction(labels[0]) <= 1
        assert labels[-1] - labels[0] > 0.99


def test_a_nearly_constant_sparse_column_keeps_its_sensitivity():
    # In floating point this moved the release by sixty times the claim.
    m = 524_289
    rng = np.random.default_rng(0)
    column = 1.0 + 1e-9 * rng.standard_normal(m)
    rows = Covariates(sp.csr_array(column[:, None]), centre=True)
    privacy = pv.LabelDP(1.0, 1e-6, (0.0, 1.0), mechanism="release")
    calibration = calibrate(rows, privacy, pv.PowerLaw(1.0, 0.5))
    y = rng.integers(0, 2, m).astype(float)
    squared = moved(rows, y, (0, 1, m - 1), privacy, calibration)
    assert max(squared) <= Fraction(privacy.mu) ** 2
    assert max(squared) >= Fraction(0.2 * privacy.mu) ** 2  # and the noise is not excessive


@pytest.mark.filterwarnings("ignore::privasso.PrivacyWarning")
@pytest.mark.parametrize(
    ("scale", "bounds"),
    [
        (1e-90, (0.0, 1e-80)),
        (1.0, (0.0, 1e200)),
        (1.0, (0.0, 1e-200)),
        (1e80, (-1e-200, 1e-200)),
        (1e-100, (0.0, 1e150)),
        (1.0, (1e9, 1e9 + 1.0)),
    ],
)
def test_extreme_units(scale, bounds):
    rng = np.random.default_rng(1)
    F = scale * rng.standard_normal((200, 3))
    y = bounds[0] + (bounds[1] - bounds[0]) * rng.random(200)
    privacy = pv.LabelDP(1.0, 1e-6, bounds, mechanism="release")
    release = release_labels(F, y, privacy, pv.PowerLaw(1.0, 0.5))
    assert np.all(release.sigma > 0.0)
    assert 0.99 * privacy.mu < (release.mu or 0.0) <= privacy.mu
    # The same model as in ordinary units, with noise and all.
    width = bounds[1] - bounds[0]
    ordinary = pv.LabelDP(1.0, 1e-6, (0.0, 1.0), mechanism="release")
    for denoise, noise, lam, close in (
        (False, "power:0.5", 5.0 * scale * width, 1e-6),
        # Coefficients here are about 0.005. The chain behind the guess forgets the last digits of
        # its input, so that its error of a few per cent is another one.
        (True, "shaped", 0.05 * width, 1e-3),
    ):
        options = {"noise": noise, "denoise": denoise, "random_state": 0}
        est = pv.PrivateLasso(lam, privacy, **options).fit(F, y)
        plain = pv.PrivateLasso(0.05 if denoise else 5.0, ordinary, **options)
        plain.fit(F / scale, (y - bounds[0]) / width)
        assert np.count_nonzero(plain.coef_) > 1
        found = est.coef_ * scale / width
        np.testing.assert_allclose(found, plain.coef_, rtol=1e-3, atol=close)


def test_columns_beyond_all_scales_are_refused():
    for scale in (1e-200, 1e200):
        F = scale * np.random.default_rng(0).standard_normal((20, 2))
        with pytest.raises(ValueError, match="units"):
            release_labels(
                F,
                np.zeros(20),
                pv.LabelDP(1.0, 1e-6, (0, 1), mechanism="release"),
                pv.Isotropic(1.0),
            )


def test_a_calibration_for_a_weaker_guarantee_is_refused():
    F = np.random.default_rng(0).standard_normal((20, 2))
    rows = Covariates(F, centre=False)
    weak = calibrate(rows, pv.LabelDP(5.0, 1e-6, (0, 1), mechanism="release"), pv.Isotropic(1.0))
    strict = pv.LabelDP(1.0, 1e-6, (0, 1), mechanism="release")
    with pytest.raises(ValueError, match="calibrated for a weaker guarantee"):
        release_labels(rows, np.zeros(20), strict, weak, fit_intercept=False)
    narrow = calibrate(
        rows, pv.LabelDP(1.0, 1e-6, (0, 0.1), mechanism="release"), pv.Isotropic(1.0)
    )
    # Noise for labels of a tenth of the range: rows are shrunk until it covers them.
    base, squared = worst(rows, strict, narrow, np.zeros(20))
    assert squared <= Fraction(base.mu) ** 2 <= Fraction(strict.mu) ** 2


def test_labels_far_outside_of_their_bounds_go_unnoticed():
    F = np.random.default_rng(0).standard_normal((30, 2))
    for bounds in ((0.0, 1e-200), (0.0, 1.0), (0.0, 1e200)):
        privacy = pv.LabelDP(1.0, 1e-6, bounds, mechanism="release")
        inside = np.linspace(*bounds, 30)
        outside = inside.copy()
        outside[0], outside[-1] = -1e308, 1e308  # clipped to what inside has there
        made = [release_labels(F, y, privacy, pv.Isotropic(1.0), rng=0) for y in (inside, outside)]
        np.testing.assert_array_equal(made[0].b, made[1].b)


@pytest.mark.parametrize("centre", [False, True])
def test_noise_in_the_span_of_few_rows(centre):
    # With more columns than rows, the noise may live in the space that the rows span.
    rng = np.random.default_rng(8)
    rows = Covariates(rng.standard_normal((6, 15)), centre=centre)
    root = np.linalg.qr(rows.operator().toarray().T)[0][:, : 6 - centre]
    privacy = pv.LabelDP(1.0, 1e-6, (0.0, 1.0), mechanism="release")
    calibration = release_mechanism(privacy).calibrate(rows, Factored(root), rows.v)
    base, squared = worst(rows, privacy, calibration, rng.random(6))
    assert len(base.values) == root.shape[1] + centre
    assert Fraction(0.999 * privacy.mu) ** 2 < squared <= Fraction(base.mu) ** 2
    release = release_labels(rows, rng.random(6), privacy, calibration, fit_intercept=centre)
    outside = release.b - root @ (root.T @ release.b)
    assert np.max(np.abs(outside)) < 1e-9 * np.max(np.abs(release.b))


@pytest.mark.parametrize(("mu", "n"), [(1e-6, 1), (1e-5, 300), (1e-3, 5000), (0.2, 40), (50.0, 7)])
def test_no_integer_row_is_longer_than_its_noise_hides(mu, n):
    """For much noise, of which few bits are left, and for many columns."""
    rng, bits = np.random.default_rng(n), ProductSum.bits_for(mu, n)
    rows = rng.standard_normal((40, n)) * 10.0 ** rng.uniform(-3, 3, (40, 1))
    rows[0], rows[1] = 0.0, 1.0 / math.sqrt(n)
    before = rows.copy()
    K = integer_rows(rows, bits)
    assert max(sum(int(k) ** 2 for k in row) for row in K.tolist()) <= 4**bits
    length = np.linalg.norm(before, axis=1)
    kept = np.sum(K * before, axis=1) / np.where(length > 0.0, length, 1.0) / 2.0**bits
    np.testing.assert_allclose(kept[1:], np.minimum(length[1:], 1.0), atol=0.1)


def test_too_many_columns_for_the_integers_are_refused():
    with pytest.raises(ValueError, match="too many columns"):
        integer_rows(np.ones((1, 300)), 2)
