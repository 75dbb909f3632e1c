"""Products in twice the working precision, against exact rational arithmetic."""

from fractions import Fraction

import numpy as np
import pytest
import scipy.sparse as sp

from privasso.operators import Centred, Enclosed, as_operator, finite_squares, two_product, two_sum
from privasso.operators._enclosed import axpys, dots

STORAGES = {
    "C": np.ascontiguousarray,
    "F": np.asfortranarray,
    "csr": sp.csr_array,
    "csc": sp.csc_array,
}


def exact_product(A, v, low=None):
    low = np.zeros(len(v)) if low is None else low
    entries = [Fraction(float(a)) + Fraction(float(b)) for a, b in zip(v, low, strict=True)]
    return [
        sum((Fraction(float(a)) * e for a, e in zip(row, entries, strict=True)), Fraction(0))
        for row in A
    ]


def check(found, exact, slack=0.0):
    value, low, error = found
    off = [
        abs(Fraction(float(a)) + Fraction(float(b)) - c)
        for a, b, c in zip(value, low, exact, strict=True)
    ]
    assert all(d <= Fraction(float(e)) for d, e in zip(off, error, strict=True))


def wild(rng, *shape):
    return rng.standard_normal(shape) * 10.0 ** rng.uniform(-8, 8, shape)


@pytest.mark.parametrize("storage", STORAGES)
@pytest.mark.parametrize("dtype", [np.float64, np.float32])
def test_the_exact_product_lies_in_the_enclosure(storage, dtype):
    rng = np.random.default_rng(0)
    F = wild(rng, 23, 9).astype(dtype)
    F[4] = 0
    F[:, 2] = 0
    F[:, 5] = -F[:, 6]  # sums that cancel
    x = wild(rng, 9)
    x[1], x[5] = 0.0, x[6]
    op = as_operator(STORAGES[storage](F))
    check(op.matvec_enclosed(x), exact_product(F, x))
    g = wild(rng, 23)
    low = g * rng.uniform(-1, 1, 23) * 2.0**-54
    g[3], low[3] = 0.0, 0.0
    found = op.rmatvec_enclosed(Enclosed(g, low, np.zeros(23)))
    check(found, exact_product(F.T, g, low))
    assert np.all(found.error <= 1e-25 * (np.abs(F.astype(float)).T @ np.abs(g)) + 1e-300)


@pytest.mark.parametrize("storage", STORAGES)
def test_errors_of_the_vector_are_carried_over(storage):
    rng = np.random.default_rng(1)
    F, g, error = wild(rng, 12, 5), wild(rng, 12), rng.uniform(0, 1e-3, 12)
    found = as_operator(STORAGES[storage](F)).rmatvec_enclosed(Enclosed(g, np.zeros(12), error))
    for signs in (1.0, -1.0, np.where(F[:, 0] > 0, 1.0, -1.0)):
        check(
            found,
            [
                a + b
                for a, b in zip(
                    exact_product(F.T, g), exact_product(F.T, error * signs), strict=True
                )
            ],
        )


def test_centred_matrix_is_the_real_difference():
    rng = np.random.default_rng(2)
    F = wild(rng, 11, 4) * (rng.uniform(size=(11, 4)) < 0.5)
    mean = rng.standard_normal(4)
    op = Centred(sp.csr_array(F), mean, np.ones(4))
    x, g = rng.standard_normal(4), rng.standard_normal(11)
    shift = sum(Fraction(float(a)) * Fraction(float(b)) for a, b in zip(mean, x, strict=True))
    check(op.matvec_enclosed(x), [e - shift for e in exact_product(F, x)])
    total = sum(Fraction(float(a)) for a in g)
    exact = [
        e - Fraction(float(c)) * total for e, c in zip(exact_product(F.T, g), mean, strict=True)
    ]
    check(op.rmatvec_enclosed(Enclosed.exactly(g)), exact)


def test_threads_add_up_to_an_enclosure(monkeypatch):
    monkeypatch.setenv("OMP_NUM_THREADS", "2")
    rng = np.random.default_rng(3)
    F = rng.standard_normal((3001, 111))
    g = rng.standard_normal(3001)
    found = as_operator(F).rmatvec_enclosed(Enclosed.exactly(g))
    check(Enclosed(*(a[:3] for a in found)), exact_product(F.T[:3], g))


@pytest.mark.parametrize("kernel", [dots, axpys])
def test_kernels_are_not_compiled_with_relaxed_arithmetic(kernel):
    # Reassociation would silently turn the error terms into zeros.
    assert not kernel.targetoptions.get("fastmath", False)


@pytest.mark.parametrize("storage", STORAGES)
def test_through_is_the_product_of_the_linked_rows(storage):
    rng = np.random.default_rng(4)
    F, x, y = rng.standard_normal((700, 130)), rng.standard_normal(130), rng.standard_normal(700)
    op = as_operator(STORAGES[storage](F))
    found = op.through(x, lambda rows, u: np.clip(y[rows] - u, -1, 1))
    np.testing.assert_allclose(found, F.T @ np.clip(y - F @ x, -1, 1), atol=1e-11)
    rows = np.array([3, 600, 5])
    block = op.rows(rows)
    np.testing.assert_array_equal(block.toarray() if sp.issparse(block) else block, F[rows])


def test_sums_and_products_with_their_exact_errors():
    one, small = np.array([1.0]), np.array([2.0**-60])
    assert [part.item() for part in two_sum(one, small)] == [1.0, 2.0**-60]
    factor = 1 + 2.0**-30
    high, low = (part.item() for part in two_product(np.array([factor]), np.array([factor])))
    assert Fraction(high) + Fraction(low) == Fraction(factor) ** 2


def test_norms_show_what_is_no_number():
    with pytest.raises(ValueError, match="F contains NaN or infinity"):
        finite_squares(np.array([1.0, np.nan]))
