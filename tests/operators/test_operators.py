"""Every storage of F does the same arithmetic as plain NumPy."""

from typing import Any

import numpy as np
import pytest
import scipy.sparse as sp

from privasso._threads import SERIAL_BELOW, chunks
from privasso.noise import Diagonal
from privasso.operators import (
    Centred,
    ColumnMajor,
    Covariates,
    Metered,
    RowMajor,
    Sparse,
    as_operator,
)

# One size below the threshold for threads and two above it, with rows that do not divide by four.
SHAPES = [(1, 1), (1, 7), (9, 1), (7, 5), (30, 61), (403, 1021), (1021, 403)]


def memory_mapped(F, tmp_path):
    path = tmp_path / "F.npy"
    np.save(path, F)
    return np.load(path, mmap_mode="r")


STORAGES = {
    "C": lambda F, _: np.ascontiguousarray(F),
    "Fortran": lambda F, _: np.asfortranarray(F),
    "float32 C": lambda F, _: np.ascontiguousarray(F, dtype=np.float32),
    "float32 Fortran": lambda F, _: np.asfortranarray(F, dtype=np.float32),
    "strided": lambda F, _: np.repeat(np.repeat(F, 2, axis=0), 2, axis=1)[::2, ::2],
    "csr": lambda F, _: sp.csr_array(F),
    "csc": lambda F, _: sp.csc_array(F),
    "csr matrix": lambda F, _: sp.csr_matrix(F),
    "coo": lambda F, _: sp.coo_array(F),
    "csc float32": lambda F, _: sp.csc_array(F.astype(np.float32)),
    "memmap": memory_mapped,
    "metered": lambda F, _: Metered(as_operator(F)),
}


def centred(F):
    mean = F.mean(axis=0)
    return Centred(sp.csr_array(F), mean, ((F - mean) ** 2).sum(axis=0))


def dense(block: Any) -> np.ndarray:
    return block.toarray() if sp.issparse(block) else block


@pytest.fixture(params=SHAPES, ids=str)
def F(request):
    rng = np.random.default_rng(5)
    # Multiples of 1/8 are exact in single precision, so every storage holds the same matrix.
    F = np.round(8 * rng.standard_normal(request.param)) / 8
    F[rng.uniform(size=F.shape) < 0.3] = 0.0
    return F


@pytest.mark.parametrize("storage", STORAGES)
def test_products(F, storage, tmp_path):
    check_products(as_operator(STORAGES[storage](F, tmp_path)), F)


def test_products_of_a_centred_matrix(F):
    check_products(centred(F), F - F.mean(axis=0))


def check_products(op, F):
    rng = np.random.default_rng(6)
    m, n = F.shape
    x, g, h, y = (rng.standard_normal(k) for k in (n, m, m, m))
    x[rng.uniform(size=n) < 0.5] = 0.0
    close = {"rtol": 1e-12, "atol": 1e-12 * (m + n)}
    assert op.shape == (m, n)
    np.testing.assert_allclose(op.matvec(x), F @ x, **close)
    assert not op.matvec(np.zeros(n)).any()  # nothing to read, but all to write
    np.testing.assert_allclose(op.rmatvec(g), F.T @ g, **close)
    for got, vector in zip(op.pair_rmatvec(g, h), (g, h), strict=True):
        np.testing.assert_allclose(got, F.T @ vector, **close)
    squares, fty = op.squares_and_rmatvec(y)
    np.testing.assert_allclose(squares, (F**2).sum(axis=0), **close)
    np.testing.assert_allclose(fty, F.T @ y, **close)
    np.testing.assert_allclose(op.column_squares(), (F**2).sum(axis=0), **close)
    np.testing.assert_allclose(op.toarray(), F, **close)
    np.testing.assert_allclose(op.gram(), F.T @ F, **close)
    X, G = rng.standard_normal((n, 3)), rng.standard_normal((m, 3))
    np.testing.assert_allclose(op.matmat(X), F @ X, **close)
    np.testing.assert_allclose(op.rmatmat(G), F.T @ G, **close)
    take = np.flatnonzero(rng.uniform(size=n) < 0.4)
    np.testing.assert_allclose(dense(op.columns(take)), F[:, take], **close)


@pytest.mark.parametrize("storage", STORAGES)
def test_update_is_one_iteration(F, storage, tmp_path):
    op = as_operator(STORAGES[storage](F, tmp_path))
    rng = np.random.default_rng(7)
    m, n = F.shape
    x, g = rng.standard_normal(n), rng.standard_normal(m)
    expected = 0.3 * g - 0.7 * (F @ x)
    take = np.arange(0, n, 3)
    product, cut = op.update(x, g, 0.3, -0.7, take=take)
    close = {"rtol": 1e-12, "atol": 1e-12 * (m + n)}
    np.testing.assert_allclose(g, expected, **close)
    np.testing.assert_allclose(product, F.T @ expected, **close)
    np.testing.assert_allclose(dense(cut), F[:, take], **close)


def test_no_copy_where_the_layout_fits(tmp_path):
    F = np.random.default_rng(0).standard_normal((20, 30))
    for array, kind in (
        (F, RowMajor),
        (np.asfortranarray(F), ColumnMajor),
        (F.astype(np.float32), RowMajor),
        (memory_mapped(F, tmp_path), RowMajor),
    ):
        op = as_operator(array)
        assert type(op) is kind
        assert np.shares_memory(op._F, array)
    sparse = sp.csr_array(F)
    op = as_operator(sparse)
    assert isinstance(op, Sparse)
    assert np.shares_memory(op._F.data, sparse.data)


