"""The choice of columns: exact sums, exact probabilities, and what a record can change."""

import math
from collections import Counter
from fractions import Fraction
from itertools import permutations

import numpy as np
import pytest
import scipy.sparse as sp
from scipy.stats import chisquare

from privasso.accounting import ChoiceLoss
from privasso.blocks import RowBlocks
from privasso.planning import PrincipalComponents
from privasso.programs import Peeled
from privasso.programs._associations import ENTRY, LABEL, IntegerColumns
from privasso.programs._clipped_sums import Level, noisy_centre
from privasso.programs._label_screening import _project, integer_entries, standard_columns
from privasso.programs._records import half_ranges
from privasso.programs._screening import Screening
from privasso.queries import EMPTIED, LABEL_REPLACED, Answering, bit_source
from privasso.queries._choice import noisy_largest


def bits(seed):
    return bit_source(np.random.default_rng(seed))


def nearest(x: Fraction) -> int:
    return round(x)


def exact_products(X, labels, bounds, origin, unit):
    """Σ k ℓ in rationals, from the entries as they are stored."""
    found = []
    # Where all lower bounds are zero, entries are measured from there.
    from_zero = np.all(bounds[:, 0] == 0.0) and np.all(origin == unit) and np.all(unit > 0.0)
    for j in range(X.shape[1]):
        total = 0
        for x, ell in zip(X[:, j].tolist(), labels.tolist(), strict=True):
            cut = min(max(Fraction(x), Fraction(bounds[j, 0])), Fraction(bounds[j, 1]))
            # The machine's own difference and quotient, which are part of the map of a record.
            factor = ENTRY / unit[j] if unit[j] > 0.0 else 0.0
            k = nearest(Fraction((float(cut) - origin[j]) * factor))
            if from_zero:
                k = nearest(Fraction(float(cut) * factor)) - ENTRY
                wanted = (Fraction(x) - Fraction(unit[j])) * ENTRY / Fraction(unit[j])
                assert abs(k - min(max(wanted, -ENTRY), ENTRY)) < 0.5 + 1e-9
            total += k * ell
        found.append(total)
    return found


def storages(X, tmp_path):
    np.save(tmp_path / "x.npy", X)
    yield "rows", X
    yield "columns", np.asfortranarray(X)
    yield "strided", np.repeat(X, 2, axis=1)[:, ::2]
    yield "memory-mapped", np.load(tmp_path / "x.npy", mmap_mode="r")
    yield "csr", sp.csr_array(X)
    yield "csc", sp.csc_array(X)
    yield "coo", sp.coo_array(X)


def some_bounds(kind, n, rng):
    """Bounds for which sparse rows are read in different ways, and whether from the middle."""
    low, length = rng.uniform(-2.0, 0.5, n), rng.uniform(0.5, 3.0, n)
    if kind in ("lower bounds zero", "a column of zeros"):
        low = np.zeros(n)
    if kind == "symmetric":
        low = -0.5 * length
    if kind == "a column of zeros":
        length[2] = 0.0
    if kind == "a constant":
        length[0] = 0.0
    bounds = np.stack([low, low + length], axis=1)
    if kind == "zero is outside":
        bounds = np.outer(rng.uniform(0.1, 1.0, n), [1.0, 2.0])
    return bounds, kind not in ("from zero", "zero is outside")


KINDS = (
    "all differ",
    "lower bounds zero",
    "symmetric",
    "a column of zeros",
    "a constant",
    "from zero",
    "zero is outside",
)


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("dtype", [np.float64, np.float32])
def test_sums_are_exact_in_every_storage(tmp_path, dtype, kind):
    rng = np.random.default_rng(0)
    m, n = 60, 7
    X = (rng.standard_normal((m, n)) * (rng.random((m, n)) < 0.4)).astype(dtype)
    labels = rng.integers(-LABEL, LABEL + 1, m)
    bounds, centred = some_bounds(kind, n, rng)
    origin, unit = half_ranges(bounds, centred)
    columns = IntegerColumns.within(bounds, origin, unit)
    exact = exact_products(X.astype(np.float64), labels, bounds, origin, unit)
    for name, stored in storages(X, tmp_path):
        assert columns.products(stored, labels).tolist() == exact, name


