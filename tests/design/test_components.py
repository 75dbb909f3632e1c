"""Principal components of covariates, against a singular value decomposition."""

import numpy as np
import pytest
import scipy.sparse as sp

from privasso.planning import PrincipalComponents, standardised
from privasso.programs import column_blocks


def factors(m=200, n=60, seed=0):
    """Columns of three factors and noise, in wildly different units."""
    rng = np.random.default_rng(seed)
    X = rng.standard_normal((m, 3)) * [4.0, 2.0, 1.0] @ rng.standard_normal((3, n))
    X += 0.3 * rng.standard_normal((m, n))
    return X * 10.0 ** rng.uniform(-6, 6, n) + rng.standard_normal(n)


def test_scores_are_those_of_a_singular_value_decomposition():
    X = factors()
    found = PrincipalComponents.of(X, 3)
    Z = (X - X.mean(axis=0)) / X.std(axis=0)
    Z /= np.maximum(np.abs(Z).max(axis=0) / 4.0, 1.0)
    U, s, _ = np.linalg.svd(Z, full_matrices=False)
    assert found.shares == pytest.approx(s[:3] ** 2 / np.sum(s**2), rel=1e-4)
    overlap = np.abs(np.sum(U[:, :3] * found.scores, axis=0)) / np.sqrt(len(X))
    assert overlap == pytest.approx(np.ones(3), abs=1e-5)
    assert found.scores.T @ found.scores / len(X) == pytest.approx(np.eye(3), abs=1e-9)


def test_coefficients_of_columns_predict_what_scores_do():
    X, weights = factors(), np.array([1.0, -0.5, 2.0])
    found = PrincipalComponents.of(X, 10).first(3)
    coef = found.coefficients(weights)
    predicted = (X - found.mean) @ coef
    assert predicted == pytest.approx(found.scores @ weights, abs=1e-4)


def test_sparse_and_dense_tables_have_the_same_components():
    rng = np.random.default_rng(1)
    X = rng.random((80, 300)) * (rng.random((80, 300)) < 0.2)
    one, two = (PrincipalComponents.of(table, 5) for table in (X, sp.csr_array(X)))
    assert np.array_equal(one.scores, two.scores)


@pytest.mark.parametrize("entry", [1e3, 1e12])
def test_rare_entries_do_not_lead(entry):
    """A single entry far from all others is one row, whatever its size."""
    X = factors(n=20)
    X = np.column_stack([X, np.zeros(200)])
    X[0, -1] = entry
    Z, _, _ = standardised(X)
    assert np.abs(Z).max() <= 4.0 + 1e-5
    found = PrincipalComponents.of(X, 3)
    assert np.abs(found.scores[0]).max() < 6.0


def test_constant_columns_have_no_part():
    X = np.column_stack([factors(n=5), np.full(200, 7.0)])
    found = PrincipalComponents.of(X, 4)
    assert not found.coefficients(np.ones(found.count))[-1]
    assert np.isfinite(found.scores).all()


def test_nothing_but_constants():
    found = PrincipalComponents.of(np.ones((10, 4)), 3)
    assert found.count == 0


def test_columns_come_in_blocks():
    blocks = column_blocks(sp.csr_array((5, 300)))
    assert [(span.start, block.shape) for span, block in blocks] == [(0, (5, 256)), (256, (5, 44))]


def test_rare_levels_and_constants_are_scaled_with_care():
    rare = np.append(np.zeros(99), 1.0)
    Z, _, scale = standardised(np.column_stack([np.arange(100.0), rare, np.ones(100)]))
    assert scale == pytest.approx([np.sqrt((100**2 - 1) / 12), 0.99 / 4, np.inf])
    assert np.abs(Z).max(axis=0) == pytest.approx([49.5 / scale[0], 4.0, 0.0], rel=1e-6)
