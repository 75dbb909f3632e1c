"""Words that stand for noise."""

from privasso.noise import MatrixPower, PowerLaw, column_noise_from_name, noise_from_name


def test_names_of_noise():
    assert noise_from_name("noise", "power:1.5", sigma=0.1) == PowerLaw(0.1, 1.5)
    assert column_noise_from_name("noise", "matrix:2", sigma=0.1) == MatrixPower(0.1, 2.0)