@pytest.mark.parametrize("order", ["C", "F"])
@pytest.mark.parametrize(("low", "high", "exact"), [(0, 2, True), (0, 1, True), (0, 3, False)])
def test_genotypes_are_summed_as_they_are_stored(order, low, high, exact):
    """More rows than 32 bits bear at once, some entries out of bounds, columns not in fours."""
    rng = np.random.default_rng(3)
    m, n = 2501, 1030
    X = np.array(rng.integers(-1, 5, (m, n)), dtype=np.int8, order=order)
    labels = np.where(rng.random(m) < 0.5, LABEL, rng.integers(-LABEL, LABEL + 1, m))
    bounds = np.tile([float(low), float(high)], (n, 1))
    columns = IntegerColumns.within(bounds, *half_ranges(bounds, True))
    k = np.rint((np.clip(X, low, high) - columns.origin) * (ENTRY / columns.unit)).astype(int)
    assert (columns.products(X, labels) == labels @ k).all()
    read = columns._small(X, labels.astype(float)) is not None
    assert read == exact


def test_zeros_and_ones_may_be_booleans():
    X = np.random.default_rng(0).random((50, 6)) < 0.4
    bounds = np.tile([0.0, 1.0], (6, 1))
    columns = IntegerColumns.within(bounds, *half_ranges(bounds, True))
    labels = np.arange(50)
    assert (columns.products(X, labels) == columns.products(X.astype(float), labels)).all()


def test_columns_with_the_same_bounds_are_summed_alike():
    rng = np.random.default_rng(0)
    X = sp.random_array((300, 40), density=0.2, rng=1, format="csr")
    labels = rng.integers(-LABEL, LABEL + 1, 300)
    bounds = np.tile([0.0, 0.7], (40, 1))
    columns = IntegerColumns.within(bounds, *half_ranges(bounds, True))
    expected = columns.products(X.toarray(), labels)
    one = IntegerColumns.within(bounds[:1], *half_ranges(bounds[:1], True))
    for described in (columns, one):
        for stored in (X, X.tocsc(), X.toarray()):
            assert (described.products(stored, labels) == expected).all()
    genotypes = (X.toarray() > 0.3).astype(np.int8)
    assert (one.products(genotypes, labels) == columns.products(genotypes, labels)).all()


def test_many_rows_are_summed_exactly():
    """More than a block, all at the largest integers."""
    m = (1 << 15) * 2 + 3
    columns = IntegerColumns.within(np.array([[-1.0, 1.0]]), np.zeros(1), np.ones(1))
    X, labels = np.full((m, 1), 5.0), np.full(m, LABEL)
    for stored in (X, np.asfortranarray(X), sp.csr_array(X), sp.csc_array(X)):
        assert columns.products(stored, labels).tolist() == [m * ENTRY * LABEL]


@pytest.mark.parametrize("shape", [(140_000, 2), (2, 140_000)])
@pytest.mark.parametrize("alike", [True, False])
@pytest.mark.parametrize("low", [-1.0, 0.0])
def test_long_rows_and_columns_are_summed_exactly(shape, alike, low):
    """More entries than are worked on together, in one row or one column."""
    rng = np.random.default_rng(0)
    X = sp.csr_array(rng.integers(-2, 3, shape) / 2.0)
    bounds = np.tile([low, 0.5], (1 if alike else shape[1], 1))
    columns = IntegerColumns.within(bounds, *half_ranges(bounds, True))
    labels = rng.integers(-LABEL, LABEL + 1, shape[0])
    middle, half = 0.5 * (low + 0.5), 0.5 * (0.5 - low)
    k = np.rint((np.clip(X.toarray(), low, 0.5) - middle) * (ENTRY / half)).astype(np.int64)
    for stored in (X, X.tocsc()):
        assert (columns.products(stored, labels) == labels @ k).all()


