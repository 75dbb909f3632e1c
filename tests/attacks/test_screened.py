"""The exact law of a choice of columns and of the fits after it."""

import math
from dataclasses import replace
from fractions import Fraction
from itertools import combinations, permutations
from typing import Any

import numpy as np
import pytest
from scipy.stats import beta

import privasso as pv
from privasso.accounting import GaussianLoss
from privasso.accounting._composed import compose_losses
from privasso.attacks._audit import attack
from privasso.attacks._pair import pairs_of
from privasso.blocks import RowBlocks
from privasso.fit import FitOptions, plan_for
from privasso.programs import Peeled, ScreenedObjective, _screening
from privasso.queries import Answering, _choice, bit_source
from privasso.theory import log_set_probability


@pytest.mark.parametrize("count", [1, 2, 3])
def test_probabilities_of_sets_against_all_orders(count):
    """Choosing one after the other, with rational weights, summed over the orders of a set."""
    weights = [Fraction(1), Fraction(7), Fraction(1, 50), Fraction(3), Fraction(400)]
    scores = np.log([float(w) for w in weights])
    total = 0.0
    for chosen in combinations(range(5), count):
        exact = Fraction(0)
        for order in permutations(chosen):
            left, one = sum(weights), Fraction(1)
            for i in order:
                one, left = one * weights[i] / left, left - weights[i]
            exact += one
        found = math.exp(log_set_probability(2.5 * scores, 2.5, chosen))
        assert found == pytest.approx(float(exact), rel=1e-11)
        total += found
    assert total == pytest.approx(1.0, abs=1e-12)


def test_extreme_scores():
    """Sets that are nearly certain, and nearly impossible."""
    scores = np.array([0.0, 500.0, 0.0])
    assert log_set_probability(scores, 1.0, [1]) == pytest.approx(0.0, abs=1e-12)
    assert log_set_probability(scores, 1.0, [0]) == pytest.approx(-500.0, rel=1e-9)
    assert log_set_probability(scores, 1.0, [0, 1, 2]) == 0.0


def table(m=60, n=6):
    """Columns of which two are tied, and a record that decides between them."""
    rng = np.random.default_rng(0)
    X = rng.uniform(-1.0, 1.0, (m, n))
    y = X[:, 0] - X[:, 1] + 0.3 * rng.standard_normal(m)
    X[0], y[0] = 1.0, 3.0
    X[0, 1::2] = -1.0
    return X, np.clip(y, -3.0, 3.0)


def planned(X, epsilon, delta, screen, **options):
    privacy = pv.RecordDP(epsilon, delta, bounds=[(-1, 1)] * X.shape[1], y_bounds=(-3, 3))
    plan = plan_for(X, FitOptions(privacy, screen=screen, **options), seeded=True)
    assert isinstance(plan.asking, ScreenedObjective)
    return plan, plan.asking


@pytest.mark.parametrize(
    ("screen", "n", "intercept"),
    [
        pytest.param(2, 6, True, marks=pytest.mark.slow),
        pytest.param(2, 6, False, marks=pytest.mark.slow),
        pytest.param(6, 9, True, marks=pytest.mark.slow),
        pytest.param(12, 15, True, marks=pytest.mark.slow),
    ],
)
def test_the_score_is_a_log_likelihood_ratio(screen, n, intercept):
    """E e^score is one under the neighbour, with one round, two and four."""
    X, y = table(n=n)
    plan, objective = planned(X, 4.0, 0.01, screen, fit_intercept=intercept)
    assert len(objective.rounds) == {2: 0, 6: 1, 12: 3}[screen]
    (pair,) = pairs_of(plan, y, {0: "row"})
    check_ratio(pair, 150)


def check_ratio(pair, draws):
    for draw, sign in ((pair.out, 1.0), (pair.into, -1.0)):
        scores = sign * pair.score(draw(draws, np.random.default_rng(1)))
        weights = np.exp(scores)
        assert abs(weights.mean() - 1.0) < 4.0 * weights.std() / math.sqrt(weights.size)
        assert scores.std() > 0.2  # it tells something


def tied():
    """Two columns that are tied without the first record, which decides between them."""
    X = np.tile([[0.9, 0.9], [-0.9, -0.9]], (15, 1))
    X[0] = 1.0, -1.0
    return X, np.where(np.arange(30) % 2 == 0, 3.0, -3.0)


