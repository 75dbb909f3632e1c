from fractions import Fraction

import numpy as np
import pytest

from privasso._validation import (
    all_finite,
    array_shape,
    check_coded,
    check_length,
    generator,
    integer,
    nonnegative_float,
    numbers_of,
    numbers_only,
    positive_float,
    probability,
    real_array,
    real_float,
    real_labels,
    separated,
    squarable,
)


class Unreadable:
    def __array__(self, dtype=None, copy=None):
        raise TypeError("lives on another device")


@pytest.mark.parametrize(
    ("value", "message"),
    [
        ([1.0, np.nan], "NaN or infinity"),
        ([1.0, -np.inf], "NaN or infinity"),
        ([np.inf, -np.inf], "NaN or infinity"),
        ([1.0 + 0j], "complex"),
        (np.array([1.0, 2.0], dtype=object), "object"),
        ([1, None], "object"),
        ([10**400], "object"),
        (None, "object"),
        (["a", "b"], "text"),
        ([b"a"], "text"),
        (np.array(["2020-01-01"], dtype="datetime64[D]"), "dates"),
        (np.array([1], dtype="timedelta64[s]"), "time differences"),
        (np.zeros(2, dtype=[("a", float)]), "structured"),
        ([[1.0, 2.0], [3.0]], "array of numbers"),
        (Unreadable(), "array of numbers"),
        ([], "empty"),
        (np.zeros((3, 0)), "empty"),
        (np.ma.array([1.0, 2.0], mask=[False, True]), "masked"),
    ],
)
def test_real_array_refuses_with_one_clear_error(value, message):
    with pytest.raises(ValueError, match=f"^y .*{message}"):
        real_array("y", value)


WIDE = np.finfo(np.longdouble).max > np.finfo(np.float64).max


@pytest.mark.skipif(not WIDE, reason="long double is double on this machine")
def test_real_array_refuses_a_long_double_that_overflows_in_the_conversion():
    with pytest.raises(ValueError, match="NaN or infinity"):
        real_array("y", np.array([1e300], dtype=np.longdouble) ** 2)


def test_real_array_refuses_what_overflows_in_the_conversion():
    with pytest.raises(ValueError, match="NaN or infinity"):
        real_array("y", [1e300], dtype=np.float32)


@pytest.mark.parametrize("order", ["C", "F"])
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_real_array_does_not_copy_a_good_array(order, dtype):
    good = np.ones((3, 4), dtype=dtype, order=order)
    assert real_array("F", good, ndim=2, dtype=None) is good


def test_real_array_reads_a_memory_map_in_place(tmp_path):
    stored = np.memmap(tmp_path / "F", dtype=np.float64, mode="w+", shape=(3, 4))
    assert np.shares_memory(real_array("F", stored, ndim=2), stored)


@pytest.mark.parametrize("dtype", [np.int8, np.uint64, np.bool_, np.float16])
def test_real_array_converts_other_numbers(dtype):
    for wanted in (None, np.float64):
        array = real_array("y", np.ones(3, dtype=dtype), dtype=wanted)
        assert array.dtype == np.float64
        assert array.tolist() == [1.0, 1.0, 1.0]


def test_real_array_accepts_finite_entries_whose_sum_overflows():
    assert real_array("y", [1.7e308, 1.7e308]).size == 2


def test_real_array_checks_the_shape():
    F = np.ones((3, 4))
    assert real_array("F", F, shape=(None, 4)) is F
    with pytest.raises(ValueError, match=r"F must have shape \(any, 5\), not \(3, 4\)"):
        real_array("F", F, shape=(None, 5))
    with pytest.raises(ValueError, match=r"F must have shape \(3,\), not \(3, 4\)"):
        real_array("F", F, shape=(3,))
    with pytest.raises(ValueError, match="F must have 1 dimension, not 2"):
        real_array("F", F, ndim=1)
    with pytest.raises(ValueError, match="y must have 1 dimension, not 0"):
        real_array("y", 1.0, ndim=1)


