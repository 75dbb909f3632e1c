"""Ranges and scales from the data, paid for with a share of the budget: whole fits."""

import math
import pickle

import numpy as np
import pytest
from parts import mu_of_sums, with_larger

import privasso as pv
from privasso.accounting import (
    BesideGaussian,
    GaussianLoss,
    InexactLoss,
    ObjectiveLoss,
    objective_sensitivity,
    sensitivity_for,
)
from privasso.blocks import RowBlocks
from privasso.fit import FitOptions, plan_for
from privasso.planning import RecordTable
from privasso.privacy import Guarantee, Terms
from privasso.programs import PerturbedObjective
from privasso.queries import Answering, bit_source

Y = (-4.0, 4.0)
WIDE = 1000.0
VARIANTS = [
    {"bounds": "private"},
    {"bounds": np.tile([-1e9, 1e9], (6, 1)), "scales": "private"},
    {"bounds": "private", "scales": "private"},
]
TERMS = Terms(fit_intercept=True, seeded=False, n_rows=4000)


def table(m=4000, seed=0):
    """Columns whose scales span ten orders of magnitude; the third is far from zero."""
    rng = np.random.default_rng(seed)
    Z = rng.standard_normal((m, 6))
    X = (Z + np.array([0, 0, 40, 0, 2, 0])) * [1e-5, 1e5, 1.0, 30.0, 0.01, 2.0]
    return X, Z @ [0.5, 0.5, 0.4, 0.0, 0.4, 0.0] + 0.3 * rng.standard_normal(m)


def statement(**changes):
    given = {"bounds": "private", "y_bounds": Y, "level": False, **changes}
    privacy = pv.RecordDP(1.0, 1e-6, **given)
    plan = plan_for(np.zeros((4000, 6)), FitOptions(privacy))
    assert isinstance(plan.asking, PerturbedObjective)
    return privacy, plan.asking, plan.guarantee


@pytest.mark.parametrize("variant", VARIANTS)
@pytest.mark.parametrize("fit_intercept", [True, False])
def test_fits_without_knowing_the_scales(variant, fit_intercept):
    X, y = table()
    if not fit_intercept:
        X = X - X.mean(axis=0)
    privacy = pv.RecordDP(1.0, 1e-6, y_bounds=Y, **variant)
    est = pv.PrivateLasso(privacy=privacy, random_state=0, fit_intercept=fit_intercept).fit(X, y)
    # The third column lies between 32 and 64 and varies by 1: ranges alone hardly show it.
    assert est.score(X, y) > (0.88 if privacy.scales or not fit_intercept else 0.7)


def test_wide_bounds_alone_find_nothing():
    X, y = table()
    given = pv.RecordDP(1.0, 1e-6, bounds=np.tile([-1e9, 1e9], (6, 1)), y_bounds=Y)
    assert pv.PrivateLasso(privacy=given, random_state=0).fit(X, y).score(X, y) < 0.1


def test_units_do_not_matter():
    X, y = table()
    privacy = pv.RecordDP(1.0, 1e-6, "private", Y, scales="private")
    scale = 2.0 ** np.array([-20, 3, 0, 11, 7, -30])
    one, two = (
        pv.PrivateLasso(privacy=privacy, random_state=0).fit(X * s, labels).predict(X * s)
        for s, labels in ((np.ones(6), y), (scale, y + 1e-9))
    )
    assert np.sqrt(np.mean((one - two) ** 2)) < 0.1


@pytest.mark.parametrize("variant", VARIANTS)
def test_one_statement_for_all_parts(variant):
    privacy, objective, guarantee = statement(**variant)
    noise, mu = objective.noise, math.sqrt(0.2) * sensitivity_for(1.0, 1e-6)
    assert mu_of_sums(guarantee) == pytest.approx(mu)
    assert noise.c < objective_sensitivity(1.0, 1e-6, noise.t)
    # The releases before the fit have together the sensitivity that is stated.
    assert objective.estimate is not None
    parts = 1 + (privacy.scales is not None)
    assert mu * (1 - 1e-9) < objective.estimate.mu * math.sqrt(parts) <= mu
    loss = BesideGaussian.of(ObjectiveLoss(noise.c, noise.t, "records"), mu)
    assert 0.99e-6 < InexactLoss(loss, shift=noise.shift).delta(1.0) <= 1e-6
    assert "found with noise" in guarantee.claim
    assert "noisy counts" in str(guarantee)
    assert ("of the columns and" in str(guarantee)) == (privacy.bounds != "private")
    assert Guarantee.from_dict(guarantee.to_dict()) == guarantee
    assert 1.8 < guarantee.group(2)["epsilon"] < 2.5


