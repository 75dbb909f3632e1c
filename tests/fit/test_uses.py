"""Warnings about labels that are released more than once without a ledger."""

import re
import warnings
from typing import Any

import numpy as np
import pytest
from sklearn.ensemble import BaggingRegressor
from sklearn.feature_selection import RFE
from sklearn.model_selection import GridSearchCV, cross_val_score
from sklearn.pipeline import make_pipeline

import privasso as pv
from privasso.accounting import GaussianLoss, gaussian_epsilon
from privasso.blocks import RowBlocks
from privasso.fit import FitOptions, _charge, plan_for

PRIVACY = pv.LabelDP(1.0, 1e-6, (0.0, 1.0), mechanism="release")


def data(seed=0, m=60):
    rng = np.random.default_rng(seed)
    return rng.standard_normal((m, 3)), rng.random(m)


def test_a_second_fit_of_the_same_labels_warns_with_the_total():
    X, y = data()
    est = pv.PrivateLasso(10.0, PRIVACY).fit(X, y)
    est.refit(X, 20.0)
    est.path(X, [10.0, 20.0])
    pv.PrivateLasso(10.0, PRIVACY).fit(*data(seed=1))  # other labels
    with pytest.warns(pv.PrivacyWarning, match="released 2 times in this process") as caught:
        est.fit(X[:, :2], y.tolist())
    (warning,) = caught
    assert warning.filename == __file__
    text = str(warning.message)
    for part in ("not ε = 1.", "refit", "path", "Ledger"):
        assert part in text
    # What a ledger would have to allow for: half of δ is for releases of other kinds.
    total = gaussian_epsilon(5e-7, np.sqrt(2) * PRIVACY.mu)
    (said,) = re.findall(r"together is ε = ([\d.]+)", text)
    assert total <= float(said) < total + 1e-3
    with pytest.warns(pv.PrivacyWarning, match="released 3 times"):
        pv.PrivateLasso(10.0, PRIVACY, random_state=0).fit(X, y)


def test_two_perturbed_objectives_cost_more_than_two_releases_and_less_than_the_sum():
    X, y = data(seed=2)
    privacy = pv.LabelDP(1.0, 1e-6, (0.0, 1.0), mechanism="objective")
    pv.PrivateLasso(10.0, privacy).fit(X, y)
    with pytest.warns(pv.PrivacyWarning, match="released 2 times in this process") as caught:
        pv.PrivateLasso(10.0, privacy).fit(X, y)
    (said,) = re.findall(r"together is ε = ([\d.]+)", str(caught[0].message))
    assert gaussian_epsilon(1e-6, np.sqrt(2) * PRIVACY.mu) < float(said) < 2.0


def test_no_total_is_said_of_different_neighbours():
    X, y = data(seed=2)
    records = pv.RecordDP(1.0, 1e-6, [(0, 1)] * X.shape[1], (0.0, 1.0))
    pv.PrivateLasso(10.0, PRIVACY).fit(X, y)
    with pytest.warns(pv.PrivacyWarning, match=r"2 times .* different neighbours") as caught:
        pv.PrivateLasso(privacy=records).fit(X, y)
    assert "together is ε" not in str(caught[0].message)


def test_nothing_is_computed_for_a_warning_that_is_not_shown(monkeypatch):
    X, y = data(seed=3)
    with monkeypatch.context() as patch, warnings.catch_warnings():
        patch.setattr(_charge, "spent_epsilon", lambda *_: pytest.fail("computed in vain"))
        warnings.simplefilter("ignore", pv.PrivacyWarning)
        for _ in range(2):
            pv.PrivateLasso(10.0, PRIVACY).fit(X, y)
    with pytest.warns(pv.PrivacyWarning, match="released 3 times"):  # they were counted
        pv.PrivateLasso(10.0, PRIVACY).fit(X, y)


def test_no_warning_with_a_ledger_or_without_a_formal_claim():
    X, y = data()
    ledger = pv.Ledger(9.0, 1e-6)
    for _ in range(2):
        pv.PrivateLasso(10.0, PRIVACY, ledger=ledger).fit(X, y)
        pv.PrivateLasso(10.0, pv.OnAverage(1.0)).fit(X, y)


SELECTIONS = {
    "cross-validation or a search": [
        lambda est, X, y: GridSearchCV(est, {"lam": [1.0, 2.0]}, cv=2).fit(X, y),
        lambda est, X, y: cross_val_score(make_pipeline(est), X, y, cv=2),
    ],
    "feature selection": [lambda est, X, y: RFE(est, n_features_to_select=2).fit(X, y)],
    "an ensemble": [lambda est, X, y: BaggingRegressor(est, n_estimators=2).fit(X, y)],
}


@pytest.mark.parametrize(
    ("name", "select"), [(name, f) for name, several in SELECTIONS.items() for f in several]
)
def test_model_selection_warns_from_the_first_fit_on(name, select):
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        select(pv.PrivateLasso(10.0, PRIVACY), *data())
    found = [str(one.message) for one in caught if one.category is pv.PrivacyWarning]
    assert len(found) >= 2
    assert len(set(found)) == 1  # so that Python shows it once
    (text,) = set(found)
    assert f"several in {name}" in text
    # 5 folds, 4 candidates and a refit: each label enters 17 of 21 fits.
    total = gaussian_epsilon(5e-7, np.sqrt(17) * PRIVACY.mu)
    (said,) = re.findall(r"together ε = ([\d.]+)", text)
    assert total <= float(said) < total + 1e-3
    for part in ("21 fits", "enters 17", "without noise", "refit", "path", "Ledger"):
        assert part in text
    assert {one.filename for one in caught if one.category is pv.PrivacyWarning} == {__file__}


def test_numbers_that_protect_nothing_warn():
    X, y = data()
    for privacy, reason in [
        (pv.LabelDP(21.0, 1e-6, (0.0, 1.0)), "ε = 21 is above 20"),
        (pv.LabelDP(1.0, 0.02, (0.0, 1.0)), "one over the number of rows"),
    ]:
        with pytest.warns(pv.PrivacyWarning, match=reason):
            est = pv.PrivateLasso(10.0, privacy).fit(X, y)
        assert not est.guarantee_.for_release
        X, y = data(seed=1)


def test_nothing_that_is_kept_tells_labels():
    X, y = data()
    pv.PrivateLasso(10.0, PRIVACY).fit(X, y)
    ((digest, [(_, loss)]),) = _charge._USES.items()
    assert (len(digest), loss) == (16, GaussianLoss(PRIVACY.mu))
    assert len(_charge._KEY) == 32


@pytest.mark.parametrize("settings", [{}, {"scales": "private"}, {"mechanism": "statistics"}])
def test_rows_in_blocks_are_known_again_at_another_budget(settings):
    """Opened anew, cut in another way, with another ε, which changes how residuals are clipped."""
    rng = np.random.default_rng(17)
    X, y = rng.random((900, 2)), rng.random(900)
    for parts, epsilon in ((2, 1.0), (5, 30.0)):
        privacy = pv.RecordDP(epsilon, 1e-6, [(0, 1)] * 2, (0, 1), **settings)
        plan: Any = plan_for(RowBlocks.of_arrays(X, y, n_parts=parts), FitOptions(privacy))
        if parts == 2:
            plan.release(None)
        else:
            with pytest.warns(pv.PrivacyWarning, match="released 2 times"):
                plan.release(None)
