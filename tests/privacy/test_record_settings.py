"""Settings of fits of whole records, which follow from public numbers."""

from dataclasses import replace

import numpy as np
import pytest

import privasso as pv
from bench.record_prior import record_settings
from privasso.planning import RecordTable, _settings
from privasso.planning._settings import usual_kappa, usual_row, usual_t
from privasso.programs._records import origins


def test_the_defaults_follow_from_the_budget_and_the_size_of_the_table():
    for epsilon in (0.1, 1.0, 10.0):
        sizes = [usual_kappa(epsilon, m, 11) for m in (10, 1000, 10**5, 10**9)]
        assert sizes == sorted(sizes)
        assert sizes[0] == 0.05
        assert sizes[-1] == 0.25
    values = [usual_t(epsilon) for epsilon in (0.01, 0.5, 1.0, 1.01, 5.0, 50.0)]
    assert values == sorted(values)
    # δ is small only for log(1 + t) < ε.
    assert all(np.log1p(usual_t(e)) < 0.4 * e for e in (0.01, 0.1, 1.0, 3.0, 30.0))


@pytest.mark.parametrize(("m", "n"), [(50, 3), (4000, 3), (10**5, 40)])
def test_a_fit_uses_them(m, n):
    privacy = pv.RecordDP(2.0, 1e-6, bounds=[(0.0, 1.0)] * n, y_bounds=(0.0, 3.0))
    noise = RecordTable(privacy, m, n).objective().noise
    assert noise.kappa == usual_kappa(2.0, m, n + 1)
    assert noise.t == usual_t(2.0)
    assert noise.radius == usual_row(n + 1)
    other = RecordTable(replace(privacy, kappa=0.2, t=0.7), m, n).objective().noise
    assert (other.kappa, other.t) == (0.2, 0.7)


def test_columns_are_measured_from_a_place_between_their_bounds():
    bounds = np.array([[0.0, 10.0], [-4.0, 4.0], [5.0, 5.0], [2.0, 6.0]])
    assert origins(bounds) == pytest.approx([3.5, 0.0, 5.0, 3.4])
    privacy = pv.RecordDP(1.0, 1e-6, bounds=bounds, y_bounds=(0.0, 1.0))
    objective = RecordTable(privacy, 2, 4).objective()
    rows, _ = objective.rows(np.array([[10.0, 4.0, 5.0, 6.0], [0.0, -9.0, 5.0, 2.0]]), np.zeros(2))
    # Rows are shrunk; the intercept tells by how much. The upper bound is 1.3 from the origin.
    unshrunk = rows / rows[:, -1:]
    assert unshrunk[0] == pytest.approx([1.3, 1.0, 0.0, 1.3, 1.0], rel=1e-5)
    assert unshrunk[1] == pytest.approx([-0.7, -1.0, 0.0, -0.7, 1.0], rel=1e-5)


def rare_levels(m, place, seed):
    """Four columns of numbers, and zeros and ones with these shares and no effect.

    The labels have their mean at this place of their bounds.
    """
    rng = np.random.default_rng(seed)
    numbers = np.clip(rng.normal(0.4, 0.15, (m, 4)), 0.0, 1.0)
    ones = rng.random((m, SHARES.size)) < SHARES
    y = place + (numbers - 0.4) @ [0.2, -0.1, 0.1, 0.0] + 0.08 * rng.standard_normal(m)
    return np.hstack([numbers, ones]), np.clip(y, 0.0, 1.0)


SHARES = np.array([0.002, 0.005, 0.01, 0.02, 0.05])
NUMBERS = [(0.0, 1.0)] * 4


