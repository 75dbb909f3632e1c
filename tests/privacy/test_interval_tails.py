"""Intervals where a few rows decide: far away, clipped or shrunk."""

import numpy as np
import pytest
from matrices import symmetric

import privasso as pv
from privasso.blocks import RowBlocks
from privasso.fit._rows import prepared_rows
from privasso.programs import LabelFrame
from privasso.programs._one_step import OneStep
from privasso.programs._scores import exceeded_by, long_rows
from privasso.programs._tails import tail_end
from privasso.queries import LABEL_REPLACED, Answering, bit_source


def least_squares(X, y):
    return np.linalg.lstsq(np.c_[X, np.ones(len(X))], y, rcond=None)[0][:-1]


def covered(privacy, target, X, y, rows, repetitions):
    """How often intervals hold the coefficients of a population of these rows, by column."""
    truth, held, given = least_squares(X, y), [], []
    for seed in range(repetitions):
        at = np.random.default_rng(seed).integers(0, len(y), rows)
        est = pv.PrivateLasso(privacy=privacy, intervals=target, random_state=seed)
        low, high = est.fit(X[at], y[at]).confint().T
        held.append((low <= truth) & (truth <= high))
        given.append(np.isfinite(low))
    return np.sum(held, axis=0) / np.sum(given, axis=0)


def test_squared_scores_that_rest_on_far_rows_are_not_supposed_to_be_like_the_others():
    """Residuals are larger far away, and noise hides by how much; 200 draws of it."""
    rng = np.random.default_rng(8)
    F = np.c_[np.clip(rng.standard_t(2.2, 5000), -30.0, 30.0), rng.standard_normal((5000, 8))]
    F /= np.sqrt(np.mean(F**2, axis=0))
    r = (0.5 + np.abs(F[:, 0])) * rng.standard_normal(5000)
    H, V = F.T @ F, (F * r[:, None] ** 2).T @ F
    far = np.sqrt(np.maximum(np.mean(F**4, axis=0) / 3.0, 1.0))
    noise, ones = np.full((9, 9), 0.6 * V[0, 0]), np.ones(9)
    found = []
    for _ in range(200):
        noisy = V + symmetric(rng, noise)
        one = OneStep(H, ones, noisy, 0.0 * H, ones, noise, ones, 1.0, 1.0, far=far)
        found.append(one.squares()[0, 0] / V[0, 0])
    assert V[0, 0] > 3.0 * np.trace(V) / np.trace(H) * H[0, 0]
    # The mean is not clearly below what it stands for, by three standard errors.
    assert np.mean(found) + 3.0 * np.std(found) / np.sqrt(200) > 1.0


def test_they_hold_where_private_rows_are_shrunk_and_the_model_is_wrong():
    """Shrunk rows move the coefficient of a line that is fitted to a bent curve."""
    rng = np.random.default_rng(9)
    x = np.clip(rng.standard_t(2.5, 40_000), -15.0, 40.0)
    X = np.c_[x, rng.uniform(size=(40_000, 3)) < 0.5]
    y = 0.15 * np.sign(x) * np.sqrt(np.abs(x)) + 0.1 * X[:, 1]
    y = np.clip(y + 0.6 * rng.standard_normal(40_000), -3.0, 3.0)
    bounds = [(-15.0, 40.0), *[(0.0, 1.0)] * 3]
    privacy = pv.RecordDP(10.0, 1e-6, bounds, y_bounds=(-3, 3))
    # 40 intervals of 95 %, as above.
    assert covered(privacy, "least-squares", X, y, 10_000, 40)[0] >= 0.86


