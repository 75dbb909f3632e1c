"""Forecasts against the outcomes they are about: their intervals cover what they should."""

from typing import Any

import numpy as np
import pytest
from sklearn.datasets import load_diabetes

import privasso as pv
from privasso.fit import FitOptions, plan_fit
from privasso.forecast import (
    Assumptions,
    Population,
    Scheme,
    Simulated,
    forecast,
)
from privasso.operators import Covariates

pytestmark = pytest.mark.filterwarnings("ignore::privasso.PrivacyWarning")


def scheme_of(X, epsilon, bounds=(-4.0, 4.0), mechanism: Any = "auto", **options):
    options = FitOptions(pv.LabelDP(epsilon, 1e-6, bounds, mechanism), **options)
    return Scheme.of_plan(plan_fit(X, options), options.fixed_lam)


def correlated(rng, m, n):
    """Rows with a few common factors, and columns of all scales."""
    common = rng.standard_normal((m, 2)) @ rng.standard_normal((2, n))
    return (common + rng.standard_normal((m, n))) * np.exp(rng.normal(0.0, 2.0, n))


def cell(rng, m, n, epsilon, fits):
    """A forecast for the training rows, and the R² of a fit on rows that nobody has seen."""
    everything = correlated(rng, m + 1000, n)
    X, new = everything[:m], everything[m:]
    suppose = Assumptions(
        rng.uniform(0.1, 0.5), float(rng.choice([0.3, 0.5, 0.7])), rng.uniform(0.5, 1.2)
    )
    scheme = scheme_of(X, epsilon)
    expected = scheme.simulate(suppose, fits)
    population = Population(Covariates(everything, centre=True))
    truth = population.draw(suppose, 4.0, rng)
    F = (everything - everything.mean(axis=0)) / population.scale
    y = truth.level + F @ truth.coef + truth.residual_sd * rng.standard_normal(m + 1000)
    plan = plan_fit(X, FitOptions(scheme.privacy), seeded=True)
    predicted = plan.release(y[:m], rng=rng).solve().predict(new)
    reached = 1.0 - np.mean((y[m:] - predicted) ** 2) / np.var(y[m:])
    return expected, reached