@pytest.mark.parametrize("value", [2, 2.0, np.float32(2), np.int64(2), np.array(2.0), Fraction(2)])
def test_real_float_reads_numbers(value):
    number = real_float("lam", value)
    assert type(number) is float
    assert number == 2.0


@pytest.mark.parametrize(
    "value", [True, np.True_, None, "2", 2j, [2.0], np.ones(1), np.nan, np.inf, 10**400]
)
@pytest.mark.parametrize("check", [real_float, positive_float, nonnegative_float])
def test_floats_refuse_what_is_no_finite_number(check, value):
    with pytest.raises(ValueError, match=r"^lam must be"):
        check("lam", value)


def test_signs():
    with pytest.raises(ValueError, match="positive"):
        positive_float("lam", 0.0)
    with pytest.raises(ValueError, match="zero or positive"):
        nonnegative_float("lam", -1e-300)
    assert str(nonnegative_float("lam", -0.0)) == "0.0"


def test_an_error_never_prints_data():
    with pytest.raises(ValueError, match="type list") as caught:
        real_float("lam", [0.123456789] * 10)
    assert "0.123" not in str(caught.value)


@pytest.mark.parametrize("value", [2.0, True, "2", None, np.array([1, 2])])
def test_integer_refuses(value):
    with pytest.raises(ValueError, match="n must be an integer"):
        integer("n", value)


def test_integer_and_shape_accept_numpy_integers():
    assert integer("n", np.int32(3)) == 3
    assert array_shape("size", [np.int64(2), 0]) == (2, 0)
    with pytest.raises(ValueError, match="at least 0"):
        array_shape("size", (2, -1))


def test_generator():
    existing = np.random.default_rng(1)
    assert generator(existing) is existing
    assert generator(7).random() == generator(7).random()
    assert generator().random() != generator().random()


@pytest.mark.parametrize("value", ["seed", -1, 1.5])
def test_generator_refuses(value):
    with pytest.raises(ValueError, match=r"^rng must be"):
        generator(value)


def test_finite_numbers_may_have_a_sum_that_is_not():
    assert all_finite(np.array([1.7e308, 1.7e308]))
    assert not all_finite(np.array([np.inf]))
    assert not all_finite(np.array([1.0, np.nan]))


def test_labels_are_read_or_refused_without_showing_them():
    np.testing.assert_array_equal(real_labels([1, True, None]), [1.0, 1.0, np.nan])
    with pytest.raises(ValueError, match="which is not shown because labels are private") as caught:
        real_labels(["positive", "negative"])
    assert "positive" not in str(caught.value)
    assert caught.value.__context__ is None
    with pytest.raises(ValueError, match="one label for each of the 2 rows, not 3"):
        check_length(np.zeros(3), 2)
    with pytest.raises(ValueError, match="bounds are 0 and 1, not 0 and 10"):
        check_coded((0.0, 10.0))


def test_objects_and_other_types_as_numbers():
    objects = np.array([1, None, "2.5", -(10**400)], dtype=object)
    np.testing.assert_array_equal(numbers_of(objects), [1.0, np.nan, 2.5, -np.inf])
    with pytest.raises(ValueError, match="X holds text; convert it to numbers first"):
        numbers_only("X", np.array(["HIV-positive"]))


def test_bounds_that_double_precision_tells_apart():
    low, high = np.array([0.0, 1e10, 2.0**53]), np.array([1e-5, 1e10 + 1e-5, 2.0**53 + 2])
    assert separated(low, high).tolist() == [True, False, False]


def test_numbers_whose_squares_are_lost_are_refused():
    with pytest.raises(ValueError, match=r"sigma = 1e-200 is outside .* change the units"):
        squarable("sigma", 1e-200)
    assert squarable("sigma", 0.0) == 0.0
    with pytest.raises(ValueError, match=r"delta is a probability below 1, not 1\.5"):
        probability("delta", 1.5)