def test_an_entry_that_is_stored_twice_counts_once():
    X = sp.coo_array(([0.75, 0.75], ([0, 0], [0, 0])), shape=(2, 1)).tocsr()
    X.has_canonical_format = False
    twice = sp.csr_array((np.array([0.75, 0.75]), np.array([0, 0]), np.array([0, 2, 2])), (2, 1))
    columns = IntegerColumns.within(np.array([[-1.0, 1.0]]), np.zeros(1), np.ones(1))
    assert columns.products(twice, np.array([LABEL, 0])).tolist() == [ENTRY * LABEL]


@pytest.mark.parametrize("lowest", [-9.0, 0.0])
def test_no_record_changes_a_sum_by_more_than_the_claim(lowest):
    rng = np.random.default_rng(1)
    bounds = np.stack([rng.uniform(lowest, 0, 40), rng.uniform(0, 1, 40)], axis=1)
    origin, unit = bounds.mean(axis=1), 0.5 * np.diff(bounds, axis=1)[:, 0]
    columns = IntegerColumns.within(bounds, origin, unit)
    X = 20.0 * rng.standard_normal((50, 40))
    labels = rng.choice([-LABEL, LABEL], 50)
    whole = columns.products(X, labels)
    for i in range(50):
        emptied = labels.copy()
        emptied[i] = 0
        change = np.abs(whole - columns.products(X, emptied))
        assert (columns.products(sp.csr_array(X), emptied) == columns.products(X, emptied)).all()
        assert change.max() <= ENTRY * LABEL
        assert change.max() > 0.99 * ENTRY * LABEL  # the claim is not too large either


@pytest.mark.parametrize("margin", [2.0**-44, 0.05])
def test_choices_have_the_probabilities_of_exponential_mechanisms(margin):
    scores, scale, source = np.array([0, 3, 5, 1, 4]), 2.0, bits(5)
    draws = 6000 if margin < 1e-3 else 600
    counts = Counter(
        tuple(noisy_largest(scores, scale, 2, source, margin=margin).tolist()) for _ in range(draws)
    )
    weights = np.exp(scores / scale)
    expected = {}
    for i in range(5):
        for j in range(i + 1, 5):
            both = weights[i] * weights[j] / weights.sum()
            rest = 1 / (weights.sum() - weights[i]) + 1 / (weights.sum() - weights[j])
            expected[i, j] = both * rest
    observed = [counts[pair] for pair in expected]
    assert sum(observed) == draws
    assert chisquare(observed, np.array(list(expected.values())) * draws).pvalue > 1e-3


def test_decimal_numbers_decide_as_floating_point_does():
    """The first 64 bits are the same, and further ones matter only where these do not decide."""
    scores = np.random.default_rng(0).integers(0, 1 << 40, 300)
    for seed in range(20):
        plain = noisy_largest(scores, 2.0**36, 10, bits(seed))
        careful = noisy_largest(scores, 2.0**36, 10, bits(seed), margin=1e-4)
        assert plain.tolist() == careful.tolist()


@pytest.mark.parametrize("spread", [0.0, 1.0, 20.0])
def test_nobody_who_may_be_chosen_is_left_out(spread):
    """The k largest of many against those of all noisy scores, from the same bits."""
    rng = np.random.default_rng(1)
    for seed in range(20):
        scores = (2.0**30 * spread * rng.standard_normal(20_000)).astype(np.int64)
        words = np.random.default_rng(seed).integers(0, 2**64, scores.size, dtype=np.uint64)
        if spread < 20.0:
            words[seed] = 0  # certainly chosen
        found = noisy_largest(scores, 2.0**30, 12, lambda n, words=words: words[:n])
        v = (words.astype(np.float64) + 0.5) * 2.0**-64
        noisy = scores - 2.0**30 * np.log(-np.log1p(-v))
        assert found.tolist() == np.sort(np.argsort(-noisy)[:12]).tolist()