def check_coverage(cells, low, high):
    inside = [one.interval[0] <= r2 <= one.interval[1] for one, r2 in cells]
    assert low <= np.mean(inside) <= high
    medians, reached = [one.median for one, _ in cells], sorted(r2 for _, r2 in cells)
    # The upper end of the range of two standard errors around the median that fits reach.
    least = reached[len(cells) // 2 + round(np.sqrt(len(cells)))]
    assert np.median(medians) < least + 0.1


@pytest.mark.slow
def test_intervals_cover_what_fits_reach():
    # The 2nd and the 18th of 19 draws have the next one between them with a probability of 0.8.
    rng = np.random.default_rng(0)
    cells = [cell(rng, 200, int(rng.integers(2, 5)), rng.choice([1.0, 3.0, 10.0]), 19)
             for _ in range(64)]  # fmt: skip
    check_coverage(cells, 0.68, 0.92)  # 64 cells: a standard error of 0.05


@pytest.mark.slow
@pytest.mark.parametrize("shape", [(100, 30), (400, 10), (1500, 20)])
@pytest.mark.parametrize("epsilon", [1.0, 5.0])
def test_intervals_cover_what_fits_reach_at_every_shape(shape, epsilon):
    rng = np.random.default_rng(1)
    cells = [cell(rng, shape[0], shape[1], epsilon, 59) for _ in range(120)]
    check_coverage(cells, 0.70, 0.90)


@pytest.mark.slow
@pytest.mark.parametrize("epsilon", [1.0, 3.0, 10.0])
def test_intervals_cover_what_fits_reach_on_real_columns_and_labels(epsilon):
    X, y = load_diabetes(return_X_y=True, scaled=False)
    X, y, reached = np.asarray(X), np.asarray(y), []
    for seed in range(20):
        test = np.random.default_rng(seed).permutation(442) < 130
        privacy = pv.LabelDP(epsilon, 1e-6, (0.0, 350.0))
        est = pv.PrivateLasso("auto", privacy, random_state=seed).fit(X[~test], y[~test])
        reached.append(est.score(X[test], y[test]))
    # What is known of such tables: about half is explained, and labels vary by about 80.
    scheme = scheme_of(X[:312], epsilon, (0.0, 350.0))
    found = scheme.simulate(Assumptions(0.3, 0.5, 80.0), 120)
    low, high = found.interval
    assert np.mean((np.array(reached) >= low) & (np.array(reached) <= high)) >= 0.7
    assert found.median < np.median(reached) + 0.1


def test_a_forecast_is_not_deceived_by_correlated_columns():
    """As many noisy copies of one column: independent ones would all have to be found."""
    rng = np.random.default_rng(2)
    one = rng.standard_normal((300, 1))
    X = one + 0.1 * rng.standard_normal((300, 12))
    suppose = Assumptions(1.0, 0.5, 1.0)
    together = forecast(scheme_of(X, 1.0), suppose, fits=24).outcome.median
    alone = forecast(
        scheme_of(rng.standard_normal((300, 12)), 1.0), suppose, fits=24
    ).outcome.median
    assert together > alone + 0.1


@pytest.mark.parametrize("mechanism", ["objective", "release"])
def test_each_change_is_a_forecast_of_its_own(mechanism):
    rng = np.random.default_rng(3)
    X = correlated(rng, 600, 8)
    suppose = Assumptions(0.2, 0.5, 1.0)
    made = {"mechanism": mechanism}
    found = forecast(scheme_of(X, 1.0, **made), suppose, fits=24)
    assert [one.name for one in found.changes] == [
        "no privacy", "epsilon", "epsilon", "rows", "label bounds", "columns"
    ]  # fmt: skip
    assert [one.value for one in found.changes] == [None, 2.0, 3.0, 1200.0, 4.0, 4.0]
    # ε and columns: exactly what a plan of that kind predicts. A plan for another ε may choose
    # another ridge, which changes little.
    twice = forecast(scheme_of(X, 2.0, **made), suppose, fits=24).outcome
    close = 1e-9 if mechanism == "release" else 0.03
    np.testing.assert_allclose(twice.r2, found.changes[1].outcome.r2, atol=close)
    fewer = scheme_of(X[:, ::2], 1.0, **made)
    fewer = forecast(fewer, Assumptions(0.4, 0.5, 1.0), fits=24).outcome
    np.testing.assert_allclose(fewer.r2, found.changes[5].outcome.r2, atol=close)
    narrow = forecast(scheme_of(X, 1.0, (-2.0, 2.0), **made), suppose, fits=24).outcome
    np.testing.assert_allclose(narrow.r2, found.changes[4].outcome.r2, atol=close)
    # Rows: two copies have the moments of twice as many rows, with the noise of one.
    more = scheme_of(np.tile(X, (2, 1)), 1.0, **made).simulate(suppose, found.fits)
    assert more.median == pytest.approx(found.changes[3].outcome.median, abs=0.03)
    # Without privacy: what least squares reaches, which is close to what can be explained.
    assert np.mean(found.changes[0].outcome.r2 > found.outcome.r2) > 0.9
    assert found.outcome.part_of(found.changes[0].outcome) < 1.0
    # Fewer columns have truths of their own, so that their median may differ by chance.
    same_truths = found.changes[:4] if mechanism == "objective" else found.changes
    assert found.outcome.median < min(one.outcome.median for one in same_truths)


def test_without_privacy_a_forecast_is_that_of_least_squares():
    """Labels are drawn and fitted by least squares, for the same share that is explained."""
    rng = np.random.default_rng(7)
    X = correlated(rng, 400, 6)
    free = scheme_of(X, 1.0).free().simulate(Assumptions(0.5, 0.5, 1.0), 60)
    population, reached = Population(Covariates(X, centre=True)), []
    F = (X - X.mean(axis=0)) / population.scale
    for _ in range(60):
        truth = population.draw(Assumptions(0.5, 0.5, 1.0), 4.0, rng)
        y, new = (
            truth.level + F @ truth.coef + truth.residual_sd * rng.standard_normal(400)
            for _ in range(2)
        )
        ones = np.column_stack([F, np.ones(400)])
        predicted = ones @ np.linalg.lstsq(ones, y, rcond=None)[0]
        reached.append(1.0 - np.mean((new - predicted) ** 2) / np.var(new))
    error = np.hypot(free.r2.std(), np.std(reached)) / np.sqrt(60)
    assert abs(free.r2.mean() - np.mean(reached)) < 3.0 * error


def test_a_range_that_asks_for_nothing_is_wide():
    low, high = Assumptions(0.3, None, 1.0).r2_range
    assert (low, high) == (0.05, 0.95)
    found = scheme_of(np.random.default_rng(8).standard_normal((400, 4)), 3.0).simulate(
        Assumptions(0.3, None, 1.0), 100
    )
    assert found.interval[1] - found.interval[0] > 0.5


def test_the_same_every_time_and_in_all_units():
    X = correlated(np.random.default_rng(4), 100, 3)
    one = forecast(scheme_of(X, 2.0), Assumptions(0.3, 0.5, 1.0), fits=12)
    again = forecast(scheme_of(X, 2.0), Assumptions(0.3, 0.5, 1.0), fits=12)
    np.testing.assert_array_equal(one.outcome.r2, again.outcome.r2)
    # Other units of labels and columns, among them labels too large to be squared.
    for factor in (1e-3, 1e200):
        other = scheme_of(X * [1e3, 1.0, 1e-2], 2.0, (-4.0 * factor, 4.0 * factor))
        found = forecast(other, Assumptions(0.3, 0.5, factor), fits=12)
        np.testing.assert_allclose(found.outcome.r2, one.outcome.r2, rtol=1e-4, atol=1e-4)


def test_what_cannot_be_simulated_says_so():
    X = correlated(np.random.default_rng(5), 50, 3)
    suppose = Assumptions(0.3, 0.5, 1.0)
    for scheme, words in (
        (scheme_of(X, 1.0, denoise=False), "λ"),
        (scheme_of(X + 9.0, 1.0, fit_intercept=False), "near zero"),
        (scheme_of(X, 1.0, (1.0, 2.0), fit_intercept=False), "near zero"),
        (scheme_of(np.ones((5, 2)), 1.0), "no column"),
    ):
        assert scheme.unavailable is not None
        with pytest.raises(ValueError, match=words):
            forecast(scheme, suppose)
    with pytest.raises(ValueError, match="at most half"):
        forecast(scheme_of(X, 1.0), Assumptions(0.3, 0.5, 4.1))


def test_fits_without_a_model_count_as_bad():
    """More columns than rows, and a λ below the noise: there is no minimiser."""
    X = np.random.default_rng(6).standard_normal((12, 20))
    scheme = scheme_of(X, 0.1, lam=1e-3, denoise=False, noise="isotropic")
    found = scheme.simulate(Assumptions(0.3, 0.5, 1.0), 5)
    assert isinstance(found, Simulated)
    assert found.median == -np.inf
    assert found.positive == 0.0
