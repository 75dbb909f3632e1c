"""A range of the labels that is found in the labels, with noise."""

import math
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from sklearn.linear_model import LinearRegression

import privasso as pv
from privasso.accounting._composed import compose_losses
from privasso.blocks import LabelsWithin, RowBlocks
from privasso.fit import FitOptions, plan_for
from privasso.programs import LabelRange
from privasso.queries import EMPTIED, LABEL_REPLACED, Answering, Neighbours, bit_source

pytestmark = pytest.mark.filterwarnings("ignore::privasso.PrivacyWarning")
N = 4
KINDS = {
    "records": lambda **given: pv.RecordDP(1.0, 1e-6, bounds=[(-4.0, 4.0)] * N, **given),
    "labels": lambda **given: pv.LabelDP(1.0, 1e-6, **given),
}


def table(m=4000, seed=0, shift=5.0, unit=1.0):
    rng = np.random.default_rng(seed)
    X = rng.standard_normal((m, N))
    return X, unit * (shift + X @ [1.0, 0.5, 0.0, 0.0] + rng.standard_normal(m))


def found(y, mu=0.2, pair=EMPTIED, seed=0):
    rows = RowBlocks.of_arrays(np.empty((len(y), 0)), y)
    return LabelRange(mu, pair)(Answering(rows, bit_source(np.random.default_rng(seed))))


@pytest.mark.parametrize("pair", [EMPTIED, LABEL_REPLACED, Neighbours("record", "replaced")])
@pytest.mark.parametrize(
    "draw",
    [
        lambda rng, m: 20.0 + 3.0 * rng.standard_normal(m),
        lambda rng, m: -1e-7 * rng.exponential(size=m),
        lambda rng, m: 1e9 * rng.uniform(-1.0, 1.0, m),
        lambda rng, m: (rng.random(m) < 0.3).astype(float),
    ],
    ids=["normal", "exponential", "uniform", "zeros and ones"],
)
def test_the_range_holds_most_labels_and_is_not_much_wider(draw, pair):
    y, widths = draw(np.random.default_rng(1), 5000), []
    for seed in range(9):
        within = found(y, pair=pair, seed=seed)
        assert np.mean((y < within.low) | (y > within.high)) < 0.05
        widths.append(within.width)
    assert np.median(widths) < 9.0 * np.std(y)
    assert max(widths) < 15.0 * np.std(y)


def test_labels_become_places_in_the_range():
    within = LabelsWithin(2.0, 6.0)
    y = np.array([2.0, 3.0, 6.0, 9.0, -math.inf, math.nan])
    X = np.ones((6, 1))
    rows, places = within(X, y)
    assert rows is X
    np.testing.assert_array_equal(places, [-0.5, -0.25, 0.5, 0.5, -0.5, math.nan])


@pytest.mark.parametrize("kind", KINDS)
def test_a_fit_is_nearly_as_good_as_with_known_bounds(kind):
    X, y = table()
    scores = {}
    for bounds in ((0.0, 10.0), "private", (-300.0, 300.0)):
        privacy = KINDS[kind](y_bounds=bounds)
        scores[bounds] = pv.PrivateLasso(privacy=privacy, random_state=1).fit(X, y).score(X, y)
    assert scores["private"] > scores[0.0, 10.0] - 0.03
    assert scores["private"] > scores[-300.0, 300.0] + 0.02


@pytest.mark.parametrize("kind", KINDS)
def test_the_statement_holds_for_all_questions_and_has_the_range(kind):
    X, y = table(400)
    est = pv.PrivateLasso(privacy=KINDS[kind](y_bounds="private"), random_state=0).fit(X, y)
    stated = est.guarantee_
    assert (stated["epsilon"], stated["delta"]) == (1.0, 1e-6)
    assert 0.5e-6 < compose_losses(stated.losses).delta(1.0) <= 1.01e-6  # by other code
    low, high = stated.label_bounds or (0.0, 0.0)
    assert low < 5.0 < high
    assert "noisy counts of the labels, which give their range" in stated.released
    assert not any("bounds of the labels" in one or "label bounds" in one
                   for one in stated.assumptions)  # fmt: skip
    plan = plan_for(X, FitOptions(KINDS[kind](y_bounds="private")))
    assert plan.guarantee.label_bounds is None  # before the labels are read


@pytest.mark.parametrize(
    "options",
    [{}, {"intervals": True}, {"fit_intercept": False}, {"screen": 2}, {"loss": pv.Quantile(0.8)}],
    ids=["plain", "intervals", "through zero", "screened", "quantile"],
)
@pytest.mark.parametrize("kind", KINDS)
def test_a_range_that_is_known_gives_the_fit_with_these_bounds(kind, options):
    """The same noise, in units of the range."""
    X, y = table(1500)
    low = 0.0 if options.get("fit_intercept", True) else -10.0
    models, unit = [], ((-0.5, 0.5), lambda ask: LabelsWithin(low, 10.0))
    for bounds, known in (((low, 10.0), None), unit):
        plan = plan_for(X, FitOptions(KINDS[kind](y_bounds=bounds), **options), seeded=True)
        made = replace(plan, range=known).release(y, rng=np.random.default_rng(2), charged=True)
        assert made.guarantee.label_bounds == (low, 10.0)
        models.append(made.solve())
    one, other = models
    np.testing.assert_allclose(other.coef, one.coef, rtol=1e-6, atol=1e-9)
    assert other.intercept == pytest.approx(one.intercept)
    assert other.lam == pytest.approx(one.lam)
    assert other.guarantee == one.guarantee
    for target in () if one.intervals is None else one.intervals.laws:
        np.testing.assert_allclose(other.confint(target=target), one.confint(target=target), 1e-6)