def test_ties_are_broken_by_further_bits():
    """All words are equal, so nothing but the scores and further bits can decide."""
    calls = []

    def source(n):
        calls.append(n)
        word = np.full(n, 1 << 63, dtype=np.uint64)
        return word if len(calls) == 1 else bits(len(calls))(n)

    counts = Counter()
    for _ in range(40):
        calls.clear()
        counts[int(noisy_largest(np.zeros(3, dtype=np.int64), 1.0, 1, source)[0])] += 1
        assert len(calls) == 4
    assert noisy_largest(np.zeros(3, dtype=np.int64), 1.0, 3, source).tolist() == [0, 1, 2]


def test_extreme_words():
    def source(n):
        words = np.array([0, 2**64 - 1, 5, 2**63], dtype=np.uint64)
        return words if n == 4 else bits(0)(n)

    # v near 0 is a very large Gumbel number, and v near 1 a very small one.
    assert noisy_largest(np.zeros(4, dtype=np.int64), 1.0, 2, source).tolist() == [0, 2]


def asked(y, seed, X=None):
    """Answers from a table, with a seed for their noise."""
    return Answering(RowBlocks.of_arrays(np.empty((len(y), 0)) if X is None else X, y), bits(seed))


def screening(k=2, clip=0.1, n=300, each=0.2):
    bounds = np.tile([-1.0, 1.0], (n, 1))
    return Screening(ChoiceLoss(each, k), 0.05, clip, bounds, (-4.0, 4.0), True)


@pytest.mark.parametrize("scale", [0.0, -1.0, math.nan, math.inf])
def test_a_scale_without_which_bits_would_never_be_enough_is_refused(scale):
    bits = bit_source(np.random.default_rng(0))
    with pytest.raises(ValueError, match="positive scale"):
        noisy_largest(np.zeros(5, dtype=np.int64), scale, 2, bits)


def test_the_scale_of_the_noise_is_twice_the_sensitivity():
    one = screening(k=3)
    scale = one.choice(one.choices, one.associations(0.0, 0.1)).scale
    assert scale == pytest.approx(2.0 * ENTRY * LABEL / 0.2, rel=1e-9)
    assert scale >= 2.0 * ENTRY * LABEL / 0.2


def test_a_column_that_is_far_from_zero_is_not_chosen_for_it():
    """Labels far from the middle of their bounds, and columns far from that of theirs."""
    rng = np.random.default_rng(3)
    X = rng.uniform(0.5, 1.0, (4000, 200))
    X[:, 17] = rng.uniform(-1.0, 1.0, 4000)
    y = -3.0 + 0.3 * X[:, 17] + 0.2 * rng.standard_normal(4000)
    assert 17 in screening(k=1, n=200).choose(asked(y, 1, X))


@pytest.mark.parametrize("replaced", [False, True])
def test_centre_of_skewed_labels(replaced):
    rng = np.random.default_rng(0)
    y = rng.exponential(1.0, 50_000)
    neighbours = LABEL_REPLACED if replaced else EMPTIED
    found = noisy_centre(asked(y, 0), (0.0, 20.0), 0.5, 0.1, neighbours)
    exact = np.mean(np.clip(y - found, -0.5, 0.5))
    assert abs(exact) < 0.05


def as_labels(X, y):
    return y


def test_the_level_moves_by_its_sensitivity_and_has_its_noise():
    """One residual of the whole range moves the sum by 1; the noise has the deviation 1/μ."""
    level, residuals = Level(0.2, 4.0), np.zeros(50)

    def total(seed):
        ask = asked(residuals, seed)
        level.correction(ask, as_labels)
        return float(ask.transcript[0][1][0])

    sums = np.array([total(seed) for seed in range(2000)])
    assert abs(sums.mean()) < 5.0 * sums.std() / 2000**0.5
    assert abs(sums.std() * level.mu - 1.0) < 0.08
    before, residuals[0] = total(0), 9.0  # is clipped to 4
    assert math.isclose(total(0) - before, 1.0, rel_tol=1e-6)


