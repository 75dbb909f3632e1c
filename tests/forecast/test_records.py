"""Forecasts for whole records against fits on tables that were drawn here, not by the forecast."""

import math
from dataclasses import replace

import numpy as np
import pytest

import privasso as pv
from privasso.encoding import Dictionary, LevelEntry, NumberEntry
from privasso.fit import FitOptions, plan_for
from privasso.forecast import Assumptions, RecordScheme, _records, forecast
from privasso.programs import PerturbedObjective

pytestmark = pytest.mark.filterwarnings("ignore::privasso.PrivacyWarning")


def scheme_of(m, n, epsilon, levels=0, **settings):
    entries = [NumberEntry(f"x{k}", -1.0 * (k % 3), 10.0**k) for k in range(n - levels)]
    names = tuple(f"level {k}" for k in range(levels))
    dictionary = Dictionary((*entries, *([LevelEntry("text", names)] if levels else [])))
    given = {"bounds": dictionary.bounds, "y_bounds": (0.0, 60.0), **settings}
    privacy = pv.RecordDP(epsilon, 1e-6, **given)
    shape = np.broadcast_to(0.0, (m, n))
    plan = plan_for(shape, FitOptions(privacy), feature_names=dictionary.encoding.names)
    return RecordScheme.of(plan, dictionary)


def outcomes(m, n, epsilon, fits, seed, wrong=None, **settings):
    """R² on new rows of real fits, on tables as the forecast says that it assumes them.

    `wrong` takes the squared errors of the coefficients; the range of each column is 1.

    A share of 0.1 to 0.9 of the coefficients; 0.25 to 0.75 explained; labels that vary by 2/3 to
    4/3 of a sixth of their range; columns that vary by a sixth of theirs.
    """
    found = []
    for k in range(fits):
        rng = np.random.default_rng((seed, k))
        means = rng.uniform(1 / 3, 2 / 3, n)
        X, new = (np.clip(rng.normal(means, 1 / 6, (rows, n)), 0, 1) for rows in (m, 4000))
        coef = np.zeros(n)
        chosen = rng.choice(n, max(1, round(n * math.exp(rng.uniform(*np.log([0.1, 0.9]))))), False)
        coef[chosen] = rng.standard_normal(chosen.size)
        odds = math.exp(rng.uniform(-math.log(3), math.log(3)))
        r2, sd = odds / (1 + odds), rng.uniform(2 / 3, 4 / 3) * 10.0
        coef *= sd * math.sqrt(r2) * 6 / np.linalg.norm(coef)
        level = 30 + rng.uniform(-1, 1) * max(0.0, 30 - 2 * sd)
        y, y_new = (
            level + (Z - means) @ coef + sd * math.sqrt(1 - r2) * rng.standard_normal(len(Z))
            for Z in (X, new)
        )
        given = {"bounds": [(0, 1)] * n, "y_bounds": (0, 60), **settings}
        privacy = pv.RecordDP(epsilon, 1e-6, **given)
        est = pv.PrivateLasso(privacy=privacy, random_state=k).fit(X, y)
        found.append(est.score(new, y_new))
        if wrong is not None:
            wrong.append((est.coef_ - coef) ** 2)
    return np.array(found)


SUPPOSE = Assumptions(rho=0.3, r2=0.5, label_sd=10.0)


@pytest.mark.slow
@pytest.mark.parametrize(
    ("m", "n", "epsilon", "settings"),
    [
        (3000, 60, 1.0, {}),
        (3000, 60, 0.2, {}),
        (400, 40, 3.0, {}),
        (20_000, 100, 0.3, {}),
        (6000, 30, 1.0, {"mechanism": "statistics"}),
        (20_000, 60, 1.0, {"scales": "private"}),
    ],
)
def test_forecasts_agree_with_fits_of_another_size(m, n, epsilon, settings):
    predicted = forecast(scheme_of(m, n, epsilon, **settings), SUPPOSE, fits=200).outcome
    measured = outcomes(m, n, epsilon, 60, 5, **settings)
    error = 1.3 * measured.std() / math.sqrt(measured.size)  # of a median
    error = math.hypot(error, 1.3 * predicted.r2.std() / math.sqrt(predicted.r2.size))
    assert abs(predicted.median - np.median(measured)) < 3 * error + 0.02


def test_a_forecast_agrees_with_a_few_fits():
    made, wrong = forecast(scheme_of(1500, 30, 0.3), SUPPOSE, fits=40), []
    predicted, measured = made.outcome, outcomes(1500, 30, 0.3, 12, 1, wrong)
    error = math.hypot(measured.std() / math.sqrt(12), predicted.r2.std() / math.sqrt(40))
    assert abs(predicted.r2.mean() - measured.mean()) < 4 * error
    # The noise takes most of what could be explained here, so that the numbers say something.
    assert predicted.r2.mean() < 0.3
    # Simulated with 20 columns: the error of an effect must be that on 30.
    assert made.on.endswith("20 columns")
    assert made.effect_error is not None
    assert made.effect_error == pytest.approx([np.sqrt(np.mean(wrong))] * 30, rel=0.15)


