"""Noisy sums: what two records change at most, the law of the answers, and any cut of the rows."""

import math
from fractions import Fraction

import numpy as np
import pytest

import privasso as pv
from privasso.blocks import DataChangedError, RowBlocks
from privasso.planning import RecordTable
from privasso.programs._estimate import MagnitudeCounts, ScaleSums
from privasso.programs._record_statistics import Products
from privasso.queries import EMPTIED, NoisySum, bit_source
from privasso.queries._query import REPLACED

N = 3
BOUNDS = np.array([[-1.0, 1.0], [0.0, 2.0], [-3.0, 5.0]])


def products():
    privacy = pv.RecordDP(1.0, 1e-6, BOUNDS, (0.0, 3.0), mechanism="statistics")
    mechanism = RecordTable(privacy, 40, N).statistics()
    assert mechanism is not None
    return Products(mechanism.table.view, mechanism.weight, mechanism.radius)


SUMMANDS = {
    "counts": MagnitudeCounts(BOUNDS),
    "scales": ScaleSums(BOUNDS, BOUNDS.mean(axis=1), np.ptp(BOUNDS, axis=1) / 2.0),
    "products": products(),
}


def records(rng, count):
    """Records at the corners of their bounds, and others."""
    corners = BOUNDS[np.arange(N), rng.integers(0, 2, (count, N))]
    X = np.where(rng.random((count, N)) < 0.6, corners, rng.uniform(-4.0, 6.0, (count, N)))
    y = rng.choice([0.0, 3.0, 1.0, np.inf, -np.inf], count)
    return X, y


def squared_change(one, claims, a, b):
    parts = zip(one(*a), one(*b), claims, strict=True)
    return sum((Fraction(p - q) / claim) ** 2 for p, q, claim in parts)


@pytest.mark.parametrize("neighbours", [EMPTIED, REPLACED], ids=["emptied", "replaced"])
@pytest.mark.parametrize("name", SUMMANDS)
def test_no_record_changes_more_than_is_claimed(name, neighbours):
    summand, rng = SUMMANDS[name], np.random.default_rng(0)
    deviations = NoisySum(summand, 0.3, neighbours).deviations.tolist()
    claims = [Fraction(deviation) * Fraction(0.3) for deviation in deviations]

    def one(x, label):
        return summand.sums(x[None], np.array([label])).tolist()

    X, y = records(rng, 300)
    worst = Fraction(0)
    for k in range(0, len(y), 2):
        other = X[k + 1], y[k + 1] if neighbours is REPLACED else np.nan
        worst = max(worst, squared_change(one, claims, (X[k], y[k]), other))
    assert 0.5 < worst <= 1


@pytest.mark.parametrize("name", SUMMANDS)
def test_an_empty_record_adds_nothing(name):
    summand = SUMMANDS[name]
    X, _ = records(np.random.default_rng(1), 20)
    assert not summand.sums(X, np.full(20, np.nan)).any()


@pytest.mark.parametrize("name", SUMMANDS)
def test_any_cut_and_order_gives_the_same_answer(name):
    X, y = records(np.random.default_rng(2), 500)
    query = NoisySum(SUMMANDS[name], 0.3)

    def answer(rows):
        return query.run(rows, bit_source(np.random.default_rng(3))).tolist()

    whole = answer(RowBlocks.of_arrays(X, y))
    assert answer(RowBlocks.of_arrays(X[::-1], y[::-1], n_parts=64, jobs=3)) == whole
    assert answer(RowBlocks.of_arrays(np.asfortranarray(X), y, n_parts=7)) == whole


def test_rows_that_vanish_are_noticed():
    X, y = records(np.random.default_rng(2), 50)
    rows = RowBlocks.of_arrays(X, y)
    fewer = RowBlocks((60, N), rows.engine)
    with pytest.raises(DataChangedError, match="nothing was released"):
        NoisySum(SUMMANDS["counts"], 0.3).exact(fewer)


@pytest.mark.parametrize("name", SUMMANDS)
def test_the_likelihood_ratio_is_that_of_the_answers(name):
    """Its logarithm is normal with mean μ²/2 and variance μ², and its mean is one."""
    summand, rng = SUMMANDS[name], np.random.default_rng(4)
    X, y = records(rng, 30)
    emptied = y.copy()
    emptied[0] = np.nan
    here, there = RowBlocks.of_arrays(X, y), RowBlocks.of_arrays(X, emptied)
    query, bits = NoisySum(summand, 0.8), bit_source(rng)
    answers = [query.run(here, bits) for _ in range(400)]
    ratios = query.log_likelihoods(here, answers) - query.log_likelihoods(there, answers)
    moved = np.array(query.exact(here), dtype=float) - np.array(query.exact(there), dtype=float)
    mu = math.sqrt(float(np.sum((moved / query.deviations) ** 2)))
    assert 0.1 < mu <= 0.8
    assert abs(ratios.mean() - 0.5 * mu**2) < 5.0 * mu / 20.0
    assert abs(ratios.std() - mu) < 0.2 * mu
    assert abs(np.exp(-ratios).mean() - 1.0) < 5.0 * math.sqrt(math.expm1(mu**2) / 400)
    assert query.loss.mu == 0.8
    assert "noisy" in query.sentence
