"""An attack on the low-order bits of a release: it breaks floating-point noise, and not ours.

NumPy's normal numbers are k·w_j with an integer k and one of 256 weights w_j, so that a release
b = fl(c − fl(σz)) cannot take every value. An attacker who knows all labels but one asks for each
candidate: can this b come from these labels? If not, the candidate is ruled out with certainty.
"""

from collections import Counter
from functools import cache

import numpy as np
import pytest
import scipy.sparse as sp
from products import question, statistic
from scipy import stats
from sklearn.datasets import load_diabetes

import privasso as pv
from privasso.operators import Covariates
from privasso.planning import calibrate, release_labels

PRIVACY = pv.LabelDP(1.0, 1e-6, (0.0, 1.0), mechanism="release")
NOISE = pv.PowerLaw(1.0, 0.5)


@cache
def weights():
    """The 256 weights of NumPy's normal numbers, found from draws whose bits are known."""
    votes: list[Counter[float]] = [Counter() for _ in range(256)]
    counts = np.zeros(256, dtype=int)
    bits, normal = np.random.PCG64(1), np.random.Generator(np.random.PCG64(1))
    while np.min(counts) < 40:
        bits.state = normal.bit_generator.state  # pyright: ignore[reportAttributeAccessIssue]
        word = int(bits.random_raw())  # the word that the next number is made from
        z = abs(normal.standard_normal())
        k, strip = (word >> 9) & (2**52 - 1), word & 255
        if k:
            near = {z / k, np.nextafter(z / k, 0.0), np.nextafter(z / k, 1.0)}
            votes[strip].update(float(w) for w in near if k * w == z)
            counts[strip] += 1
    # A number that was rejected and drawn again votes for some other weight, but rarely.
    return np.array([vote.most_common(1)[0][0] for vote in votes])


def reachable(b, c, sigma):
    """Whether each b_i is fl(c_i − fl(σ_i·z)) for some number z that NumPy can draw."""
    w = weights()
    step = np.outer(sigma, w)
    near = np.rint((c - b)[:, None] / step)
    ok = np.abs(c - b) > 3.65 * sigma  # the tail is drawn in another way
    for offset in range(-3, 4):
        z = (near + offset) * w
        ok |= np.any(c[:, None] - sigma[:, None] * z == b[:, None], axis=1)
    return ok


def neighbours(rng, m):
    y = rng.integers(0, 2, m).astype(float)
    other = y.copy()
    other[rng.integers(m)] = 0.37
    return y, other


def covariates(kind, n, rng):
    if kind == "diabetes":
        return np.asarray(load_diabetes(return_X_y=True, scaled=False)[0])[:, :n]
    F = rng.standard_normal((60, n)) * np.exp(rng.uniform(-3, 3, n))
    return np.rint(3 * F / F.std(axis=0)) if kind == "integer" else F


@pytest.mark.parametrize(("kind", "n"), [("diabetes", 10), ("gaussian", 50)])
def test_floating_point_noise_is_broken(kind, n):
    rng = np.random.default_rng(0)
    F = covariates(kind, n, rng)
    rows = Covariates(F, centre=True)
    sigma = calibrate(rows, PRIVACY, NOISE).covariance.sigma
    true = wrong = 0
    for _ in range(100):
        y, other = neighbours(rng, F.shape[0])
        c, d = (rows.rmatvec(labels - 0.5) for labels in (y, other))
        b = c - sigma * np.random.default_rng(rng.integers(2**60)).standard_normal(n)
        true += not reachable(b, c, sigma).all()
        wrong += not reachable(b, d, sigma).all()
    assert true == 0
    assert wrong > 30


CASES = [
    (kind, n, storage, centre)
    for kind in ("gaussian", "integer")
    for n in (1, 10, 50, 1000)
    for storage in ("dense", "sparse")
    for centre in (False, True)
]


def whitened(b, sigma, base):
    """The integer R that b_i = fl(σ_i·fl(R·2^−unit·μ)) is made from in a release, or None.

    It is known up to the rounding of the products; all that matter are tried.
    """
    per = base.mu / (1.0 + 1e-12)
    w = b / sigma / per
    for _ in range(6):
        w = np.nextafter(w, -np.inf)
    found = np.full(b.size, np.nan)
    for _ in range(13):
        R = np.ldexp(w, base.unit)
        found = np.where((sigma * (w * per) == b) & (np.rint(R) == R), R, found)
        w = np.nextafter(w, np.inf)
    return None if np.isnan(found).any() else [int(R) for R in found]


