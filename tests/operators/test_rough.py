"""The rounded copy of F: as accurate as 16 bits allow, made while F is read anyway."""

import numpy as np
import pytest

import privasso as pv
from privasso.operators import ColumnMajor, Metered, Rough, RowMajor, _dense, as_operator

# Rows that do not divide by four or eight, below and above the threshold for threads.
SHAPES = [(1, 1), (9, 3), (30, 61), (403, 1021)]


@pytest.mark.parametrize("shape", SHAPES, ids=str)
def test_products(shape):
    rng = np.random.default_rng(0)
    m, n = shape
    F = rng.standard_normal(shape) * 10.0 ** rng.uniform(-9, 9, size=n)
    y, g, x = rng.standard_normal(m), rng.standard_normal(m), rng.standard_normal(n)
    squares, product, rough = Rough.made_with_squares(F, y)
    np.testing.assert_allclose(squares, (F**2).sum(axis=0), rtol=1e-12)
    np.testing.assert_allclose(product, F.T @ y, rtol=1e-9, atol=1e-12 * np.abs(F.T @ y).max())
    kept = rough.toarray().astype(np.float64)
    np.testing.assert_allclose(kept, F, rtol=2.0**-8)
    expected = 0.3 * g - 0.7 * (kept @ x)
    found = rough.update(x, g, 0.3, -0.7)
    np.testing.assert_allclose(g, expected, rtol=1e-4, atol=1e-5 * np.abs(expected).max())
    size = np.linalg.norm(kept, axis=0) * np.linalg.norm(expected)
    assert np.abs(found - kept.T @ expected).max() <= 1e-4 * size.max()


def test_the_error_is_what_it_says():
    F = np.random.default_rng(1).standard_normal((300, 200))
    *_, rough = Rough.made_with_squares(F, np.zeros(300))
    error = np.sqrt(np.mean((rough.toarray() / F - 1.0) ** 2))
    assert 0.5 * rough.error < error <= rough.error


def test_only_a_large_matrix_in_double_precision_by_rows_is_rounded(monkeypatch):
    monkeypatch.setattr(_dense, "ROUGH_FROM", 8 * 40 * 30)
    F = np.random.default_rng(2).standard_normal((40, 30))
    y = np.ones(40)
    for op, rounds in (
        (RowMajor(F), True),
        (Metered(as_operator(F)), True),
        (RowMajor(F[:39]), False),
        (RowMajor(F.astype(np.float32)), False),
        (ColumnMajor(np.asfortranarray(F)), False),
    ):
        squares, product, rough = op.rounded(y[: op.shape[0]])
        assert op.rounds() is rounds
        assert (rough is not None) is rounds
        kept = op.toarray()
        np.testing.assert_allclose(squares, (kept**2).sum(axis=0))
        np.testing.assert_allclose(product, kept.T @ y[: op.shape[0]])


def test_numbers_beyond_single_precision_are_infinite_not_wrong():
    *_, rough = Rough.made_with_squares(np.array([[1e300, 1e-300, -2.0]]), np.zeros(1))
    assert rough.toarray().tolist() == [[np.inf, 0.0, -2.0]]


def test_a_large_problem_starts_on_the_rounded_copy_and_ends_with_a_proof(monkeypatch):
    """The optimality conditions hold for F itself, in products that the solver did not make."""
    from privasso.solvers import _amp

    starts, true = [], _amp.rough_start

    def noted(*arguments):
        starts.append(1)
        return true(*arguments)

    monkeypatch.setattr(_amp, "rough_start", noted)
    rng = np.random.default_rng(0)
    F = rng.standard_normal((2100, 4100)) / np.sqrt(4100)
    x = np.where(rng.random(4100) < 0.05, rng.standard_normal(4100), 0.0)
    y, eta = F @ x + 0.1 * rng.standard_normal(2100), 0.05 * rng.standard_normal(4100)
    found = pv.solve(F, y, 0.2, eta)
    assert starts
    gradient = F.T @ (y - F @ found.x) - eta
    support = found.x != 0.0
    assert np.abs(gradient[support] - 0.2 * np.sign(found.x[support])).max() <= 2e-8 * 0.2
    assert np.abs(gradient).max() <= 0.2 * (1.0 + 2e-8)