def test_a_forgotten_share_is_refused():
    """Noise as for the whole budget beside counts that took a share of it."""
    privacy, _, guarantee = statement()
    alone = pv.RecordDP(1.0, 1e-6, np.tile([0.0, 1.0], (6, 1)), Y, level=False)
    noise = RecordTable(alone, 4000, 6).objective().noise
    with pytest.raises(ValueError, match="small enough for its ε and δ"):
        privacy.guarantee(
            TERMS, [*guarantee.losses[:-1], ObjectiveLoss(noise.c, noise.t, "records")]
        )
    with pytest.raises(ValueError, match="small enough"):
        with_larger(guarantee, GaussianLoss, mu=1.05)


def test_charged_to_the_ledger_before_anything_is_read():
    X, y = table(400)
    privacy = pv.RecordDP(1.0, 1e-6, "private", Y)
    ledger = pv.Ledger(1.5, 1e-6)
    pv.PrivateLasso(privacy=privacy, ledger=ledger, random_state=0).fit(X, y)
    assert 0.99 < ledger.spent() < 1.001
    with pytest.raises(pv.BudgetError):
        pv.PrivateLasso(privacy=privacy, ledger=ledger, random_state=0).fit(X, y)


def test_composed_with_another_fit():
    _, _, one = statement()
    two = one.compose(one)
    assert two.losses == one.losses * 2
    assert 1.3 < two["epsilon"] < 2.0


def test_nothing_of_the_data_is_kept():
    X, y = table(500)
    X[0] = 123.4567891
    est = pv.PrivateLasso(privacy=pv.RecordDP(1.0, 1e-6, "private", Y), random_state=0).fit(X, y)
    kept = pickle.dumps(est)
    assert np.float64(123.4567891).tobytes() not in kept
    assert len(kept) < 10_000
    assert "array" not in repr(est.privacy)


def test_a_column_that_is_not_found_has_no_coefficient_or_keeps_its_bounds():
    X, y = table(100)
    privacy = pv.RecordDP(1.0, 1e-6, "private", Y)
    est = pv.PrivateLasso(privacy=privacy, random_state=0).fit(X, y)
    assert not est.coef_[[0, 1, 3, 5]].any()
    bounds = np.tile([-2.0, 3.0], (6, 1))
    kept = RecordTable(pv.RecordDP(1.0, 1e-6, bounds, Y, scales="private"), 100, 6).objective()
    rows = RowBlocks.of_arrays(X, y)
    found = kept.estimated(Answering(rows, bit_source(np.random.default_rng(0))))
    assert np.array_equal(found.bounds, bounds)


@pytest.mark.parametrize("shape", [(1, 1), (3, 10), (2, 1)])
@pytest.mark.parametrize("constant", [False, True])
def test_small_wide_and_constant_tables(shape, constant):
    rng = np.random.default_rng(0)
    X = np.full(shape, 7.0) if constant else rng.uniform(-1, 1, shape)
    privacy = pv.RecordDP(1.0, 1e-3, "private", Y, scales="private")
    est = pv.PrivateLasso(privacy=privacy, random_state=0).fit(X, rng.random(shape[0]))
    assert np.isfinite(est.coef_).all()


def test_a_constant_column_among_many_rows():
    X, y = table()
    X[:, 3] = 5.0
    privacy = pv.RecordDP(1.0, 1e-6, "private", Y, scales="private")
    est = pv.PrivateLasso(privacy=privacy, random_state=0).fit(X, y)
    assert est.score(X, y) > 0.85


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"bounds": "data"}, "pairs .* or 'private'"),
        ({"bounds": None}, "bounds='private' finds"),
        ({"scales": "data"}, "scales must be 'private' or None"),
        ({"share": 0.0}, "share must be positive"),
        ({"share": 1.0}, "below 1"),
        ({"share": math.nan}, "share"),
    ],
)
def test_bad_settings(arguments, message):
    with pytest.raises(ValueError, match=message):
        pv.RecordDP(
            **{"epsilon": 1.0, "delta": 1e-6, "bounds": "private", "y_bounds": Y} | arguments
        )


def test_public_bounds_are_refused():
    with pytest.raises(ValueError, match="found in the data"):
        pv.RecordDP(1.0, 1e-6, "private", Y).column_bounds(6)