@pytest.mark.parametrize(("part", "caught"), [(1.0, False), (0.5, True)])
def test_noise_for_half_of_the_sensitivity_is_caught(part, caught, monkeypatch):
    """Lower limits of what the choice alone tells, at 99.9 %, against the claim for the choice."""
    X, y = tied()
    _, objective = planned(X, 8.0, 0.001, 1)
    screening = objective.screening
    with_part_of_the_noise(part, monkeypatch)
    fewer, draws, bits = y.copy(), 600, bit_source(np.random.default_rng(0))
    fewer[0] = np.nan
    into, out = (
        sum(int(screening.choose(Answering(rows, bits))[0] == 1) for _ in range(draws))
        for rows in (RowBlocks.of_arrays(X, labels) for labels in (y, fewer))
    )
    most = beta.ppf(0.9995, into + 1, draws - into)
    least = beta.ppf(0.0005, out, draws - out + 1)
    loss = compose_losses([screening.choices, GaussianLoss(screening.mu)])
    epsilons = np.linspace(0.0, 6.0, 25)
    beyond = [least - math.exp(e) * most > loss.delta(e) for e in epsilons]
    assert any(beyond) is caught


def record_plan(screen, n=40, intercept=True, epsilon=2.0):
    """A plan, and the pair of tables that is made for its choice."""
    plan, _ = planned(np.zeros((40, n)), epsilon, 0.02, screen, fit_intercept=intercept)
    ((made, y, name),) = plan.worst(np.zeros(40))
    return plan, pairs_of(made, y, {0: name})


def label_plan(screen, n=12, m=64, intercept=True):
    privacy = pv.LabelDP(2.0, 0.02, y_bounds=(-3, 3))
    options = FitOptions(privacy, lam=0.1, screen=screen, fit_intercept=intercept)
    plan: Any = plan_for(np.random.default_rng(0).random((m, n)), options, seeded=True)
    ((made, y, name),) = plan.worst(np.zeros(m))
    return plan, pairs_of(made, y, {0: name})


PLANS = {"records": record_plan, "labels": label_plan}


@pytest.mark.parametrize(
    ("kind", "options", "draws"),
    [
        ("records", {"screen": 4}, 50),
        ("labels", {"screen": 2}, 25),
        pytest.param("records", {"screen": 4}, 1000, marks=pytest.mark.slow),
        pytest.param("labels", {"screen": 2}, 800, marks=pytest.mark.slow),
        pytest.param("records", {"screen": 8}, 1000, marks=pytest.mark.slow),
        pytest.param("records", {"screen": 4, "intercept": False}, 1000, marks=pytest.mark.slow),
        pytest.param("labels", {"screen": 3}, 800, marks=pytest.mark.slow),
        pytest.param("labels", {"screen": 2, "intercept": False}, 800, marks=pytest.mark.slow),
        # Fewer rows than columns, which cannot be orthogonal.
        pytest.param("labels", {"screen": 3, "n": 90}, 800, marks=pytest.mark.slow),
    ],
)
def test_ratios_of_pairs_made_for_the_choice(kind, options, draws):
    _, (pair,) = PLANS[kind](**options)
    check_ratio(pair, draws)


@pytest.mark.slow
def test_ratios_of_labels_of_real_rows():
    """Columns that are correlated, so that projections matter, and one that is constant."""
    rng = np.random.default_rng(2)
    X = rng.standard_normal((50, 3)) @ rng.standard_normal((3, 8)) + rng.standard_normal((50, 8))
    X[:, 3] = 1.0
    privacy = pv.LabelDP(4.0, 0.02, y_bounds=(-3, 3))
    plan = plan_for(X, FitOptions(privacy, lam=0.1, screen=7), seeded=True)
    y = np.clip(X[:, 0] + 0.2 * rng.standard_normal(50), -3.0, 3.0)
    (pair,) = pairs_of(plan, y, {0: "row"})
    check_ratio(pair, 600)


def plan_with_components(epsilon, delta):
    """Rows of two factors, with a large one, and labels of one column of its own."""
    rng = np.random.default_rng(3)
    X = rng.standard_normal((40, 2)) @ rng.standard_normal((2, 12))
    X += 0.4 * rng.standard_normal((40, 12))
    X[0] *= 3.0
    privacy = pv.LabelDP(epsilon, delta, y_bounds=(-3, 3))
    plan: Any = plan_for(X, FitOptions(privacy, screen="auto"), seeded=True)
    assert plan.asking.components is not None
    return plan, np.clip(X[:, 0] + 0.2 * rng.standard_normal(40), -3.0, 3.0)


