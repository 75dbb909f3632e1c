"""Products split over threads are the products of BLAS, whatever the split."""

import numpy as np
import pytest
from threadpoolctl import threadpool_info

from privasso import _blas
from privasso._blas import (
    SERIAL_BELOW,
    gram_matrix,
    one_thread,
    product,
    product_by_columns,
    threads_for,
)
from privasso._threads import run


def blas_threads():
    return max(pool["num_threads"] for pool in threadpool_info() if pool["user_api"] == "blas")


@pytest.mark.parametrize("shape", [(1, 1), (3, 2), (50, 7), (400, 301)])
@pytest.mark.parametrize("order", ["C", "F"])
@pytest.mark.parametrize("threads", ["1", "2", "3"])
def test_gram_matrix(shape, order, threads, monkeypatch):
    monkeypatch.setattr("privasso._blas.n_threads", lambda: int(threads))
    A = np.asarray(np.random.default_rng(0).standard_normal(shape), order=order)
    np.testing.assert_allclose(gram_matrix(A), A.T @ A, rtol=1e-12, atol=1e-12)
    np.testing.assert_array_equal(gram_matrix(A), gram_matrix(A).T)


@pytest.mark.parametrize("n_rhs", [1, 2, 37])
@pytest.mark.parametrize("dtype", [np.float64, np.float32])
def test_product(n_rhs, dtype, monkeypatch):
    monkeypatch.setattr("privasso._blas.n_threads", lambda: 3)
    rng = np.random.default_rng(0)
    A = rng.standard_normal((900, 700)).astype(dtype)
    B = rng.standard_normal((700, n_rhs)).astype(dtype)
    by_columns = product_by_columns(A, np.asfortranarray(B))
    assert by_columns.flags.f_contiguous
    for out in (product(A, B), by_columns):
        assert out.dtype == dtype
        close = 1e-3 if dtype == np.float32 else 1e-11
        np.testing.assert_allclose(out, A @ B, rtol=close, atol=1e-3)


def test_contexts_limit_and_restore():
    before = blas_threads()
    with one_thread():
        assert blas_threads() == 1
        with threads_for(SERIAL_BELOW / 2):
            assert blas_threads() == 1
    assert blas_threads() == before


def test_an_error_in_a_task_is_raised():
    def fail():
        raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError):
        run([fail, lambda: None])
    with pytest.raises(ZeroDivisionError):
        run([lambda: None, fail])


def test_a_gram_matrix_in_many_short_calls_is_the_same(monkeypatch):
    A = np.random.default_rng(0).standard_normal((300, 90))
    monkeypatch.setattr(_blas, "_LONGEST_CALL", 1e4)
    monkeypatch.setattr(_blas, "_BLOCK", 20)
    np.testing.assert_allclose(_blas.gram_matrix(A), A.T @ A, rtol=1e-12, atol=1e-12)
    B = np.random.default_rng(1).standard_normal((90, 500))
    np.testing.assert_allclose(_blas.product(A, B), A @ B, rtol=1e-12, atol=1e-12)


@pytest.mark.parametrize("short", [1000, 10], ids=["at once", "interruptible"])
@pytest.mark.parametrize("upper", [True, False])
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_factors_in_place(dtype, upper, short, monkeypatch):
    monkeypatch.setattr(_blas, "_SHORT_CALL", short)
    rng = np.random.default_rng(0)
    rows = rng.standard_normal((90, 60))
    A = (rows.T @ rows).astype(dtype)
    other = np.tril_indices(60, -1) if upper else np.triu_indices(60, 1)
    found = A.copy()
    found[other] = np.nan  # is not read
    assert _blas.factorise_upper(found) if upper else _blas.factorise_lower(found)
    assert np.isnan(found[other]).all()
    found[other] = 0.0
    L = found.T if upper else found
    np.testing.assert_allclose(L @ L.T, A, rtol=0, atol=100 * np.finfo(dtype).eps * A.max())


def test_rows_may_be_longer_than_the_matrix():
    rows = np.random.default_rng(0).standard_normal((9, 5))
    room = np.full((5, 8), np.nan)
    room[:, :5] = rows.T @ rows
    assert _blas.factorise_upper(room[:, :5])
    np.testing.assert_allclose(np.triu(room[:, :5]), np.linalg.cholesky(rows.T @ rows).T)
    assert np.isnan(room[:, 5:]).all()


@pytest.mark.parametrize("factorise", [_blas.factorise_upper, _blas.factorise_lower])
def test_an_indefinite_matrix_has_no_factor(factorise):
    assert not factorise(np.array([[1.0, 2.0], [2.0, 1.0]]))


MISREAD = [np.eye(2, dtype=int), np.eye(4)[::2, ::2], np.ones(3), np.eye(3)[:2], np.eye(2)[::-1]]


@pytest.mark.parametrize("A", MISREAD)
def test_what_lapack_would_misread_is_refused(A):
    with pytest.raises(TypeError, match="by rows"):
        _blas.factorise_upper(A)