def test_a_fused_iteration_is_one_pass():
    F = np.random.default_rng(0).standard_normal((40, 30))
    row, column = Metered(as_operator(F)), Metered(as_operator(np.asfortranarray(F)))
    x = np.zeros(30)
    x[:6] = 1.0
    row.update(x, np.zeros(40), 0.5, 0.5)
    column.update(x, np.zeros(40), 0.5, 0.5)
    assert row.passes == 1.0
    assert column.passes == pytest.approx(1.0 + 6 / 30)  # plus the columns in use


@pytest.mark.parametrize("n", [1, 3, 4, 5, 1000, 1001])
def test_chunks_cover_everything_once(n):
    for size in (1, SERIAL_BELOW * 10):
        covered = [i for lo, hi in chunks(n, size) for i in range(lo, hi)]
        assert covered == list(range(n))


PRODUCTS = {
    "matvec": lambda op, x, g: op.matvec(x),
    "rmatvec": lambda op, x, g: op.rmatvec(g),
    "pair_rmatvec": lambda op, x, g: op.pair_rmatvec(g, g),
    "squares_and_rmatvec": lambda op, x, g: op.squares_and_rmatvec(g),
    "update": lambda op, x, g: op.update(x, g.copy(), 1.0, 1.0),
    "update and columns": lambda op, x, g: op.update(x, g.copy(), 1.0, 1.0, np.arange(3)),
    "columns": lambda op, x, g: op.columns(np.arange(3)),
    "single": lambda op, x, g: op.single(),
    "gram": lambda op, x, g: op.gram(),
    "toarray": lambda op, x, g: op.toarray(),
    "matmat": lambda op, x, g: op.matmat(x[:, None]),
    "rmatmat": lambda op, x, g: op.rmatmat(g[:, None]),
    "elsewhere": lambda op, x, g: op.count(1.0),
}
#: What differs from one pass, for x with 6 of 30 entries and 3 of 30 columns taken.
COSTS = {
    "C": {"columns": 0.8, "update and columns": 1.8},
    "Fortran": {"matvec": 0.2, "update": 1.2, "update and columns": 1.3, "columns": 0.1},
    "csr": {"update": 2.0, "update and columns": 2.1, "columns": 0.1},
    "centred": {"update": 2.0, "update and columns": 2.1, "columns": 0.1},
}


@pytest.mark.parametrize("storage", COSTS)
@pytest.mark.parametrize("product", PRODUCTS)
def test_the_meter_counts_what_is_read(storage, product, tmp_path):
    F = np.random.default_rng(0).standard_normal((40, 30))
    op = Metered(
        centred(F) if storage == "centred" else as_operator(STORAGES[storage](F, tmp_path))
    )
    x = np.zeros(30)
    x[:6] = 1.0
    PRODUCTS[product](op, x, np.ones(40))
    assert op.passes == pytest.approx(COSTS[storage].get(product, 1.0))


def unsorted(kind):
    """A sparse matrix with entries out of order and one position twice."""
    data, at = np.array([1.0, 2.0, 3.0, 4.0, 5.0]), np.array([2, 0, 1, 1, 0])
    return kind((data, at, np.array([0, 2, 4, 5])), shape=(3, 3))


@pytest.mark.parametrize("kind", [sp.csr_array, sp.csr_matrix, sp.csc_array, sp.csc_matrix])
@pytest.mark.parametrize("centre", [False, True])
def test_the_arrays_of_the_caller_are_not_written_to(kind, centre):
    F = unsorted(kind)
    mine = F.data, F.indices, F.indptr
    before = [array.copy() for array in mine]
    for array in mine:
        array.flags.writeable = False
    rows = Covariates(F, centre=centre)
    dense = unsorted(kind).toarray()
    dense = dense - dense.mean(axis=0) if centre else dense
    np.testing.assert_allclose(rows.squares, (dense**2).sum(axis=0))
    np.testing.assert_allclose(rows.rmatvec(np.arange(3.0)), dense.T @ np.arange(3.0), atol=1e-14)
    found = rows.squared_row_norms(Diagonal(np.ones(3)))
    np.testing.assert_allclose(found, np.sum(dense**2, axis=1), rtol=1e-12)
    op = rows.operator()
    np.testing.assert_allclose(op.toarray(), dense, atol=1e-14)
    np.testing.assert_allclose(op.gram(), dense.T @ dense, atol=1e-13)
    plain = as_operator(F)
    for product in (plain.columns, lambda at: plain.matmat(np.eye(3)[:, at])):
        product(np.array([1, 0]))
    plain.squares_and_rmatvec(np.ones(3))
    plain.single()
    assert (F.data, F.indices, F.indptr) == mine  # pyright: ignore[reportAttributeAccessIssue]
    for array, old in zip(mine, before, strict=True):
        np.testing.assert_array_equal(array, old)


def test_sorted_sparse_covariates_are_not_copied():
    F = sp.csr_array(np.eye(3))
    assert np.shares_memory(Covariates(F, centre=True)._F.data, F.data)