def test_the_target_of_a_choice_by_labels():
    """Labels of the data, and one that is made up; their covariates are part of the questions."""
    rng = np.random.default_rng(0)
    X = rng.standard_normal((40, 6))
    y = np.clip(X[:, 0] + 0.2 * rng.standard_normal(40), -3.0, 3.0)
    privacy = pv.LabelDP(2.0, 0.02, y_bounds=(-3, 3))
    plan = plan_for(X, FitOptions(privacy, lam=0.1, screen=2))
    ((made, labels, _),) = plan.worst(y)
    for pair in pairs_of(plan, y, {3: "row"}) + pairs_of(made, labels, {0: "made up"}):
        scores = pair.score(pair.into(3, rng))
        assert np.isfinite(scores).all()
        assert scores.std() > 0.0
    assert plan_for(X[:7], FitOptions(privacy, lam=0.1, screen=2)).worst(y[:7]) == []


@pytest.mark.parametrize("draws", [25, pytest.param(400, marks=pytest.mark.slow)])
def test_ratios_of_labels_with_components(draws):
    """The likelihood ratio of everything that is released has the mean one."""
    plan, y = plan_with_components(4.0, 0.02)
    (pair,) = pairs_of(plan, y, {0: "row"})
    check_ratio(pair, draws)


@pytest.mark.slow
@pytest.mark.parametrize(("budget", "least", "most"), [(1.0, 0.05, 1.0), (4.0, 1.0, np.inf)])
def test_attack_on_a_fit_with_components(budget, least, most):
    """Everything together stays below the claim, and a fit with four times its ε does not."""
    plan, y = plan_with_components(2.0, 0.02)
    screened = plan.asking.screened
    fit = replace(screened.fit, epsilon=budget * screened.fit.epsilon)
    weaker = replace(plan.asking, screened=replace(screened, fit=fit))
    pairs = pairs_of(replace(plan, asking=weaker), y, {0: "row"})
    (found,) = attack(pairs, plan.guarantee.loss, 150, 0.01, np.random.default_rng(0))
    assert found.closest is not None
    assert least < found.closest.share <= most


def test_the_made_up_record_moves_choices_by_twice_the_sensitivity():
    """Every association by a whole record, half of them up and half down."""
    _, objective = planned(np.zeros((40, 10)), 2.0, 0.02, 2)
    ((X, y, _),) = objective.worst(np.zeros((40, 10)), np.zeros(40))
    fewer = y.copy()
    fewer[0] = np.nan
    screening = objective.screening
    choice = screening.choice(screening.choices, screening.associations(0.0, 0.1))
    one, two = (choice.sizes(RowBlocks.of_arrays(X, labels)) for labels in (y, fewer))
    change = (one - two) / float(_screening.ENTRY * _screening.LABEL)
    assert change.tolist() == [-1.0, 1.0] * 5


@pytest.mark.parametrize("order", [(), (0,), (3, 8)])
@pytest.mark.parametrize("centre", [-2.0, 0.0, 1.3])
def test_the_made_up_label_moves_choices_by_twice_the_sensitivity(order, centre):
    """Wherever the centre of the labels is, and after columns were chosen."""
    ((X, y, _),) = label_plan(2)[0].asking.screened.worst(70)
    screening = label_plan(2)[0].asking.screened.screening
    peeled, other = Peeled(X), y.copy()
    other[0] = -3.0
    choice = screening.choice(peeled, order, centre)
    one, two = (choice.sizes(RowBlocks.of_arrays(X, labels)) for labels in (y, other))
    # Half of the scale at a range of 1 is the most by which a score moves.
    change = (one - two) / (choice.scale * choice.choices.epsilon_each / 2.0)
    assert np.allclose(np.abs(change), 1.0, atol=1e-3)
    assert np.ptp(change) == pytest.approx(2.0, abs=2e-3)


def with_part_of_the_noise(part, monkeypatch):
    """All Gumbel noise of choices times a factor; what is claimed and the scores stay."""
    largest = _choice.noisy_largest
    monkeypatch.setattr(
        _choice,
        "noisy_largest",
        lambda scores, scale, count, bits: largest(scores, part * scale, count, bits),
    )


