"""The correction of the intercept of fits whose residuals are clipped."""

import json
import math
from dataclasses import replace
from functools import partial

import numpy as np
import pytest
from parts import ideal_parts, last_fit, mu_of_sums, with_larger

import privasso as pv
from privasso.accounting import GaussianLoss
from privasso.accounting._composed import compose_losses
from privasso.attacks._pair import pairs_of
from privasso.blocks import RowBlocks
from privasso.fit import FitOptions, plan_fit, plan_for
from privasso.planning import RecordTable
from privasso.privacy import Guarantee, Terms
from privasso.programs import Level, direct_level
from privasso.programs._clipped_sums import FromMean, ResidualSum
from privasso.programs._records import full_residuals
from privasso.queries import Answering, Neighbours, bit_source, declared

WHOLE = 1 << 34


pytestmark = pytest.mark.filterwarnings("ignore::privasso.PrivacyWarning")


def rare(m=3000, seed=0):
    """Zeros and ones, of which few are ones: the median is far from the mean."""
    rng = np.random.default_rng(seed)
    X = rng.uniform(-1.0, 1.0, (m, 3))
    return X, (rng.random(m) < 0.22 + 0.2 * X[:, 0]).astype(float)


def kinds(level):
    return (
        pv.LabelDP(1.0, 1e-6, (0, 1), level=level),
        pv.RecordDP(1.0, 1e-6, bounds=[(-1, 1)] * 3, y_bounds=(0, 1), level=level),
        pv.RecordDP(1.0, 1e-6, bounds="private", y_bounds=(0, 1), level=level),
        pv.RecordDP(1.0, 1e-6, [(-1, 1)] * 3, (0, 1), shape="private", level=level),
    )


@pytest.mark.parametrize("kind", range(4))
def test_predictions_of_rare_events_have_their_mean(kind):
    """The residuals of held-out rows have the mean zero, up to the noise, and not otherwise."""
    (X, y), (X_test, y_test) = rare(), rare(20_000, 1)
    off = {}
    for level in (None, False):
        est = pv.PrivateLasso(privacy=kinds(level)[kind], random_state=0).fit(X, y)
        off[level] = abs(float(np.mean(y_test - est.predict(X_test))))
        said = any("corrects the intercept" in what for what in est.guarantee_.released)
        assert said == (level is None)
    # The deviation of the noise is 0.014, and that of the mean of 3000 labels 0.008.
    assert off[None] < 0.04
    assert off[False] > 0.1


@pytest.mark.parametrize("kind", [0, 1])
def test_the_budget_covers_the_mean(kind):
    """The fit and a Gaussian release of this sensitivity together, by convolution."""
    X, y = rare()
    said = pv.PrivateLasso(privacy=kinds(None)[kind], random_state=0).fit(X, y).guarantee_
    assert mu_of_sums(said) == pytest.approx(0.1 * pv.LabelDP(1.0, 1e-6, (0, 1)).mu)
    assert last_fit(said).neighbours == ("labels", "records")[kind]
    both = compose_losses(ideal_parts(said)).delta(1.0)
    assert 0.99e-6 < both < 1.0005e-6
    # A statement that hides a larger share of the mean is refused.
    with pytest.raises(ValueError, match="small enough"):
        with_larger(said, GaussianLoss, mu=2.0)
    assert Guarantee.from_dict(said.to_dict()) == said


def test_a_forgotten_mean_is_refused():
    """Noise as for the whole budget beside a mean that takes a part of it."""
    privacy, terms = kinds(True)[1], Terms(fit_intercept=True, seeded=False, n_rows=3000)
    assert isinstance(privacy, pv.RecordDP)
    whole = RecordTable(replace(privacy, level=False), 3000, 3).objective()
    right = RecordTable(privacy, 3000, 3).objective()
    for noise in (right.noise, whole.noise):
        asked = declared(partial(replace(right, noise=noise), lam=1.0), 3000)
        losses = [query.loss for query in asked if query.loss is not None]
        if noise is right.noise:
            assert privacy.guarantee(terms, losses).formal
        else:
            with pytest.raises(ValueError, match="small enough"):
                privacy.guarantee(terms, losses)


def test_one_record_or_label_moves_the_sum_by_the_range_at_most():
    rng = np.random.default_rng(0)
    worst = 0
    for _ in range(300):
        rows = rng.uniform(-3.0, 3.0, (4, 3))
        rows[:, -1] = rng.uniform(0.01, 1.0, 4)
        labels, u = rng.uniform(-0.5, 0.5, 4), 10.0 ** rng.uniform(-2, 3) * rng.standard_normal(3)
        empty = rows.copy(), labels.copy()
        empty[0][0], empty[1][0] = 0.0, 0.0
        residuals = ResidualSum(partial(full_residuals, u=u), 1.0)
        moved = int(residuals.sums(rows, labels)[0] - residuals.sums(*empty)[0])
        worst = max(worst, abs(moved))
        roots, at = rng.uniform(0.0, 1.0, 4), float(rng.standard_normal())
        roots[0] = 1.0
        ones = 10.0 ** rng.uniform(-2, 2)
        rows[:, -1], sums = roots * ones, []
        for end in (-0.5, 0.5):
            labels[0] = end
            sums.append(ResidualSum(FromMean(ones, at), 1.0).sums(rows, roots * labels)[0])
        assert abs(sums[1] - sums[0]) <= WHOLE + 2
    assert worst == WHOLE