@pytest.mark.filterwarnings("ignore:the same labels")
@pytest.mark.parametrize("settings", [{}, {"mechanism": "statistics"}, {"shape": "private"}])
def test_columns_of_zeros_and_ones_are_measured_from_zero(settings, monkeypatch):
    """The fit is that of bounds with zero in the middle, which measure from there."""
    monkeypatch.setattr(_settings, "ONES", 1.0)  # rows are expected to be as long
    X, y = rare_levels(3000, 0.3, 0)
    fits = []
    for given in ("0/1", (-1.0, 1.0)):
        bounds = [*NUMBERS, *[given] * SHARES.size]
        privacy = pv.RecordDP(2.0, 1e-6, bounds=bounds, y_bounds=(0.0, 1.0), **settings)
        est = pv.PrivateLasso(privacy=privacy, random_state=1).fit(X, y)
        fits.append([*est.coef_, est.intercept_])
    assert fits[0] == fits[1]
    assert fits[0][:4] != fits[0][4:8]


def test_sums_of_products_expect_shorter_rows_where_columns_are_mostly_zero():
    bounds, y_bounds = [*NUMBERS, *["0/1"] * 20], (0.0, 1.0)
    privacy = pv.RecordDP(3.0, 1e-6, bounds=bounds, y_bounds=y_bounds, mechanism="statistics")
    radii = {}
    for kind, one in (
        ("ones", privacy),
        ("numbers", replace(privacy, bounds=[(0.0, 1.0)] * 24)),
        ("scales", replace(privacy, scales="private")),
    ):
        found = RecordTable(one, 3000, 24).statistics()
        assert found is not None
        radii[kind] = found.table.noise.radius
    assert radii["ones"] == pytest.approx(0.85 * np.sqrt(4 + 1 + 2))
    assert radii["numbers"] == pytest.approx(0.85 * np.sqrt(25))
    assert radii["scales"] == pytest.approx(1.2 * np.sqrt(25))
    through = RecordTable(privacy, 3000, 24, fit_intercept=False).statistics()
    assert through is not None
    assert through.table.noise.radius == pytest.approx(0.85 * np.sqrt(24))


@pytest.mark.filterwarnings("ignore:the same labels")
def test_log_odds_of_zeros_and_ones_are_measured_from_zero():
    X, y = rare_levels(3000, 0.3, 0)
    fits = []
    for given in ("0/1", (-1.0, 1.0)):
        privacy = pv.RecordDP(2.0, 1e-6, bounds=[*NUMBERS, *[given] * SHARES.size], y_bounds=(0, 1))
        est = pv.PrivateLogisticLasso(privacy=privacy, random_state=1, classes=(0, 1))
        est.fit(X, (y > 0.3).astype(float))
        fits.append([*np.ravel(est.coef_), *np.ravel(est.intercept_)])
    assert fits[0] == fits[1]


@pytest.mark.filterwarnings("ignore:the same labels")
@pytest.mark.parametrize("place", [0.25, 0.75])
def test_a_rare_level_does_not_take_over_the_intercept(place):
    """Bias of zero effects; measured from between 0 and 1 it is above one deviation of the fit."""
    ratios = {}
    for given in ("0/1", (0.0, 1.0)):
        bounds = [*NUMBERS, *[given] * SHARES.size]
        privacy = pv.RecordDP(1.0, 1e-6, bounds=bounds, y_bounds=(0.0, 1.0))
        found = np.array([
            pv.PrivateLasso(privacy=privacy, random_state=k)
            .fit(*rare_levels(2000, place, k))
            .coef_[4:]
            for k in range(40)
        ])  # fmt: skip
        ratios[given] = found.mean(axis=0) / found.std(axis=0, ddof=1)
    # A mean of 40 has an error of 0.16 deviations.
    assert np.all(np.abs(ratios["0/1"]) < 0.65)
    assert np.mean(np.abs(ratios[0.0, 1.0])[:4]) > 1.0


