"""Fits of columns that were chosen first: what is released, claimed and reached."""

import pickle
from collections import Counter
from dataclasses import replace
from functools import lru_cache
from typing import Any

import numpy as np
import pytest
import scipy.sparse as sp
from parts import ideal_parts, last_fit, with_larger
from scipy.special import ndtr

import privasso as pv
from privasso.accounting import ChoiceLoss, GaussianLoss, ObjectiveLoss
from privasso.accounting._composed import compose_losses
from privasso.blocks import RowBlocks
from privasso.fit import FitOptions, plan_for
from privasso.ledger import BudgetError, Ledger
from privasso.planning import ScreeningPrior, ScreeningSettings, usual_screening
from privasso.planning._record_screening import screened_objective
from privasso.planning._settings import usual_t
from privasso.privacy import compose
from privasso.problem import Huber
from privasso.programs import _label_screening
from privasso.queries import LABEL_REPLACED, Answering, Neighbours, bit_source


def privacy(n, epsilon=1.0, **options):
    bounds = [(-1.0, 1.0)] * n
    return pv.RecordDP(epsilon, 1e-6, bounds=bounds, y_bounds=(-4.0, 4.0), **options)


def wide(m, n, rng, *, true=10, explained=0.7):
    """Independent columns uniform in [−1, 1], labels of variance 1, and 1000 rows to test on."""
    X = rng.uniform(-1.0, 1.0, (m + 1000, n)).astype(np.float32)
    support = rng.choice(n, true, replace=False)
    beta = rng.choice([-1.0, 1.0], true) * np.sqrt(3.0 * explained / true)
    y = X[:, support] @ beta + np.sqrt(1.0 - explained) * rng.standard_normal(m + 1000)
    return X[:m], y[:m], X[m:], y[m:], support


@lru_cache(maxsize=1)
def fitted():
    X, y, X_test, y_test, support = wide(3000, 600, np.random.default_rng(0))
    est = pv.PrivateLasso(privacy=privacy(600), screen=14, random_state=0).fit(X, y)
    return est, est.score(X_test, y_test), support


def test_the_true_columns_are_chosen_and_fitted():
    est, r2, support = fitted()
    assert est.screened_.size == 14
    assert set(support.tolist()) <= set(est.screened_.tolist())
    assert r2 > 0.64
    others = np.delete(est.coef_, est.screened_)
    assert not others.any()
    model = est.released_model()
    assert model.screened is not None
    assert np.array_equal(model.screened, est.screened_)


def test_more_columns_than_rows():
    X, y, X_test, y_test, _ = wide(2000, 2400, np.random.default_rng(1))
    est = pv.PrivateLasso(privacy=privacy(2400), screen="auto", random_state=1).fit(X, y)
    assert est.score(X_test, y_test) > 0.55


def test_the_statement_covers_the_choice_and_holds_its_price():
    est, _, _ = fitted()
    guarantee = est.guarantee_
    assert guarantee.kind == "record-dp"
    assert "which columns were chosen" in guarantee.released
    choices = [loss for loss in guarantee.losses if isinstance(loss, ChoiceLoss)]
    assert sum(loss.count for loss in choices) == 14
    assert 0.0 < compose_losses(choices).epsilon(1e-6) < 0.9


def test_the_claim_follows_from_its_parts():
    """A convolution of the nine losses of four rounds, which the calibration does not use."""
    guarantee = fitted()[0].guarantee_
    parts = ideal_parts(guarantee)
    kinds = Counter(type(loss) for loss in parts)
    assert kinds[ObjectiveLoss] == kinds[ChoiceLoss] == 4
    assert sum(loss.count for loss in parts if isinstance(loss, ChoiceLoss)) == 14
    assert 0.98 < compose_losses(parts).epsilon(1e-6) < 1.0
    # The loss of the last fit alone is that of a smaller budget.
    assert last_fit(guarantee).epsilon(1e-6) < 0.8


