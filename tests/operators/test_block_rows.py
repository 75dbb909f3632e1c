"""Numbers that blocks of rows agree on."""

import numpy as np
import pytest
import scipy.sparse as sp

from privasso.noise import Diagonal, Factored
from privasso.operators import Covariates
from privasso.operators._block_rows import _bits_of, _largest_square, number_of


def test_the_integers_of_numbers_have_their_order():
    assert _bits_of(2.0)[0] > _bits_of(1.9)[0] > _bits_of(0.0)[0]
    assert number_of(_bits_of(0.1)) == 0.1


def test_the_largest_square_of_a_row():
    assert _largest_square(np.array([[3.0, 4.0], [1.0, 1.0]])) == 25.0


@pytest.mark.parametrize("n", [1, 4, 7, 40])
@pytest.mark.parametrize("full", [False, True])
def test_a_row_is_whitened_by_itself(n, full):
    """The same bits alone, in any block, by columns, as a sparse row, and beside more columns."""
    rng = np.random.default_rng(n)
    X = rng.standard_t(3, (2500, n)) * 10.0 ** rng.uniform(-6, 6, n)
    X[:, 0] *= rng.random(2500) < 0.5
    rows = Covariates(X, centre=True)
    root = rng.standard_normal((n, n)) + 3.0 * np.eye(n)
    scale = np.sqrt(rows.squares)
    noise = Factored(scale[:, None] * root) if full else Diagonal(scale**2)
    found = rows.whitening(noise)

    def white(X):
        return np.concatenate([part for _, part in found.rows(X)])

    whole = white(X)
    np.testing.assert_allclose(whole, noise.whiten((X - rows.mean).T).T, atol=1e-9)
    for k in (0, 17, 2499):
        np.testing.assert_array_equal(white(X[k : k + 1])[0], whole[k])
    np.testing.assert_array_equal(white(X[3:1000]), whole[3:1000])
    np.testing.assert_array_equal(white(np.asfortranarray(X)), whole)
    np.testing.assert_array_equal(white(sp.csr_array(X)), whole)
    np.testing.assert_array_equal(white(np.column_stack([X, np.ones(2500)])), whole)


def test_a_wide_sparse_row_is_whitened_by_itself():
    """The same bits alone and in any block; what dense rows give but for rounding."""
    rng = np.random.default_rng(0)
    n = 600
    X = np.where(rng.random((900, n)) < 0.02, rng.normal(size=(900, n)), 0.0)
    X[:, 5], X[:, 7] = rng.normal(2000.0, 1.0, 900), 0.0
    rows = Covariates(X, centre=True)
    scale = np.sqrt(rows.squares[rows.live])
    noise = Factored(scale[:, None] * (np.eye(n - 1) + 0.1 * rng.standard_normal((n - 1, n - 1))))
    found = rows.whitening(noise)

    def white(X):
        return np.concatenate([part for _, part in found.rows(X)])

    whole, dense = white(sp.csr_array(X)), white(X)
    np.testing.assert_allclose(whole, dense, atol=1e-10 * np.max(np.abs(dense)))
    for k in (0, 17, 899):
        np.testing.assert_array_equal(white(sp.csr_array(X[k : k + 1]))[0], whole[k])
    wider = sp.csc_array(np.column_stack([X, np.ones(900)]))
    np.testing.assert_array_equal(white(wider), whole)