@pytest.mark.parametrize("mean", [0.004, 0.02, -0.3])
@pytest.mark.parametrize("often", [0.5, 0.1])
def test_the_level_is_the_mean_of_its_posterior(mean, often):
    """By integration over the prior, a mixture of deviations 0.004 and 0.1."""
    level, m = Level(0.1, 1.0, often), 800
    at = np.linspace(-1.0, 1.0, 400_001)
    parts = ((1.0 - often, 0.004), (often, 0.1))
    prior = sum(part * np.exp(-0.5 * (at / s) ** 2) / s for part, s in parts)
    weight = prior * np.exp(-0.5 * ((mean - at) * level.mu * m) ** 2)
    assert math.isclose(level.expected(mean, m), at @ weight / weight.sum(), rel_tol=1e-4)


@pytest.mark.parametrize("m", [60, pytest.param(400, marks=pytest.mark.slow)])
def test_what_the_level_adds_where_there_is_no_difference(m):
    """By many releases of residuals that are all zero."""
    level, zeros = Level(0.2, 3.0), np.zeros(m)
    found = np.array([level.correction(asked(zeros, seed), as_labels) for seed in range(4000)])
    assert abs(np.mean(found**2) / (9.0 * level.error(m)) - 1.0) < 0.12


def test_noise_of_the_centre():
    """Three sums of the sensitivity 1/√3 each, the last with labels clipped at r."""
    y, mu, r = np.zeros(1000), 0.2, 0.05
    found = np.array([noisy_centre(asked(y, s), (-1.0, 1.0), r, mu, EMPTIED) for s in range(400)])
    # A step of Newton's method with the slope 0.6 leaves 1 − 1/0.6 of the error before it.
    left, steps = 1.0 - 1.0 / 0.6, math.sqrt(3.0) / mu / 1000
    expected = steps * math.sqrt(left**4 + (r / 0.6) ** 2 * (1.0 + left**2))
    assert np.std(found) == pytest.approx(expected, rel=0.15)


def label_law(columns, labels, epsilon, k, factor):
    """Probabilities of all ordered choices, with columns projected after each of them."""
    law = {}

    def choose(columns, order, probability):
        if len(order) == k:
            law[order] = probability
            return
        entries = integer_entries(columns)
        scores, largest = np.abs(labels @ entries), np.max(np.abs(entries))
        left = [i for i in range(columns.shape[1]) if i not in order]
        weights = np.exp(factor * epsilon * scores[left] / (4.0 * LABEL * largest))
        for i, weight in zip(left, weights / weights.sum(), strict=True):
            after = columns.copy()
            _project(after, i)
            choose(after, (*order, i), probability * weight)

    choose(columns, (), 1.0)
    return np.array([law[order] for order in permutations(range(columns.shape[1]), k)])


def closest_label_choice(factor):
    rng, epsilon, k, worst = np.random.default_rng(0), 0.5, 2, 0.0
    claims = {x: ChoiceLoss(epsilon, k).delta(x) for x in (0.0, 0.3, 0.6)}
    for trial in range(40):
        X = rng.choice([-1.0, 1.0], (12, 4)) if trial % 2 else rng.standard_normal((12, 4))
        columns = standard_columns(X)
        one = rng.choice([-LABEL, LABEL], 12).astype(float)
        two = one.copy()
        two[0] = -one[0]
        p, q = (label_law(columns, y, epsilon, k, factor) for y in (one, two))
        for x, claim in claims.items():
            for a, b in ((p, q), (q, p)):
                worst = max(worst, float(np.maximum(a - math.exp(x) * b, 0.0).sum()) / claim)
    return worst