@pytest.mark.parametrize(
    ("kind", "which", "name", "factor"),
    [
        (ChoiceLoss, 0, "epsilon_each", 1.1),
        (ObjectiveLoss, -1, "c", 1.1),
        (ChoiceLoss, 0, "count", 2),
        (ObjectiveLoss, 0, "c", 1.6),
        (GaussianLoss, -1, "mu", 4.0),
    ],
)
def test_a_guarantee_that_understates_the_price_is_refused(kind, which, name, factor):
    guarantee = fitted()[0].guarantee_
    with pytest.raises(ValueError, match="small enough"):
        with_larger(guarantee, kind, which, **{name: factor})
    with pytest.raises(ValueError, match="small enough"):
        replace(guarantee, losses=(*guarantee.losses, *guarantee.losses[-3:]))


def test_two_fits_compose():
    guarantee = fitted()[0].guarantee_
    both = compose([guarantee, guarantee])
    assert 1.3 < both["epsilon"] < 2.0


@pytest.mark.slow
def test_groups_are_stated():
    assert fitted()[0].guarantee_.group(2)["epsilon"] > 1.9


def test_the_ledger_is_charged():
    X, y, *_ = wide(500, 60, np.random.default_rng(0))
    ledger = Ledger(1.2, 2e-6)
    est = pv.PrivateLasso(privacy=privacy(60), screen=3, random_state=0, ledger=ledger)
    est.fit(X, y)
    with pytest.raises(BudgetError):
        est.fit(X, y)


def test_sparse_and_dense_tables_give_the_same_fit():
    rng = np.random.default_rng(2)
    X = rng.uniform(0.0, 1.0, (1500, 200)) * (rng.random((1500, 200)) < 0.1)
    y = X[:, 5] - X[:, 50] + 0.1 * rng.standard_normal(1500)
    dp = pv.RecordDP(5.0, 1e-6, bounds=[(0.0, 1.0)] * 200, y_bounds=(-1.0, 1.0))
    ledger = Ledger(100.0, 1e-4)  # otherwise a second fit of the same labels warns
    fits = [
        pv.PrivateLasso(privacy=dp, screen=4, random_state=0, ledger=ledger).fit(table, y)
        for table in (X, np.asfortranarray(X), sp.csr_array(X), sp.csc_array(X))
    ]
    for other in fits[1:]:
        assert np.array_equal(fits[0].screened_, other.screened_)
        assert np.array_equal(fits[0].coef_, other.coef_)
    assert {5, 50} <= set(fits[0].screened_.tolist())


def test_nothing_of_the_data_is_kept():
    est, _, _ = fitted()
    assert len(pickle.dumps(est)) < 60_000  # coefficients and bounds of 600 columns


def test_all_columns_are_fitted_where_that_is_better():
    rng = np.random.default_rng(0)
    X = rng.uniform(-1.0, 1.0, (3000, 5))
    est = pv.PrivateLasso(privacy=privacy(5), screen="auto", random_state=0).fit(X, X[:, 0])
    assert not hasattr(est, "screened_")
    assert est.guarantee_.kind == "record-dp"


def few_in_noise(seed, n=60):
    """Labels in which two of many columns matter, for few rows."""
    rng = np.random.default_rng(seed)
    X = rng.standard_normal((1300, n))
    y = np.clip(0.5 * X[:, 3] - 0.5 * X[:, 40] + 0.5 * rng.standard_normal(1300), -3.0, 3.0)
    return X[:300], y[:300], X[300:], y[300:]


@pytest.mark.filterwarnings("ignore::privasso.PrivacyWarning")
def test_by_default_columns_are_chosen_where_noise_hides_too_much():
    """R² on new rows, against fits of all columns of the same tables with the same seeds."""
    labels, gains = pv.LabelDP(1.0, 1e-6, (-3.0, 3.0)), []
    for seed in range(12):
        X, y, X_test, y_test = few_in_noise(seed)
        both = [
            pv.PrivateLasso(privacy=labels, screen=screen, random_state=seed).fit(X, y)
            for screen in (None, "all")
        ]
        assert [hasattr(one, "screened_") for one in both] == [True, False]
        default, whole = (one.score(X_test, y_test) for one in both)
        gains.append(default - whole)
    assert np.mean(gains) > 3.0 * np.std(gains, ddof=1) / np.sqrt(len(gains))