@pytest.mark.parametrize("relation", ["emptied", "replaced"])
@pytest.mark.parametrize("unit", ["label", "record"])
def test_the_noise_that_is_expected_is_the_noise_that_is_drawn(unit, relation):
    """A record that is replaced moves the sum by two clips, so that its noise is twice as large."""
    level, drawn = Level(0.3, 1.0, neighbours=Neighbours(unit, relation)), []
    X, y = np.zeros((50, 0)), np.zeros(50)
    for seed in range(4000):
        bits = bit_source(np.random.default_rng(seed))
        ask = Answering(RowBlocks.of_arrays(X, y), bits)
        level.correction(ask, lambda X, y: np.zeros(len(y)))
        drawn.append(float(ask.transcript[0][1][0]) / 50)
    # Four standard errors of a standard deviation.
    assert np.std(drawn) == pytest.approx(level.noise(50), rel=4.0 / math.sqrt(2 * 4000))


@pytest.mark.parametrize("level", [None, True, False])
def test_when_it_is_done(level):
    """By the number of rows and the budget alone, and never without an intercept."""
    for m, expected in ((400, bool(level)), (3000, level is not False)):
        X, y = rare(m)
        for privacy in kinds(level)[:2]:
            for intercept in (True, False):
                options = FitOptions(privacy, fit_intercept=intercept)
                guarantee = plan_for(X, options, seeded=True).guarantee
                done = mu_of_sums(guarantee) > 0.0
                assert done == (expected and intercept)
    X, y = rare()
    weighted = plan_for(X, FitOptions(kinds(None)[0]), sample_weight=1.0 + y)
    assert mu_of_sums(weighted.guarantee) == 0.0


def test_any_cut_of_the_rows_gives_the_same_bits():
    X, y = rare()
    privacy = kinds(True)[1]
    found = set()
    for cut in (1, 7, 40):
        blocks = RowBlocks.of_arrays(X, y, n_parts=cut)
        rng = np.random.default_rng(0)
        plan = plan_for(blocks, FitOptions(privacy), seeded=True)
        model = plan.release(None, rng=rng).solve()
        found.add((model.intercept, *model.coef.tolist()))
    rng = np.random.default_rng(0)
    model = plan_for(X, FitOptions(privacy), seeded=True).release(y, rng=rng).solve()
    assert found == {(model.intercept, *model.coef.tolist())}


def test_a_kept_release_has_the_level(tmp_path):
    X, y = rare()
    est = pv.PrivateLasso(privacy=kinds(None)[0], random_state=0).fit(X, y)
    file = tmp_path / "release.json"
    pv.save_release(est.release_, file)
    again = pv.load_release(file).open(X).solve(est.lam_)
    assert again.intercept == est.intercept_
    # A file from before there was a level has none.
    old = pv.PrivateLasso(privacy=kinds(False)[0], random_state=0).fit(X, y)
    pv.save_release(old.release_, file)
    assert "level" not in json.loads(file.read_text())
    loaded = pv.load_release(file)
    assert isinstance(loaded, pv.KeptRelease)
    assert loaded.level == 0.0


@pytest.mark.parametrize("kind", [0, 1])
def test_the_ratio_of_the_attack_is_a_ratio(kind):
    """E e^score = 1 under the neighbour, and e^score − 1 is larger where the mean tells more."""
    X, y = rare(60)
    privacy = kinds(True)[kind]
    if kind == 0:
        pair = pairs_of(plan_fit(X, FitOptions(privacy)), y, {3: "one"})[0]
    else:
        assert isinstance(privacy, pv.RecordDP)
        objective = RecordTable(privacy, 60, 3).objective()
        # With a larger share than is ever used, so that the mean matters.
        objective = replace(objective, level=Level(0.8, 1.0))
        plan = plan_for(X, FitOptions(privacy, lam=1e-3))
        pair = pairs_of(replace(plan, asking=objective), y, {3: "one"})[0]
    scores = pair.score(pair.out(200, np.random.default_rng(0)))
    values = np.exp(scores)
    assert abs(values.mean() - 1.0) < 4.0 * values.std() / 200**0.5
    back = np.exp(-pair.score(pair.into(200, np.random.default_rng(1))))
    assert abs(back.mean() - 1.0) < 4.0 * back.std() / 200**0.5
    if kind == 1:
        assert scores.std() > 0.1


def test_strange_values_are_refused():
    with pytest.raises(ValueError, match="level must be True, False or None"):
        pv.LabelDP(1.0, 1e-6, (0, 1), level="yes")  # pyright: ignore[reportArgumentType]
    with pytest.raises(ValueError, match="level belongs to objective perturbation"):
        pv.LabelDP(1.0, 1e-6, (0, 1), mechanism="release", level=True)


def test_the_share_of_the_budget():
    """A hundredth of the squared sensitivity, at every ε."""
    for epsilon in (0.1, 1.0, 10.0):
        level = direct_level(epsilon, 1e-6, 10, asked=True)
        assert level is not None
        assert math.isclose(level.mu**2, 0.01 * pv.LabelDP(epsilon, 1e-6, (0, 1)).mu ** 2)
