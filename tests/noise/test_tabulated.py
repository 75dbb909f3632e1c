"""`Tabulated`: against power laws, against scipy's spline, and beyond its ends."""

import pickle

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.interpolate import make_interp_spline

import privasso as pv
from privasso import Tabulated

V = np.array([1e-30, 1e-3, 0.2, 1.0, 7.0, 1e4, 1e40])


@given(
    gamma=st.floats(-3, 3),
    nodes=st.lists(st.integers(-40, 40), min_size=2, max_size=12, unique=True),
)
def test_a_table_of_a_power_law_is_that_law(gamma, nodes):
    log_v = np.sort(np.array(nodes, dtype=float)) / 4
    table = Tabulated(0.3, tuple(log_v), tuple(gamma * log_v + 1.7))
    np.testing.assert_allclose(table.variances(V), pv.PowerLaw(0.3, gamma).variances(V), rtol=1e-9)


def test_predictions_with_a_tabulated_power_law():
    model = pv.Model(scales=pv.LogNormal(0.0, 0.5))
    log_v = np.linspace(-2.0, 2.0, 5)
    table = Tabulated(0.1, tuple(log_v), tuple(1.3 * log_v))
    for n in (None, 200):
        one = pv.state_evolution(model, 0.2, table, n_features=n)
        other = pv.state_evolution(model, 0.2, pv.PowerLaw(0.1, 1.3), n_features=n)
        assert pytest.approx(other.E, rel=1e-6) == one.E
        assert one.onavekl() == pytest.approx(other.onavekl(), rel=1e-6)
    assert pv.state_evolution(pv.Model(), 0.2, Tabulated(0.1, (0.0,), (3.0,))).status.name == (
        "INFINITE_ERROR"
    )  # a table of one node is isotropic noise


def test_natural_cubic_spline_between_and_power_laws_beyond():
    x = np.array([-2.0, -1.0, 0.5, 1.0, 3.0])
    z = np.array([0.0, 1.5, -0.3, 2.0, 2.2])
    table = Tabulated(1.0, tuple(x), tuple(z))
    spline = make_interp_spline(x, z, k=3, bc_type="natural")
    inside = np.linspace(-2, 3, 101)
    np.testing.assert_allclose(table.log_profile(np.exp(inside)), spline(inside), atol=1e-12)
    slopes = spline.derivative()(x[[0, -1]])
    beyond = np.array([-2.0, -30.0])
    np.testing.assert_allclose(
        table.log_profile(np.exp(beyond)), z[0] + slopes[0] * (beyond - x[0]), rtol=1e-9
    )
    above = np.array([3.0, 50.0])
    np.testing.assert_allclose(
        table.log_profile(np.exp(above)), z[-1] + slopes[1] * (above - x[-1]), rtol=1e-9
    )


def test_columns_of_zero_scale():
    rising = Tabulated(1.0, (0.0, 1.0), (0.0, 1.0))
    np.testing.assert_allclose(rising.variances([0.0, 1.0]), [0.0, 2.0])
    flat = Tabulated(1.0, (0.0,), (5.0,))
    np.testing.assert_allclose(flat.variances([0.0, 1.0]), [1.0, 1.0])
    with pytest.raises(ValueError, match="drop the zero columns"):
        Tabulated(1.0, (0.0, 1.0), (1.0, 0.0)).variances([0.0, 1.0])


def test_identity():
    one = Tabulated(0.5, np.array([0.0, 1.0]), [0.0, 2.0])  # pyright: ignore
    same = Tabulated(0.5, (0.0, 1.0), (0.0, 2.0))
    assert one == same
    assert hash(one) == hash(same)
    assert one != same.with_sigma(1.0)
    assert pickle.loads(pickle.dumps(one)) == one
    assert len(repr(Tabulated(0.5, tuple(range(500)), (0.0,) * 500))) < 80


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ((-1.0, (0.0,), (0.0,)), "sigma must be zero or positive"),
        ((1.0, (), ()), "log_v is empty"),
        ((1.0, (0.0, 1.0), (0.0,)), "log_profile_at must have shape"),
        ((1.0, (1.0, 0.0), (0.0, 0.0)), "log_v must increase"),
        ((1.0, (0.0, 0.0), (0.0, 0.0)), "log_v must increase"),
        ((1.0, (0.0, np.nan), (0.0, 0.0)), "log_v contains NaN"),
        ((1.0, (0.0, 1e6), (0.0, 0.0)), "hold logarithms"),
        ((1.0, tuple(range(10_001)), (0.0,) * 10_001), "at most 10000 nodes"),
    ],
)
def test_bad_tables(arguments, message):
    with pytest.raises(ValueError, match=message):
        Tabulated(*arguments)