@pytest.mark.parametrize(
    "options",
    [
        {"screen": "all"},
        {"lam": 5.0},
        {"denoise": False},
        {"fit_intercept": False},
        {"noise": "isotropic"},
        {"intervals": "huber"},
        {"privacy": pv.LabelDP(1.0, 1e-6, (-3.0, 3.0), mechanism="release")},
        {"privacy": pv.LabelDP(1.0, 1e-6, (-3.0, 3.0), level=True)},
        {"privacy": pv.LabelDP(30.0, 1e-6, (-3.0, 3.0))},
    ],
)
def test_all_columns_are_fitted_where_something_asks_for_them(options):
    X, _, _, _ = few_in_noise(0)
    options = {"privacy": pv.LabelDP(1.0, 1e-6, (-3.0, 3.0)), **options}
    plan = plan_for(X, FitOptions(**options))
    assert plan.outlook is None
    assert plan.solves_again


@pytest.mark.parametrize(("epsilon", "delta"), [(1e-3, 1e-2), (0.1, 1e-12), (0.1, 1e-2)])
@pytest.mark.parametrize("neighbours", ["emptied", "replaced"])
def test_budgets_too_small_to_be_divided_are_for_all_columns(epsilon, delta, neighbours):
    X = np.random.default_rng(0).uniform(size=(60, 150))
    budget = {"epsilon": epsilon, "delta": delta, "neighbours": neighbours, "y_bounds": (0, 1)}
    for privacy in (pv.LabelDP(**budget), pv.RecordDP(**budget, bounds=(0, 1))):
        assert plan_for(X, FitOptions(privacy)).guarantee.formal


@pytest.mark.parametrize("epsilon", [0.01, 1.0, 50.0])
@pytest.mark.parametrize("columns", [150, 3000])
def test_two_rows_are_planned_for(epsilon, columns):
    X = np.random.default_rng(0).uniform(size=(2, columns))
    budget = {"epsilon": epsilon, "delta": 1e-6, "y_bounds": (0, 1)}
    for privacy in (pv.LabelDP(**budget), pv.RecordDP(**budget, bounds=(0, 1))):
        assert plan_for(X, FitOptions(privacy)).guarantee.formal


@pytest.mark.parametrize("columns", [50, 150])
def test_budgets_too_large_for_a_minimiser_are_for_all_columns(columns):
    X = np.random.default_rng(0).uniform(size=(60, columns))
    plan = plan_for(X, FitOptions(pv.LabelDP(300.0, 1e-6, (0, 1))))
    assert plan.outlook is None
    assert plan.solves_again


@pytest.mark.parametrize("pair", [LABEL_REPLACED, Neighbours("record", "replaced")])
@pytest.mark.parametrize(("epsilon", "delta"), [(1e-4, 1e-12), (0.1, 1e-12), (1e-4, 0.01)])
def test_budgets_too_small_to_be_divided_have_no_settings(epsilon, delta, pair):
    assert usual_screening(epsilon, delta, 2, 40, neighbours=pair) is None


def test_a_choice_that_leaves_nothing_for_a_fit_is_refused():
    with pytest.raises(ValueError, match="too small to be divided"):
        usual_screening(1e-4, 0.01, 60, 150, count=5)


def test_tables_too_large_to_choose_from_are_for_all_columns(monkeypatch):
    X, options = few_in_noise(0)[0], FitOptions(pv.LabelDP(1.0, 1e-6, (-3.0, 3.0)))
    assert plan_for(X, options).outlook is not None
    monkeypatch.setattr(_label_screening, "_MOST", X.size - 1)
    assert plan_for(X, options).outlook is None


@pytest.mark.parametrize("given", [{"t": 7e5}, {"kappa": 0.003}])
def test_settings_of_the_mechanism_ask_for_all_columns(given):
    """A choice is planned for the default ones: with others its fit may have no budget left."""
    dp = pv.RecordDP(0.2, 1e-6, bounds=(0, 1), y_bounds=(0, 1), **given)
    assert plan_for(np.zeros((594, 59)), FitOptions(dp)).outlook is None