def test_what_shrunk_rows_hide_is_at_least_what_any_labels_could_make_of_it():
    rng = np.random.default_rng(1)
    F = np.c_[np.ones(2000), rng.standard_t(3.0, (2000, 2))]
    w = long_rows(F, 4.0)
    H = (F * w[:, None]).T @ F
    zeros, ones = np.zeros((3, 3)), np.ones(3)
    whole = np.stack([np.sum(F**2, axis=0), np.zeros(3), np.full(3, np.inf)])
    shrunk = float(np.sum(w < 1.0)), 16.0
    one = OneStep(H, ones, H, zeros, ones, zeros, ones, 1.0, 1.0, whole=whole, shrunk=shrunk)
    for j in range(3):
        r = np.sign(F[:, j])  # the worst residuals of size one
        assert np.sum((1.0 - w) * F[:, j] * r) ** 2 <= 1.001 * one.hidden()[j]
    assert one.hidden()[1] <= 4.0 * np.sum((1.0 - w) * np.abs(F[:, 1])) ** 2


def test_a_coefficient_that_rests_on_a_few_public_rows_has_no_interval():
    rng = np.random.default_rng(3)
    X = rng.standard_normal((3000, 4))
    X[0, 1], X[:3, 2] = 300.0, 40.0
    ask = Answering(RowBlocks.of_arrays(X, X[:, 0]), bit_source(rng))
    placed = LabelFrame(prepared_rows(X, fit_intercept=True)).settled(ask, 1.0, LABEL_REPLACED)
    F = np.c_[X, np.ones(len(X))]
    shares = (F @ np.linalg.inv(F.T @ F)) ** 2
    exact = 1.0 / np.sum((shares / shares.sum(axis=0)) ** 2, axis=0)
    assert placed.few is not None
    assert placed.few.tolist() == (exact[:-1] < 20.0).tolist() == [False, True, True, False]
    privacy = pv.LabelDP(5.0, 1e-6, y_bounds=(-3, 3))
    y = np.clip(X[:, 0] + 0.1 * rng.standard_normal(3000), -3.0, 3.0)
    est = pv.PrivateLasso(privacy=privacy, intervals=True, random_state=0).fit(X, y)
    assert est.intervals_.reasons("least-squares")[1] == "no interval: it rests on a few rows"
    assert np.isfinite(est.confint()[[0, 3]]).all()


@pytest.mark.parametrize("law", ["normal", "exponential"])
def test_a_tail_that_noise_hides_is_supposed_to_fall_as_the_counts_before_it(law):
    """Fewer values are clipped than noise would hide, and the size is closer than a step's."""
    rng = np.random.default_rng(6)
    steps = tuple(2.0 ** (0.5 * k) for k in range(-9, 1))
    values = np.abs(rng.normal(0.0, 0.06, 2000))
    if law == "exponential":
        values = rng.exponential(0.04, 2000)
    above = np.array([np.sum(values > step) for step in steps], dtype=float)
    beyond, shorter = [], []
    for _ in range(100):
        noisy = above + np.cumsum(rng.normal(0.0, 35.0, len(steps)))[::-1]
        found = tail_end(steps, noisy, 35.0, 10.0, (1800.0, 2200.0))
        beyond.append(np.sum(values > found))
        shorter.append(found / exceeded_by(steps, noisy, 35.0, 10.0))
    assert np.quantile(beyond, 0.9) <= 40
    if law == "normal":
        assert np.median(shorter) < 0.85


def test_a_second_tail_is_not_overlooked_where_it_is_larger_than_noise():
    rng = np.random.default_rng(7)
    steps = tuple(2.0 ** (0.5 * k) for k in range(-9, 1))
    values = np.r_[np.abs(rng.normal(0.0, 0.05, 1800)), rng.uniform(0.6, 0.9, 200)]
    above = np.array([np.sum(values > step) for step in steps], dtype=float)
    found = [
        tail_end(
            steps,
            above + np.cumsum(rng.normal(0.0, 35.0, len(steps)))[::-1],
            *(35.0, 10.0, (1800.0, 2200.0)),
        )
        for _ in range(100)
    ]
    assert np.mean(np.array(found) > 0.6) > 0.9
