"""Drawing, identity and extension of the designs."""

import dataclasses
import pickle
from dataclasses import dataclass

import numpy as np
import pytest
from scipy import stats

from privasso import Gram, Isotropic, NoiseDesign, PowerLaw

ALL = [Isotropic(0.5), Gram(0.5), PowerLaw(0.5, 1.0), PowerLaw(0.5, -0.5)]
every_design = pytest.mark.parametrize("design", ALL, ids=repr)
V = np.array([0.01, 0.3, 1.0, 2.0, 40.0])


@every_design
def test_draws_are_gaussian_with_those_variances(design: NoiseDesign):
    eta = design.draw(V, rng=5, size=20_000)
    assert eta.shape == (5, 20_000)
    standard = eta / np.sqrt(design.variances(V))[:, None]
    for row in standard:
        assert stats.kstest(row, "norm").pvalue > 1e-3
    # Sum of squares of n standard normals: chi-square, deviation sqrt(2n).
    assert np.all(np.abs(np.sum(standard**2, axis=1) - 20_000) < 4 * np.sqrt(40_000))
    correlation = np.corrcoef(standard) - np.eye(5)
    assert np.max(np.abs(correlation)) < 4.5 / np.sqrt(20_000)


@every_design
def test_one_vector(design: NoiseDesign):
    eta = design.draw(V, rng=3)
    assert eta.shape == (5,)
    assert eta.tolist() == design.draw(V, rng=np.random.default_rng(3)).tolist()
    assert eta.tolist() == design.draw(V, rng=3, size=1)[:, 0].tolist()
    assert design.draw(V).tolist() != design.draw(V).tolist()


@every_design
def test_level(design: NoiseDesign):
    other = design.with_sigma(1.5)
    assert type(other) is type(design)
    assert other.sigma == 1.5
    assert other.mean_power == 2.25
    np.testing.assert_allclose(other.variances(V), 9.0 * design.variances(V), rtol=1e-14)
    assert other.with_sigma(0.5) == design


def test_no_noise_draws_zeros():
    assert np.all(Gram(0.0).draw(V, size=3) == 0.0)


def test_exponents():
    assert Isotropic(1.0).gamma == 0.0
    assert Gram(1.0).gamma == 2.0
    assert PowerLaw(1.0, 1).gamma == 1.0
    assert [repr(d) for d in (Isotropic(1), Gram(1), PowerLaw(1, 1))] == [
        "Isotropic(sigma=1.0)",
        "Gram(sigma=1.0)",
        "PowerLaw(sigma=1.0, gamma=1.0)",
    ]


@every_design
def test_designs_are_values(design: NoiseDesign):
    again = pickle.loads(pickle.dumps(design))
    assert again == design
    assert hash(again) == hash(design)
    assert sum(design == other for other in ALL) == 1
    with pytest.raises(dataclasses.FrozenInstanceError):
        design.sigma = 1.0  # pyright: ignore[reportAttributeAccessIssue]


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: Isotropic(-1.0), "sigma must be zero or positive"),
        (lambda: Gram(np.nan), "sigma must be finite"),
        (lambda: Gram("1"), "sigma must be a real number"),  # pyright: ignore[reportArgumentType]
        (lambda: Gram(1j), "sigma must be a real number"),  # pyright: ignore[reportArgumentType]
        (lambda: Gram(1e-200), "sigma = 1e-200 is outside"),
        (lambda: PowerLaw(1.0, np.inf), "gamma must be finite"),
        (lambda: PowerLaw(1.0, None), "gamma must be a real"),  # pyright: ignore[reportArgumentType]
        (lambda: Gram(1.0).draw(V, size=-1), "size must be at least 0"),
        (lambda: Gram(1.0).draw(V, size=2.0), "size must be an integer"),  # pyright: ignore[reportArgumentType]
        (lambda: Gram(1.0).draw(V, rng="a"), "rng must be"),  # pyright: ignore[reportArgumentType]
    ],
)
def test_bad_arguments(make, message):
    with pytest.raises(ValueError, match=message):
        make()


def test_a_new_design_needs_only_its_profile():
    @dataclass(frozen=True)
    class Tabulated(NoiseDesign):
        nodes: tuple[float, ...]
        heights: tuple[float, ...]

        def log_profile(self, v):
            return np.log(np.interp(v, self.nodes, self.heights))

    design = Tabulated(2.0, (0.0, 10.0), (1.0, 11.0))
    variances = design.variances([1.0, 3.0, 5.0])
    np.testing.assert_allclose(variances, 4.0 * np.array([2.0, 4.0, 6.0]) / 4.0, rtol=1e-14)
    assert design.with_sigma(1.0).heights == design.heights
    assert design.draw([1.0, 3.0], rng=0, size=4).shape == (2, 4)
