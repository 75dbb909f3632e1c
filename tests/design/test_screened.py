"""Designs of fits that choose columns first."""

import pytest

import privasso as pv
from privasso.planning import ScreeningPrior, direct_r2, usual_screening
from privasso.privacy import RecordBudget

WIDE = pv.Model(alpha=0.5, rho=0.005, sigma_xi=0.05, scales=pv.Constant(1.0))
RECORDS = RecordBudget(1.0, 1e-6)


def test_no_other_share_or_number_is_predicted_to_be_better():
    """Against all that `usual_screening` may choose from, given one by one."""
    best = pv.optimal_design(WIDE, pv.Budget(RECORDS, screen="auto"), n_features=2000)
    prior = ScreeningPrior(n_true=10, explained=2.0 / 3.0)
    for count in (3, 12, 30, 120):
        other = pv.optimal_design(WIDE, pv.Budget(RECORDS, screen=count), n_features=2000)
        assert other.columns == count
        # Four rounds may be this much worse for independent columns.
        assert other.r2 <= best.r2 + 0.03
    assert best.r2 == pytest.approx(_again(best).r2(prior, 1000, 2000))
    assert best.direct_r2 == pytest.approx(max(direct_r2(prior, 1.0, 1e-6, 1000, 2000), 0.0))
    assert pytest.approx((1.0 - best.r2) * (0.005 + 0.0025)) == best.E


def _again(best):
    prior = ScreeningPrior(n_true=10, explained=2.0 / 3.0)
    found = usual_screening(1.0, 1e-6, 1000, 2000, prior=prior, count=best.columns)
    assert found is not None
    return found


def test_says_when_a_fit_of_all_columns_is_better():
    dense = pv.Model(alpha=200.0, rho=1.0, sigma_xi=0.5, scales=pv.Constant(1.0))
    for budget in (RECORDS, pv.LabelDP(1.0, 1e-6, (-4.0, 4.0))):
        best = pv.optimal_design(dense, pv.Budget(budget, screen="auto"), n_features=40)
        assert best.better == "direct"
        assert best.direct_r2 > best.r2


def test_wrong_requests_are_refused():
    for given, message in (
        ({}, "screen needs n_features"),
        ({"n_features": 2000, "lam": 1.0}, "goes with a model"),
    ):
        with pytest.raises(ValueError, match=message):
            pv.optimal_design(WIDE, pv.Budget(RECORDS, screen="auto"), **given)