def test_sample_weights_ask_for_all_columns():
    X, _, _, _ = few_in_noise(0)
    options = FitOptions(pv.LabelDP(1.0, 1e-6, (-3.0, 3.0)))
    assert plan_for(X, options).outlook is not None
    assert plan_for(X, options, sample_weight=np.ones(300)).outlook is None


@pytest.mark.filterwarnings("ignore::privasso.PrivacyWarning")
def test_the_default_choice_does_not_depend_on_the_storage():
    X, y, _, _ = few_in_noise(0)
    labels = pv.LabelDP(1.0, 1e-6, (-3.0, 3.0))
    whole, parts = (
        pv.PrivateLasso(privacy=labels, random_state=0).fit(*data)
        for data in ((X, y), (RowBlocks.of_arrays(X, y, n_parts=3), None))
    )
    np.testing.assert_array_equal(whole.screened_, parts.screened_)
    np.testing.assert_array_equal(whole.coef_, parts.coef_)


@pytest.mark.filterwarnings("ignore::privasso.PrivacyWarning")
def test_records_of_many_levels_need_less_noise():
    """A row with one of 150 levels is short: against the same columns as numbers in [0, 1]."""
    gains = []
    for seed in range(6):
        rng = np.random.default_rng(seed)
        level = rng.integers(0, 150, 3000)
        X = np.column_stack([rng.uniform(0.0, 1.0, (3000, 4)), np.eye(150)[level]])
        effects = np.append([1.0, -1.0, 0.5, 0.0], 0.3 * rng.standard_normal(150))
        y = np.clip(X @ effects + 0.2 * rng.standard_normal(3000), -3.0, 3.0)
        reached = []
        for last in ("0/1", (-1.0, 1.0)):  # both are measured from zero
            bounds = [*[(0.0, 1.0)] * 4, *[last] * 150]
            dp = pv.RecordDP(1.0, 1e-6, bounds=bounds, y_bounds=(-3.0, 3.0))
            est = pv.PrivateLasso(privacy=dp, screen="all", random_state=seed)
            reached.append(est.fit(X[:2000], y[:2000]).score(X[2000:], y[2000:]))
        gains.append(reached[0] - reached[1])
    assert np.mean(gains) > 3.0 * np.std(gains, ddof=1) / np.sqrt(len(gains))


def test_without_an_intercept_no_centre_is_paid_for():
    X, y, X_test, y_test, _ = wide(3000, 300, np.random.default_rng(4))
    est = pv.PrivateLasso(privacy=privacy(300), screen=12, fit_intercept=False, random_state=0)
    est.fit(X, y)
    assert not any(isinstance(loss, GaussianLoss) for loss in est.guarantee_.losses)
    assert est.intercept_ == 0.0
    assert est.score(X_test, y_test) > 0.6


def test_requests_that_cannot_be_met():
    X, y = np.zeros((10, 3)), np.zeros(10)
    cases = [
        (privacy(3), 3, "cannot be chosen from 3"),
        (privacy(3), 0, "at least 1"),
        (privacy(3), "some", "'auto', 'all', a number"),
        (privacy(3, scales="private"), 2, "leave out bounds='private'"),
        (pv.LabelDP(1.0, 1e-6, (0, 1), mechanism="release"), 2, "needs mechanism='objective'"),
        (pv.LabelDP(1.0, 1e-6, (0, 1)), 3, "cannot be chosen from 3"),
    ]
    for dp, screen, message in cases:
        with pytest.raises(ValueError, match=message):
            pv.PrivateLasso(privacy=dp, screen=screen).fit(X, y)
    with pytest.raises(ValueError, match="not supported with OnAverage"):
        pv.PrivateLasso(lam=1.0, privacy=pv.OnAverage(0.1), screen=2).fit(X, y)
    with pytest.raises(ValueError, match="screen="):
        pv.PrivateLasso(privacy=privacy(3)).fit(sp.csr_array(X), y)