@pytest.mark.parametrize(
    ("kind", "options", "part", "releases"),
    [
        ("records", {"screen": 4}, 0.25, 20),
        pytest.param("records", {"screen": 4}, 0.5, 200, marks=pytest.mark.slow),
        pytest.param("records", {"screen": 8, "n": 60}, 0.5, 200, marks=pytest.mark.slow),
        pytest.param("labels", {"screen": 2}, 0.5, 300, marks=pytest.mark.slow),
    ],
)
def test_choices_with_too_little_noise_are_caught(kind, options, part, releases, monkeypatch):
    """By far fewer releases than an audit makes, from choice and fit together."""
    plan, pairs = PLANS[kind](**options)
    with_part_of_the_noise(part, monkeypatch)
    (found,) = attack(pairs, plan.guarantee.loss, releases, 0.01, np.random.default_rng(0))
    assert found.closest is not None
    assert found.closest.share > 1.0


@pytest.mark.slow
@pytest.mark.parametrize(
    ("kind", "options"), [("records", {"screen": 4}), ("labels", {"screen": 2})]
)
def test_correct_choices_are_not_refuted(kind, options):
    """Ten audits at 99 %: none is wrong, and they come near to the claim."""
    plan, shares = PLANS[kind](**options)[0], []
    for seed in range(10):
        pairs = PLANS[kind](**options)[1]
        (found,) = attack(pairs, plan.guarantee.loss, 100, 0.01, np.random.default_rng(seed))
        assert found.closest is not None
        shares.append(found.closest.share)
    assert max(shares) <= 1.0
    assert max(shares) > 0.4


def record_orders(k, factor):
    """Probabilities of all ordered choices, with and without the record that decides."""
    _, objective = planned(np.zeros((40, 6)), 2.0, 0.02, k)
    ((X, y, _),) = objective.worst(np.zeros((40, 6)), np.zeros(40))
    choices, fewer = objective.screening.choices, y.copy()
    fewer[0] = np.nan
    laws = []
    for labels in (y, fewer):
        associations = objective.screening.associations(0.0, 0.1)
        choice = objective.screening.choice(choices, associations)
        logs = choice.sizes(RowBlocks.of_arrays(X, labels)) / choice.scale
        weights, law = np.exp(factor * logs), []
        for order in permutations(range(6), k):
            steps = [
                weights[i] / (weights.sum() - weights[list(order[:j])].sum())
                for j, i in enumerate(order)
            ]
            law.append(math.prod(steps))
        laws.append(np.array(law))
    return choices, laws


def label_orders(k, factor):
    """The same for the label that decides, with columns projected after each choice."""
    screened = label_plan(k, n=6, m=16)[0].asking.screened
    ((X, y, _),) = screened.worst(16)
    screening, other = screened.screening, y.copy()
    choices = screening.choices
    other[0] = -3.0
    laws = []
    for labels in (y, other):
        rows, law, peeled = RowBlocks.of_arrays(X, labels), [], Peeled(X)
        for order in permutations(range(6), k):
            probability = 1.0
            for j, i in enumerate(order):
                choice = screening.choice(peeled, order[:j], 0.0)
                weights = np.exp(factor * choice.sizes(rows) / choice.scale)
                left = np.setdiff1d(np.arange(6), order[:j])
                probability *= weights[np.searchsorted(left, i)] / weights.sum()
            law.append(probability)
        laws.append(np.array(law))
    return choices, laws


@pytest.mark.parametrize("orders", [record_orders, label_orders])
@pytest.mark.parametrize("k", [1, 2, 3])
@pytest.mark.parametrize(("factor", "least", "most"), [(1.0, 0.9, 1.0), (2.0, 2.0, math.inf)])
def test_all_ordered_choices_against_the_claim(orders, k, factor, least, most):
    """δ of the tables made for the choice, by enumeration; half of the noise exceeds the claim."""
    choices, (p, q) = orders(k, factor)
    assert p.sum() == pytest.approx(1.0)
    ratios = [
        float(np.maximum(a - math.exp(x) * b, 0.0).sum()) / choices.delta(x)
        for x in np.linspace(0.0, 0.5, 6) * choices.epsilon_each
        for a, b in ((p, q), (q, p))
    ]
    assert least < max(ratios) <= most