@pytest.mark.parametrize("kind", KINDS)
def test_intervals_hold_the_coefficients(kind):
    missed = 0
    for seed in range(4):
        X, y = table(8000, seed)
        privacy = KINDS[kind](y_bounds="private")
        est = pv.PrivateLasso(privacy=privacy, random_state=seed, intervals=True).fit(X, y)
        low, high = est.confint(0.99, "least-squares").T
        missed += int(np.sum((low > [1.0, 0.5, 0.0, 0.0]) | (high < [1.0, 0.5, 0.0, 0.0])))
    assert missed <= 2


def test_a_release_is_solved_again_and_kept_in_the_units_of_the_labels(tmp_path):
    X, y = table()
    privacy = KINDS["labels"](y_bounds="private")
    est = pv.PrivateLasso(privacy=privacy, random_state=0).fit(X, y)
    path = est.path(X, [est.lam_, 1e6])
    np.testing.assert_allclose(path.coef[:, 0], est.coef_, rtol=1e-6, atol=1e-9)
    assert not path.coef[:, 1].any()
    pv.save_release(est.release_, tmp_path / "release.json")
    kept = pv.load_release(tmp_path / "release.json")
    again = kept.open(X).solve(est.lam_)
    np.testing.assert_allclose(again.coef, est.coef_, rtol=1e-9)
    assert kept.guarantee == est.guarantee_


def test_statistics_of_records_are_solved_again():
    X, y = table(20_000)
    privacy = KINDS["records"](y_bounds="private", mechanism="statistics")
    est = pv.PrivateLasso(privacy=privacy, random_state=0).fit(X, y)
    assert est.score(X, y) > 0.5
    path = est.path(X, [est.lam_])
    np.testing.assert_allclose(path.coef[:, 0], est.coef_)


def test_what_needs_numbers_is_refused():
    X, y = table(200)
    private = KINDS["labels"](y_bounds="private")
    numbers: tuple[Any, ...] = (3.0, 3, np.float32(3.0))
    for lam in numbers:
        with pytest.raises(ValueError, match="in units of the labels"):
            pv.PrivateLasso(lam=lam, privacy=private).fit(X, y)
    with pytest.raises(ValueError, match="0 and 1, not private"):
        pv.PrivateLogisticLasso(privacy=private).fit(X, y > 5.0)
    with pytest.raises(ValueError, match="or 'private'"):
        pv.LabelDP(1.0, 1e-6, y_bounds="publc")


def test_a_ledger_takes_fits_with_and_without_a_range():
    X, y = table(500)
    ledger = pv.Ledger(3.0, 1e-5)
    for bounds in ("private", (0.0, 10.0), "private"):
        privacy = KINDS["labels"](y_bounds=bounds)
        pv.PrivateLasso(privacy=privacy, ledger=ledger, random_state=0).fit(X, y)
    assert len(ledger.entries) == 3
    found, known, _ = (entry.guarantee for entry in ledger.entries)
    assert known.label_bounds == (0.0, 10.0)
    assert pv.privacy.compose([known, found]).label_bounds is None  # not all labels are in these


def test_designs_need_numbers_and_evaluations_take_those_that_were_found():
    X, y = table(6000)
    privacy = KINDS["labels"](y_bounds="private")
    with pytest.raises(ValueError, match="y_bounds as numbers"):
        pv.Budget(privacy)
    est = pv.PrivateLasso(privacy=privacy, random_state=0).fit(X[:3000], y[:3000])
    found = pv.evaluate(est, X[3000:], y[3000:], privacy=privacy, metrics="mae", random_state=1)
    assert found.guarantee.label_bounds == est.guarantee_.label_bounds
    low, high = found.intervals["mae"]
    assert low < np.mean(np.abs(y[3000:] - est.predict(X[3000:]))) < high
    with pytest.raises(ValueError, match="states no bounds"):
        pv.evaluate(LinearRegression().fit(X, y), X, y, privacy=privacy)


@pytest.mark.parametrize("kind", KINDS)
def test_audits_know_the_likelihood_of_the_range(kind):
    X, y = table(60)
    found = pv.audit(KINDS[kind](y_bounds="private"), X, y, records=[3], releases=40, rng=0)
    assert found.passed
    assert "noisy counts of the labels, which give their range" in found.guarantee.released


@pytest.mark.parametrize("labels", [0.0, 7.0, 5e-324, 1e300, math.inf, math.nan])
@pytest.mark.parametrize("rows", [2, 50])
@pytest.mark.parametrize("kind", KINDS)
def test_no_labels_are_a_reason_to_refuse_a_fit_with_intervals(kind, rows, labels):
    """What the range takes is a part of what intervals leave, so that the fit has the rest."""
    X, _ = table(rows)
    privacy = KINDS[kind](y_bounds="private")
    est = pv.PrivateLasso(privacy=privacy, random_state=0, intervals=True)
    assert np.isfinite(est.fit(X, np.full(rows, labels)).coef_).all()


@pytest.mark.parametrize("kind", [*KINDS])
def test_a_budget_that_cannot_be_shared_is_said_to_be_too_small(kind):
    X, y = table(m=100)
    privacy = replace(KINDS[kind](y_bounds=(0.0, 9.0)), epsilon=1e-9)
    with pytest.raises(ValueError, match="this budget is too small to be shared"):
        pv.PrivateLasso(privacy=privacy, intervals=True).fit(X, y)