@pytest.mark.parametrize(("kind", "most"), [("neighbours", 0.05), ("groups", 0.05)])
def test_further_rounds_find_what_correlated_columns_hide(kind, most):
    """Columns each like the one before it, or in groups of 20 with correlation 0.8."""
    rng = np.random.default_rng(8)
    m, n = 5000, 300
    Z = rng.standard_normal((m + 1000, n))
    if kind == "groups":
        Z = np.sqrt(0.2) * Z + np.sqrt(0.8) * np.repeat(Z[:, : n // 20], 20, axis=1)
    else:
        for j in range(1, n):
            Z[:, j] = 0.9 * Z[:, j - 1] + np.sqrt(0.19) * Z[:, j]
    X = 2.0 * ndtr(Z) - 1.0
    support = np.arange(10, n, 30)
    signal = X[:, support] @ np.resize([1.0, -1.0], support.size)
    y = np.sqrt(0.7) * signal / signal.std() + np.sqrt(0.3) * rng.standard_normal(m + 1000)
    est = pv.PrivateLasso(privacy=privacy(n), screen=24, random_state=0).fit(X[:m], y[:m])
    known = pv.PrivateLasso(privacy=privacy(10), random_state=1)
    known.fit(X[:m][:, support], y[:m] + 1e-9)  # not the same labels for the warning
    loss = known.score(X[m:][:, support], y[m:]) - est.score(X[m:], y[m:])
    assert loss < most


def objective_of(settings, n, m):
    """The choice and the fit with these settings."""
    dp, t = privacy(n), usual_t(settings.epsilon)
    bounds = dp.column_bounds(n)
    return screened_objective(
        settings, bounds, dp.y_bounds, m, fit_intercept=True, loss=Huber(), t=t
    )


def answered(program, X, y, seed):
    """One fit with a seed."""
    rows = RowBlocks.of_arrays(X, y)
    return program(Answering(rows, bit_source(np.random.default_rng(seed))), program.lam)


def simulated(m, n, columns, share, repeats, further):
    """Hits and R² of repeated fits, with their predictions."""
    prior = ScreeningPrior(10, 0.7, 0.125, 1.0 / 3.0)
    settings = ScreeningSettings.divided(columns, further, share, 1.0, 1e-6)
    fit = objective_of(settings, n, m)
    hits, r2 = [], []
    for k in range(repeats):
        X, y, X_test, y_test, support = wide(m, n, np.random.default_rng(k))
        found = answered(fit, X, y, k)
        residual = y_test - X_test @ found.coef - found.intercept
        r2.append(1.0 - residual.var() / y_test.var())
        assert found.screened is not None
        hits.append(np.isin(support, found.screened).mean())
    return np.array(hits), np.array(r2), settings.found(prior, m, n), settings.r2(prior, m, n)


def agree(values, predicted, allowed):
    error = values.std(ddof=1) / np.sqrt(values.size)
    assert abs(values.mean() - predicted) < 3.5 * error + allowed


@pytest.mark.parametrize(
    ("m", "columns", "share", "further"),
    [
        (900, 8, 0.5, 0),
        pytest.param(1500, 20, 0.35, 0, marks=pytest.mark.slow),
        pytest.param(1000, 12, 0.65, 1, marks=pytest.mark.slow),
        (1000, 16, 0.65, 3),
    ],
)
def test_predictions_agree_with_simulations(m, columns, share, further):
    hits, r2, chance, predicted = simulated(m, 500, columns, share, 20, further)
    assert 0.15 < chance < 0.98  # neither certain nor hopeless
    agree(hits, chance, 0.02)
    agree(r2, predicted, 0.02)


@pytest.mark.parametrize(
    ("epsilon", "share", "further", "most"),
    [
        (1.0, 0.65, 0, 0.02),
        pytest.param(1.0, 0.65, 1, 0.06, marks=pytest.mark.slow),
        (3.0, 0.65, 3, 0.05),
        pytest.param(1.0, 0.2, 3, 0.02, marks=pytest.mark.slow),
    ],
)
def test_the_noise_of_the_last_fit_is_predicted(epsilon, share, further, most):
    """Against its calibration, which convolves the losses of all choices and fits before it."""
    settings = ScreeningSettings.divided(30, further, share, epsilon, 1e-6)
    exact = objective_of(settings, 40, 2000).noise.c
    assert abs(settings.c / exact - 1.0) < most


@pytest.mark.slow
def test_predictions_count_fits_before_the_last_one_and_the_noise_of_the_level():
    """Four rounds with most of the budget and few rows, where both cost 0.03."""
    m, n = 400, 300
    settings = ScreeningSettings.divided(12, 3, 0.65, 3.0, 1e-6)
    fit, r2 = objective_of(settings, n, m), []
    for k in range(24):
        X, y, X_test, y_test, _ = wide(m, n, np.random.default_rng(k), true=3)
        found = answered(fit, X, y, k)
        error = y_test - X_test @ found.coef - found.intercept
        r2.append(1.0 - np.mean(error**2) / y_test.var())
    prior = ScreeningPrior(3, 0.7, 0.125, 1.0 / 3.0)
    agree(np.array(r2), settings.r2(prior, m, n), 0.005)


@pytest.mark.slow
def test_settings_follow_the_size_of_the_table():
    few, many = (usual_screening(1.0, 1e-6, m, 5000) for m in (1000, 50_000))
    assert few is not None
    assert many is not None
    assert few.count < many.count
    # With a prior of few strong columns, few are chosen.
    prior = ScreeningPrior(n_true=3, explained=0.8)
    known = usual_screening(1.0, 1e-6, 2000, 5000, prior=prior)
    assert known is not None
    assert known.count <= 8


def check_screened_labels(guarantee, count):
    """One fit, as many choices as columns, and sums of labels use the budget up."""
    parts = ideal_parts(guarantee)
    (fit,) = (loss for loss in parts if isinstance(loss, ObjectiveLoss))
    choices = [loss for loss in parts if isinstance(loss, ChoiceLoss)]
    assert choices == [ChoiceLoss(choices[0].epsilon_each, 1)] * count
    sums = [loss for loss in parts if isinstance(loss, GaussianLoss)]
    assert len(sums) + count + 1 == len(parts)
    both = [fit, ChoiceLoss(choices[0].epsilon_each, count), *sums]
    assert 1.95 < compose_losses(both).epsilon(1e-6) < 2.0


def test_labels_with_public_covariates():
    X, y, X_test, y_test, support = wide(3000, 400, np.random.default_rng(5))
    dp = pv.LabelDP(2.0, 1e-6, (-4.0, 4.0))
    est = pv.PrivateLasso(privacy=dp, screen=14, random_state=0).fit(X, y)
    assert np.isin(support, est.screened_).mean() >= 0.9
    assert est.score(X_test, y_test) > 0.58
    assert not np.delete(est.coef_, est.screened_).any()
    guarantee = est.guarantee_
    assert guarantee.kind == "label-dp"
    assert guarantee["epsilon"] == 2.0
    assert "which columns were chosen" in guarantee.released
    check_screened_labels(guarantee, 14)
    with pytest.raises(ValueError, match="needs a release of all columns"):
        est.refit(X, 1.0)


def test_copies_of_a_column_are_not_chosen_under_label_privacy():
    """Twenty groups of ten columns that are nearly the same."""
    rng = np.random.default_rng(6)
    Z = rng.standard_normal((4000, 20))
    X = np.repeat(Z, 10, axis=1) + 0.2 * rng.standard_normal((4000, 200))
    y = Z[:, :4] @ [1.0, 1.0, -1.0, 1.0] + 0.5 * rng.standard_normal(4000)
    dp = pv.LabelDP(2.0, 1e-6, (-8.0, 8.0))
    est = pv.PrivateLasso(privacy=dp, screen=6, random_state=0).fit(X, y)
    groups = set((est.screened_ // 10).tolist())
    assert {0, 1, 2, 3} <= groups
    assert est.score(X, y) > 0.8


def latent(m, n, seed):
    """Columns that follow five factors; labels follow these, and one column for itself."""
    rng = np.random.default_rng(seed)
    Z = rng.standard_normal((2 * m, 5))
    X = Z @ rng.standard_normal((5, n)) + rng.standard_normal((2 * m, n))
    y = Z @ [0.6, -0.5, 0.4, 0.3, 0.3] + 0.6 * (X[:, 7] - Z @ np.linalg.lstsq(Z, X[:, 7])[0])
    y += 0.3 * rng.standard_normal(2 * m)
    return X[:m], y[:m], X[m:], y[m:]


def test_components_of_public_covariates_are_fitted_beside_chosen_columns():
    X, y, X_test, y_test = latent(800, 1000, 0)
    dp = pv.LabelDP(2.0, 1e-6, (-5.0, 5.0))
    est = pv.PrivateLasso(privacy=dp, screen="auto", random_state=0).fit(X, y)
    few = pv.PrivateLasso(privacy=dp, screen=5, random_state=0).fit(X, y + 1e-6)
    assert est.score(X_test, y_test) > 0.65
    assert est.score(X_test, y_test) > few.score(X_test, y_test) + 0.1
    assert 7 in est.screened_
    # A LASSO of all columns: sparse, although components are combinations of all.
    assert 5 < np.count_nonzero(est.coef_) < 700
    assert any("principal components" in what for what in est.guarantee_.released)
    check_screened_labels(est.guarantee_, est.screened_.size)


@pytest.mark.slow
def test_components_at_a_given_lambda_and_from_a_sparse_matrix():
    X, y, _, _ = latent(300, 300, 1)
    X = np.where(np.abs(X) > 1.0, X, 0.0)
    dp = pv.LabelDP(3.0, 1e-6, (-5.0, 5.0))
    coefs = [
        pv.PrivateLasso(privacy=dp, screen="auto", lam=lam, random_state=0).fit(table, labels).coef_
        for lam, table, labels in ((5.0, X, y), (5.0, sp.csr_array(X), y + 1e-9), (50.0, X, -y))
    ]
    assert 0 < np.count_nonzero(coefs[2]) < np.count_nonzero(coefs[0])
    assert coefs[0] == pytest.approx(coefs[1], abs=1e-5)


@pytest.mark.slow
def test_independent_columns_have_no_leading_components():
    X = np.random.default_rng(0).standard_normal((400, 600))
    dp = pv.LabelDP(3.0, 1e-6, (-3.0, 3.0))
    plan: Any = plan_for(X, FitOptions(dp, screen="auto"), seeded=True)
    assert plan.asking.components is None


def test_constant_covariates_are_fitted_as_they_are():
    dp = pv.LabelDP(3.0, 1e-6, (-3.0, 3.0))
    est = pv.PrivateLasso(privacy=dp, screen="auto", random_state=0).fit(
        np.ones((20, 30)), np.arange(20) / 10.0
    )
    assert not est.coef_.any()


def test_label_fits_of_all_columns_where_that_is_better():
    X = np.random.default_rng(0).standard_normal((500, 4))
    dp = pv.LabelDP(1.0, 1e-6, (-3.0, 3.0))
    est = pv.PrivateLasso(privacy=dp, screen="auto", random_state=0).fit(X, X[:, 0])
    assert est.guarantee_.kind == "label-dp"


@pytest.mark.slow
@pytest.mark.parametrize(
    ("m", "n", "least"),
    [(5000, 10_000, 0.67), (5000, 2000, 0.67), (20_000, 5000, 0.65), (2000, 2000, 0.66)],
)
def test_figures_of_wide_tables(m, n, least):
    found = []
    for k in range(3):
        X, y, X_test, y_test, _ = wide(m, n, np.random.default_rng(k))
        est = pv.PrivateLasso(privacy=privacy(n), screen="auto", random_state=k).fit(X, y)
        found.append(est.score(X_test, y_test))
    assert np.mean(found) > least