def test_indicators_are_found_by_name_and_only_where_they_are_declared():
    privacy = pv.RecordDP(1.0, 1e-6, bounds={"a": (0, 1), "b": "0/1"}, y_bounds=(0, 1))
    table = RecordTable(privacy, 100, 2, ["b", "a"])
    found = table.objective().indicators
    assert found is not None
    assert found.tolist() == [True, False]
    assert table.bounds.tolist() == [[0.0, 1.0], [0.0, 1.0]]
    again = replace(privacy, epsilon=2.0)
    assert again.bounds == privacy.bounds
    everything = pv.RecordDP(1.0, 1e-6, bounds="0/1", y_bounds=(0, 1))
    found = RecordTable(everything, 100, 3).objective().indicators
    assert found is not None
    assert found.tolist() == [True] * 3
    assert everything != replace(everything, bounds=(0, 1))
    plain = pv.RecordDP(1.0, 1e-6, bounds=[(0, 1)] * 2, y_bounds=(0, 1))
    assert RecordTable(plain, 100, 2).objective().indicators is None
    listed = pv.RecordDP(1.0, 1e-6, bounds=["0/1", (0, 3)], y_bounds=(0, 1))
    assert listed.column_bounds(2).tolist() == [[0, 1], [0, 3]]
    for wrong in (["0/2", (0, 1)], {"a": "0/2"}, "0/2"):
        with pytest.raises(ValueError, match="bounds"):
            pv.RecordDP(1.0, 1e-6, bounds=wrong, y_bounds=(0, 1))


def drawn(rng, m, n):
    """A table from the prior: independent columns, three tenths of the coefficients not zero."""
    X = rng.uniform(-1.0, 1.0, (m, n))
    coef = rng.standard_normal(n) * (rng.random(n) < 0.3)
    signal = X @ coef
    y = signal / signal.std() + rng.standard_normal(m) if coef.any() else rng.standard_normal(m)
    return X, np.clip(0.5 + 0.13 * y / np.sqrt(2.0), 0.0, 1.0)


@pytest.mark.filterwarnings("ignore:the same labels")
def test_designed_settings_are_good_for_tables_from_their_prior():
    m, n = 1500, 40
    privacy = pv.RecordDP(1.0, 1e-6, bounds=[(-1.0, 1.0)] * n, y_bounds=(0.0, 1.0))
    found = record_settings(privacy, m, n)
    designed = replace(privacy, kappa=found.kappa, t=found.t)
    small = replace(privacy, kappa=found.kappa / 20, t=found.t)
    scores = []
    for seed in range(5):
        X, y = drawn(np.random.default_rng([seed, 1]), 2 * m, n)
        scores.append([
            pv.PrivateLasso(privacy=one, lam=lam, random_state=seed)
            .fit(X[:m], y[:m])
            .score(X[m:], y[m:])
            for one, lam in ((privacy, "auto"), (designed, found.lam), (small, found.lam))
        ])  # fmt: skip
    usual, best, clipped = np.mean(scores, axis=0)
    assert best > usual - 0.005
    assert best > clipped + 0.02
    # The prior: columns explain half of the variance. The fit explains a part of that half.
    assert best == pytest.approx(0.5 * found.explained, abs=0.05)


def test_designed_settings_scale_with_the_labels_only():
    privacy = pv.RecordDP(1.0, 1e-6, bounds=[(0.0, 1.0)], y_bounds=(0.0, 1.0))
    one = record_settings(privacy, 5000, 10)
    other = record_settings(replace(privacy, y_bounds=(0.0, 8.0)), 5000, 10)
    assert (other.kappa, other.t) == (one.kappa, one.t)
    assert other.lam == 8.0 * one.lam
    assert record_settings(privacy, 50_000, 10).kappa > one.kappa


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"n_rows": 0}, "n_rows"),
        ({"n_columns": 0}, "n_columns"),
        ({"explained": 1.0}, "explained"),
        ({"rho": -0.1}, "rho"),
        ({"label_deviation": 0.0}, "label_deviation"),
    ],
)
def test_bad_priors(arguments, message):
    privacy = pv.RecordDP(1.0, 1e-6, bounds=[(0.0, 1.0)], y_bounds=(0.0, 1.0))
    with pytest.raises(ValueError, match=message):
        record_settings(privacy, **{"n_rows": 100, "n_columns": 2, **arguments})
