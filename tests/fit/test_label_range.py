"""A range of the labels that is found in the labels, with noise."""

import math
from dataclasses import replace
from fractions import Fraction
from typing import Any

import numpy as np
import pytest
from scipy.stats import chisquare
from sklearn.linear_model import LinearRegression

import privasso as pv
from privasso.accounting._composed import compose_losses
from privasso.blocks import LabelsWithin, RowBlocks
from privasso.fit import FitOptions, plan_for
from privasso.programs import LabelRange
from privasso.queries import (
    EMPTIED,
    LABEL_REPLACED,
    Answering,
    Neighbours,
    bit_source,
    declared,
)

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
    assert "the range of the labels, chosen with noise" in stated.released
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
    assert "the range of the labels, chosen with noise" in found.guarantee.released


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


def votes(pair):
    """Both questions as they are asked for a table of so many rows, with what they claim."""
    asked = declared(LabelRange(0.05, pair), 300)
    return [query.query for query in asked]  # pyright: ignore[reportAttributeAccessIssue]


@pytest.mark.parametrize("pair", [EMPTIED, LABEL_REPLACED])
def test_no_label_moves_votes_by_more_than_is_claimed(pair):
    """Against the largest difference between any two labels, or none, in integers."""
    tried = [0.0, -0.0, 1.0, -1.0, 5e-324, 1e-19, 3e-19, -7.5, 1e300, math.inf, -math.inf, math.nan]
    tried += (2.0 ** np.arange(-66, 67)).tolist() + (-(2.0 ** np.arange(-66.5, 67))).tolist()
    for choice in votes(pair):
        worth = np.array([choice.scores.sums(np.array([[y]]), np.array([y])) for y in tried])
        assert np.issubdtype(worth.dtype, np.integer)
        claim = Fraction(choice.scale) * Fraction(choice.choices.epsilon_each)
        largest = 0
        for k, one in enumerate(worth):
            others = worth[tried.index(math.nan) :][:1] if pair == EMPTIED else worth[k:]
            moved = others - one
            largest = max(largest, int((moved.max(axis=1) - moved.min(axis=1)).max()))
        assert 0.9 * claim < largest <= claim


def test_intervals_are_chosen_with_the_probabilities_of_an_exponential_mechanism():
    y = 10.0 + np.random.default_rng(0).standard_normal(60)
    choice = votes(EMPTIED)[1]
    rows = RowBlocks.of_arrays(y[:, None], y)
    source = bit_source(np.random.default_rng(1))
    drawn = [int(one[0]) for one in choice.draws(rows, 4000, source)]
    log_odds = choice.sizes(rows) / choice.scale
    chance = np.exp(log_odds - log_odds.max())
    best = np.argsort(-chance)[:5]
    expected = 4000 * np.append(chance[best], chance.sum() - chance[best].sum()) / chance.sum()
    counts = [drawn.count(k) for k in best.tolist()]
    assert chisquare([*counts, 4000 - sum(counts)], expected).pvalue > 1e-3


def test_a_range_of_few_labels_is_seldom_far_off():
    """In any unit, and with the smallest part of the budget for the fit that there is."""
    asks, off = LabelRange.of_budget(0.2367, LABEL_REPLACED, 200, centred=True), 0
    for unit, shift in ((1.0, 0.0), (1e-9, 3.0), (1e12, 8.0)):
        y = unit * (shift + np.random.default_rng(2).standard_normal(200))
        for seed in range(70):
            within = found(y, asks.mu, LABEL_REPLACED, seed)
            clipped = np.mean((y < within.low) | (y > within.high))
            off += bool(clipped > 0.5 or within.width > 30.0 * np.std(y))
    assert off <= 2
