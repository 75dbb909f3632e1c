"""Numbers that blocks of rows agree on."""

import numpy as np

from privasso.operators import bits_of, largest_square, number_of


def test_the_integers_of_numbers_have_their_order():
    assert bits_of(2.0)[0] > bits_of(1.9)[0] > bits_of(0.0)[0]
    assert number_of(bits_of(0.1)) == 0.1


def test_the_largest_square_of_a_row():
    assert largest_square(np.array([[3.0, 4.0], [1.0, 1.0]])) == 25.0
