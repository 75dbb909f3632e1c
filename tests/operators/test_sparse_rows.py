"""Products of large sparse rows, which are never written out, against exact rationals."""

from fractions import Fraction

import numpy as np
import pytest
import scipy.sparse as sp

from privasso.noise import Factored
from privasso.operators import Covariates
from privasso.operators._sparse import SparseRows


def table(seed: int) -> sp.csr_array:
    """Rare columns, one that is nearly full, and one far away from zero in all rows but one."""
    rng = np.random.default_rng(seed)
    F = np.where(rng.random((40, 7)) < 0.2, rng.normal(size=(40, 7)), 0.0)
    F[:, 1] = 1.0
    F[3, 1] = 0.0
    F[1:, 4] = 1e6 + rng.random(39)
    return sp.csr_array(F)


def exactly(values: np.ndarray) -> list[list[Fraction]]:
    return [[Fraction(float(v)) for v in row] for row in values]


def centred(F: sp.csr_array) -> tuple[np.ndarray, list[list[Fraction]]]:
    """The means that a fit subtracts, and the rows without them."""
    mean = np.asarray(F.mean(axis=0))
    return mean, exactly_minus(F.toarray(), mean)


def exactly_minus(F: np.ndarray, mean: np.ndarray) -> list[list[Fraction]]:
    return [[x - Fraction(float(m)) for x, m in zip(row, mean, strict=True)] for row in exactly(F)]


@pytest.mark.parametrize("seed", range(4))
@pytest.mark.parametrize("weighted", [False, True])
def test_moments(seed, weighted):
    F = table(seed)
    mean, rows = centred(F)
    w = np.random.default_rng(9).random(40) if weighted else None
    found = SparseRows.of(F, mean).moments(w)
    full = [[*row, Fraction(1)] for row in rows]
    weights = [Fraction(1)] * 40 if w is None else [Fraction(float(v)) for v in w]
    n = 8
    exact = np.array(
        [
            [
                float(sum(v * row[i] * row[j] for v, row in zip(weights, full, strict=True)))
                for j in range(n)
            ]
            for i in range(n)
        ]
    )
    size = np.sqrt(np.outer(np.diag(exact), np.diag(exact)))
    np.testing.assert_array_less(np.abs(found - exact), 1e-13 * size + 1e-300)


@pytest.mark.parametrize("seed", range(20))
def test_no_norm_is_too_small(seed):
    F = table(seed)
    mean, rows = centred(F)
    rng = np.random.default_rng(seed)
    noise = Factored(10.0 ** rng.uniform(-4, 4, 7)[:, None] * rng.normal(size=(7, 7)))
    found = SparseRows.of(F, mean).squared_norms(noise, 5, 31)
    white = exactly(noise.whitener)
    for value, row in zip(found, rows[5:31], strict=True):
        exact = sum(sum(a * x for a, x in zip(line, row, strict=True)) ** 2 for line in white)
        assert exact <= Fraction(float(value)) <= exact * (1 + Fraction(1, 10**8))


def test_which_tables_are_read_so():
    columns = np.arange(1 << 14) % (1 << 12)
    wide = sp.csr_array((np.ones(1 << 14), (np.arange(1 << 14), columns)))
    assert SparseRows.pay(wide)
    assert not SparseRows.pay(wide[:100])
    assert not SparseRows.pay(np.broadcast_to(1.0, (1 << 13, 1 << 13)))


@pytest.mark.parametrize("weighted", [False, True])
def test_covariates_use_them(monkeypatch, weighted):
    monkeypatch.setattr("privasso.operators._sparse._LARGE", 0)
    monkeypatch.setattr("privasso.operators._sparse._DENSITY", 1.0)
    F = sp.csr_array(sp.hstack([table(0), np.zeros((40, 1))]))  # the last column has no data
    weights = np.random.default_rng(1).random(40) if weighted else None
    rows = Covariates(F, centre=True, weights=weights)
    dense = Covariates(F.toarray(), centre=True, weights=weights)
    noise = Factored(np.diag(np.sqrt(dense.squares[dense.live])) + 0.1)
    scale = np.sqrt(np.diag(dense.gram))
    inner = np.outer(scale, scale)
    np.testing.assert_allclose(rows.moments(weights) / inner, dense.gram / inner, atol=1e-10)
    expected = dense.squared_row_norms(noise)
    np.testing.assert_allclose(rows.squared_row_norms(noise), expected, rtol=1e-8)
    part = rows.sampled(np.arange(9))
    np.testing.assert_allclose(part.squared_row_norms(noise), expected[:9], rtol=1e-8)