def test_levels_are_measured_from_zero_as_in_the_fit():
    scheme = scheme_of(4000, 100, 1.0, levels=60)
    assert scheme.indicators is not None
    assert scheme.indicators.tolist() == [False] * 40 + [True] * 60
    small = scheme.smaller()
    objective = _records._plan(small, 0).asking
    assert isinstance(objective, PerturbedObjective)
    ones = ~np.isnan(small.chances)
    assert ones.any()
    assert not ones.all()
    origin, unit = objective.view.origin, objective.view.half
    assert not origin[ones].any()
    assert np.all(unit[ones] == 1.0)
    low, high = small.bounds[~ones].T
    assert unit[~ones] == pytest.approx(0.5 * (high - low))
    assert scheme_of(4000, 5, 1.0).indicators is None


def test_changes_help_and_come_in_order():
    found = forecast(scheme_of(400, 20, 0.3, levels=4), SUPPOSE, fits=6)
    assert [one.name for one in found.changes] == [
        "no privacy", "epsilon", "epsilon", "rows", "label bounds", "columns"
    ]  # fmt: skip
    assert [one.value for one in found.changes] == [None, 0.6, pytest.approx(0.9), 800, 30.0, 10]
    planned = found.outcome.r2.mean()
    for one in found.changes:
        assert one.outcome.r2.mean() > planned or one.name == "label bounds"
    assert "tables of 400 rows and 20 columns" in found.on


def test_a_large_table_is_simulated_by_a_small_one_with_as_many_rows_per_column():
    large = scheme_of(100_000, 200, 1.0)
    small = large.smaller()
    assert small.n_rows * small.n_columns < 30_000
    assert small.n_rows / small.n_columns == pytest.approx(500, rel=0.05)
    products = scheme_of(100_000, 200, 1.0, mechanism="statistics").smaller()
    ratio = products.n_columns**3 / products.n_rows**2
    assert ratio == pytest.approx(200**3 / 100_000**2, rel=0.05)


def test_given_settings_stay_and_defaults_follow_epsilon():
    for given in (None, 0.7):
        scheme = scheme_of(500, 5, 1.0, t=given)
        found = forecast(scheme, SUPPOSE, fits=2)
        assert np.isfinite(found.outcome.r2).all()
    huge = replace(scheme, lam=1e9)
    assert forecast(huge, SUPPOSE, fits=2).outcome.r2.max() < 0.01


def test_what_cannot_be_simulated_says_why():
    scheme = scheme_of(500, 5, 1.0)
    assert "intercept" in str(replace(scheme, fit_intercept=False).unavailable)
    flat = replace(scheme, bounds=np.ones((5, 2)))
    with pytest.raises(ValueError, match="no column has room"):
        forecast(flat, SUPPOSE)


def test_two_classes_are_forecast_by_logistic_regressions():
    """R² of probabilities, against fits of tables that are drawn here."""
    n, m, rng = 4, 3000, np.random.default_rng(5)
    dp = pv.RecordDP(1.0, 1e-6, bounds=[(0, 1)] * n, y_bounds=(0, 1))
    scheme = RecordScheme(dp, m, np.tile([0.0, 1.0], (n, 1)), np.full(n, np.nan), classes=True)
    suppose = Assumptions(1.0, 0.4, 0.3)
    expected, free = (one.simulate(suppose, 20) for one in (scheme, scheme.free()))
    assert free.r2.mean() > expected.r2.mean()
    reached = []
    for seed in range(20):
        X = np.clip(rng.uniform(1 / 3, 2 / 3, n) + rng.standard_normal((2 * m, n)) / 6, 0.0, 1.0)
        coef = rng.standard_normal(n)
        share = 1.0 / (1.0 + np.exp(-rng.uniform(*np.log(np.divide(
            suppose.r2_range, np.subtract(1.0, suppose.r2_range))))))  # fmt: skip
        signal = (X - X.mean(axis=0)) @ coef
        signal *= np.pi / np.sqrt(3) * np.sqrt(share / (1.0 - share)) / signal.std()
        p = 1.0 / (1.0 + np.exp(-(rng.uniform(-2.0, 2.0) + signal)))
        y = (rng.random(2 * m) < p).astype(float)
        est = pv.PrivateLogisticLasso(privacy=dp, random_state=seed).fit(X[:m], y[:m])
        guess = est.predict_proba(X[m:])[:, 1]
        reached.append(1.0 - np.mean((y[m:] - guess) ** 2) / y[m:].var())
    error = np.hypot(expected.r2.std(), np.std(reached)) / np.sqrt(20)
    assert abs(expected.r2.mean() - np.mean(reached)) < 3.0 * error


def test_classes_have_no_narrower_bounds():
    dp = pv.RecordDP(1.0, 1e-6, bounds=[(0, 1)] * 3, y_bounds=(0, 1))
    scheme = RecordScheme(dp, 300, np.tile([0.0, 1.0], (3, 1)), np.full(3, np.nan), classes=True)
    found = forecast(scheme, Assumptions(0.5, None, 0.2), fits=4)
    assert [one.name for one in found.changes] == ["no privacy", "epsilon", "epsilon", "rows"]
    assert "log odds" in found.in_words()


def test_a_table_of_one_class_has_a_forecast():
    dp = pv.RecordDP(1.0, 1e-6, bounds=[(0, 1)] * 3, y_bounds=(0, 1))
    scheme = RecordScheme(dp, 2, np.tile([0.0, 1.0], (3, 1)), np.full(3, np.nan), classes=True)
    assert np.isfinite(scheme.free().simulate(Assumptions(0.5, 0.1, 0.2), 10).r2).all()
