"""The rounded copy of F: as accurate as 16 bits allow, and only made of a large F."""

import numpy as np
import pytest

from privasso.operators import ColumnMajor, Metered, Rough, RowMajor, _dense, as_operator

# Rows that do not divide by four or eight, below and above the threshold for threads.
SHAPES = [(1, 1), (9, 3), (30, 61), (403, 1021)]


def of_rounded(F):
    """F as the copy keeps it, from the copy itself: its products with the unit vectors."""
    rough = Rough(F)
    rows = [rough.update(np.zeros(F.shape[1]), g, 1.0, 0.0)[0] for g in np.eye(F.shape[0])]
    return np.array(rows)


@pytest.mark.parametrize("shape", SHAPES, ids=str)
def test_products(shape):
    rng = np.random.default_rng(0)
    m, n = shape
    F = rng.standard_normal(shape) * 10.0 ** rng.uniform(-9, 9, size=n)
    g, x = rng.standard_normal(m), rng.standard_normal(n)
    kept = of_rounded(F)
    np.testing.assert_allclose(kept, F, rtol=2.0**-8)
    expected = 0.3 * g - 0.7 * (kept @ x)
    found, block = Rough(F).update(x, g, 0.3, -0.7)
    assert block is None
    np.testing.assert_allclose(g, expected, rtol=1e-4, atol=1e-5 * np.abs(expected).max())
    size = np.linalg.norm(kept, axis=0) * np.linalg.norm(expected)
    assert np.abs(found - kept.T @ expected).max() <= 1e-4 * size.max()


def test_only_a_large_matrix_in_double_precision_by_rows_is_rounded(monkeypatch):
    monkeypatch.setattr(_dense, "ROUGH_FROM", 8 * 40 * 30)
    F = np.random.default_rng(2).standard_normal((40, 30))
    for op, rounds in (
        (RowMajor(F), True),
        (Metered(as_operator(F)), True),
        (RowMajor(F[:39]), False),
        (RowMajor(F.astype(np.float32)), False),
        (ColumnMajor(np.asfortranarray(F)), False),
    ):
        assert (op.rough() is not None) is rounds


@pytest.mark.parametrize(("entry", "kept"), [(1e300, np.inf), (1e-300, 0.0), (-2.0, -2.0)])
def test_numbers_beyond_single_precision_are_infinite_not_wrong(entry, kept):
    product = np.zeros(1)
    Rough(np.array([[entry]])).update(np.ones(1), product, 0.0, 1.0)
    assert product[0] == kept