def test_the_question_is_not_idle():
    # Releases with floating-point noise are found impossible for our mechanism.
    rng = np.random.default_rng(1)
    rows = Covariates(covariates("gaussian", 10, rng), centre=True)
    calibration = calibrate(rows, PRIVACY, NOISE)
    sigma = calibration.covariance.sigma
    bits = statistic(rows, np.zeros(60), PRIVACY, calibration)
    refused = 0
    for _ in range(50):
        b = rows.rmatvec(rng.random(60)) - sigma * rng.standard_normal(10)
        refused += whitened(b, sigma, bits) is None
    assert refused > 30


@pytest.mark.parametrize(("kind", "n", "storage", "centre"), CASES)
def test_no_neighbour_is_ruled_out(kind, n, storage, centre):
    """The integers behind every release are possible for both label vectors, to the last bit."""
    rng = np.random.default_rng(n)
    F = covariates(kind, n, rng)
    if storage == "sparse":
        F = sp.csr_array(np.where(rng.random(F.shape) < 0.5, F, 0.0))
    rows = Covariates(F, centre=centre)
    calibration = calibrate(rows, PRIVACY, NOISE)
    sigma, query = calibration.covariance.sigma, question(rows, PRIVACY, calibration)
    residues: dict[str, list[int]] = {"true": [], "wrong": []}
    for _ in range(63 if n < 50 else 20):  # at least 1000 residues of many columns
        y, other = neighbours(rng, rows.shape[0])
        release = release_labels(rows, y, PRIVACY, calibration, fit_intercept=centre)
        for name, labels in (("true", y), ("wrong", other)):
            base = statistic(rows, labels, PRIVACY, calibration, query)
            noisy = whitened(release.b[rows.live], sigma, base)
            assert noisy is not None
            noise = [R - T for R, T in zip(noisy, base.values, strict=False)]
            assert max(map(abs, noise)) < 20 * base.deviation
            residues[name] += [(z >> 8) & 15 for z in noise]
    # The low-order bits of the noise look alike under both hypotheses.
    for found in residues.values():
        assert stats.chisquare(np.bincount(found, minlength=16)).pvalue > 1e-5


def test_coefficients_of_orthogonal_columns_rule_out_nothing():
    # With orthogonal columns a coefficient is a simple function of one entry of b.
    rng = np.random.default_rng(3)
    n, m, lam = 50, 128, 0.05
    F = np.linalg.qr(rng.standard_normal((m, n)))[0]
    rows = Covariates(F, centre=False)
    calibration = calibrate(rows, PRIVACY, NOISE)
    sigma = calibration.covariance.sigma
    bits = statistic(rows, np.zeros(m), PRIVACY, calibration)

    def soft(b):
        return np.sign(b) * np.maximum(np.abs(b) - lam, 0.0)

    def preimages(x):
        b = x + lam * np.sign(x)  # known up to a rounding
        return [np.nextafter(b, -np.inf), b, np.nextafter(b, np.inf)]

    broken = 0
    for _ in range(40):
        y, other = neighbours(rng, m)
        c, d = (F.T @ (labels - 0.5) for labels in (y, other))
        old = soft(c - sigma * np.random.default_rng(rng.integers(2**60)).standard_normal(n))
        shown = old != 0.0
        possible = [
            [reachable(b[shown], v[shown], sigma[shown]) for b in preimages(old)] for v in (c, d)
        ]
        assert np.any(possible[0], axis=0).all()
        broken += not np.any(possible[1], axis=0).all()

        new = soft(release_labels(F, y, PRIVACY, NOISE, fit_intercept=False).b)
        for i in np.flatnonzero(new):
            # Some integer makes this coefficient; the labels only move it by an integer.
            tried = [whitened(b[[i]], sigma[[i]], bits) for b in preimages(new)]
            assert any(R is not None for R in tried)
    assert broken > 10