def test_no_label_moves_associations_beside_components_by_more_than_the_claim():
    """Both ends of every label, with columns from which components were taken away."""
    rng = np.random.default_rng(5)
    X = rng.standard_t(2, (30, 3)) @ rng.standard_normal((3, 50))
    X += 0.1 * rng.standard_t(2, (30, 50))
    scores = PrincipalComponents.of(X, 4).scores
    peeled, epsilon, worst = Peeled(X, scores), 0.5, 0.0
    assert np.abs(scores.T @ peeled.after(())).max() < 1e-2
    order: tuple[int, ...] = ()
    for _ in range(3):
        one = rng.choice([-LABEL, LABEL], 30).astype(float)
        left = np.setdiff1d(np.arange(50), order)
        entries = peeled.integers(order)[:, left]
        before, scale = np.abs(one @ entries), 4.0 * LABEL * np.max(np.abs(entries)) / epsilon
        for row in range(30):
            two = one.copy()
            two[row] = -one[row]
            change = np.abs(two @ entries) - before
            worst = max(worst, float(np.ptp(change)) / (epsilon * scale))
        order += (int(left[np.argmax(before)]),)
    assert 0.4 < worst <= 1.0


def test_no_choice_by_labels_exceeds_the_claim():
    assert 0.2 < closest_label_choice(1.0) <= 1.0


def test_halved_sensitivity_of_labels_is_caught():
    assert closest_label_choice(2.5) > 1.0


@pytest.mark.parametrize("kind", ["alike", "centred", "from zero", "lower bounds zero"])
@pytest.mark.parametrize("form", ["csr", "csc"])
def test_entries_that_are_stored_twice_or_in_any_order_count_once(kind, form):
    """Bounds hold for the sum of two entries in one place, as scipy reads them."""
    rng = np.random.default_rng(4)
    m, n = 400, 30
    where, at = rng.integers(0, m, 3000), rng.integers(0, n, 3000)
    values = rng.uniform(-1.0, 1.5, 3000)
    lines, places, length = (where, at, m) if form == "csr" else (at, where, n)
    order = np.argsort(lines, kind="stable")
    parts = values[order], places[order], np.searchsorted(lines[order], np.arange(length + 1))
    X = {"csr": sp.csr_array, "csc": sp.csc_array}[form](parts, shape=(m, n))
    assert not X.has_canonical_format
    high = np.full(n, 0.8) if kind == "alike" else rng.uniform(0.3, 1.0, n)
    bounds = np.stack([0.0 * high if kind == "lower bounds zero" else -0.5 * high, high], axis=1)
    used = bounds[:1] if kind == "alike" else bounds
    columns = IntegerColumns.within(used, *half_ranges(used, kind != "from zero"))
    labels = rng.integers(-LABEL, LABEL + 1, m)
    dense = np.zeros((m, n))
    for line, place, value in zip(where, at, values, strict=True):
        dense[line, place] += value
    origin, unit = half_ranges(bounds, kind != "from zero")
    assert columns.products(X, labels).tolist() == exact_products(
        X.toarray(), labels, bounds, origin, unit
    )
    np.testing.assert_allclose(X.toarray(), dense, atol=1e-12)


def test_missing_entries_are_the_middle_and_infinite_ones_a_bound_in_every_storage():
    X = np.zeros((50, 4))
    X[:, 1], X[30, 2], X[31, 3] = 1.0, np.nan, np.inf
    X[32, 0], X[33] = -np.inf, np.nan
    bounds = np.array([[0.0, 1.0], [0.0, 2.0], [0.0, 3.0], [0.0, 0.0]])
    labels = np.random.default_rng(0).integers(-LABEL, LABEL + 1, 50)
    for used, centred in ((bounds[:1], True), (bounds, True), (bounds, False)):
        each = np.broadcast_to(used, bounds.shape)
        filled = np.clip(np.where(np.isnan(X), each.mean(axis=1), X), each[:, 0], each[:, 1])
        wanted = exact_products(filled, labels, each, *half_ranges(each, centred))
        columns = IntegerColumns.within(used, *half_ranges(used, centred))
        for stored in (X, np.asfortranarray(X), sp.csr_array(X), sp.csc_array(X)):
            assert columns.products(stored, labels).tolist() == wanted
