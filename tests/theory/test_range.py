"""Every search ends, also where double precision does: with a refusal, not a wrong number."""

import math
from typing import Any

import numpy as np
import pytest

import privasso as pv
from privasso.theory import (
    FixedPoint,
    clipped_point,
    critical_lambda_ratio,
    mismatched_state_evolution,
    point_gradients,
)
from privasso.theory._correlated_leakage import box_chain
from privasso.theory._draws import Averages
from privasso.theory._nodes import Nodes
from privasso.theory._onavekl import layer
from privasso.theory._root import FOUND, LOST, critical_ratio, fixed_point, runaway
from privasso.theory._system import values

NOT_NUMBERS = [math.nan, math.inf]
ONE = np.ones(1)


def beyond(value):
    """Nodes of which the second has this squared scale."""
    return np.array([1.0, value]), np.array([0.5, 0.5]), np.array([0.01, 0.01])


@pytest.mark.parametrize("value", [*NOT_NUMBERS, 1e200])
@pytest.mark.parametrize("start", [(math.nan, math.nan), (-2.3, 0.5)])
def test_kernels_find_nothing_on_scales_beyond_double_precision(value, start: tuple[float, float]):
    v, w, variances = beyond(value)
    nodes = Nodes(v, w, variances)
    model = pv.Model(0.5)
    with np.errstate(all="ignore"):  # without compilation NumPy would warn
        assert fixed_point(nodes.system(model, 0.2), *start, True)[0] == LOST
        assert fixed_point(nodes.system(model, 0.2), *start, False)[0] != FOUND
        clipped = nodes.system(model, 0.2, kappa=0.1, ridge=0.1 * variances)
        assert fixed_point(clipped, *start, False)[0] == LOST
        rotated = nodes.system(model, 0.2, spectrum=(ONE, 0.5 * ONE))
        status, x, y = fixed_point(rotated, *start, True)
        assert status == LOST or math.isnan(values(rotated, x, y)[0])


@pytest.mark.parametrize("start", [*NOT_NUMBERS, -math.inf])
def test_kernels_end_from_a_start_that_is_no_positive_number(start):
    nodes = Nodes(ONE, ONE, 0.01 * ONE)
    model = pv.Model(0.5, scales=pv.Constant(1.0))
    exact = pv.state_evolution(model, 0.3, pv.Isotropic(0.1))
    with np.errstate(all="ignore"):
        assert np.isnan(runaway(nodes.system(model, 0.01, 100.0), start)).all()
        # A bad start must not become an answer.
        for s, known in (
            (nodes.system(model, 0.3), True),
            (nodes.system(model, 0.3), False),
            (nodes.system(model, 0.3, kappa=1e9, ridge=np.zeros(1)), False),
        ):
            status, x, y = fixed_point(s, start, 0.5, known)
            assert status == FOUND
            assert math.isclose(values(s, x, y)[0], exact.E, rel_tol=1e-9)


@pytest.mark.parametrize("level", [*NOT_NUMBERS, 1e308])
def test_the_critical_ratio_is_nan_where_the_noise_is_no_number(level):
    v, w, _ = beyond(1e-200)
    with np.errstate(all="ignore"):
        s = Nodes(v, w, np.array([1.0, level])).system(pv.Model(0.5), 1.0)
        assert math.isnan(critical_ratio(s))


@pytest.mark.parametrize("kappa", NOT_NUMBERS)
@pytest.mark.parametrize("s", [*NOT_NUMBERS, 1.0])
def test_the_integral_of_a_layer_has_few_steps(kappa, s):
    """A float that is no number becomes any integer, which differs between processors."""
    with np.errstate(all="ignore"):
        assert np.isnan(layer(kappa, s, True)).all()


def test_the_number_of_steps_of_a_layer_is_far_below_its_limit():
    """A coefficient that is ever selected has κ ≤ 38√(1 + s²)."""
    for s in 10.0 ** np.linspace(-7.0, 140.0, 50):
        for t in np.append(10.0 ** np.linspace(-200.0, 0.0, 20), np.linspace(1.0, 38.0, 20)):
            assert np.isfinite(layer(float(t * np.hypot(1.0, s)), float(s), False)[0])


@pytest.mark.parametrize("value", NOT_NUMBERS)
def test_trajectories_in_a_box_end_without_numbers(value):
    for k in range(3):
        covariance, start, velocities = np.eye(2), np.zeros(2), np.full((3, 2), 3.0)
        (covariance, start, velocities)[k][-1] = value
        with np.errstate(all="ignore"):
            states, complete = box_chain(
                covariance, -ONE.repeat(2), ONE.repeat(2), start, velocities
            )
        assert not complete or not np.isfinite(states).all()


@pytest.mark.parametrize("value", NOT_NUMBERS)
def test_averages_that_are_no_numbers_are_refused(value):
    for R, S in ((value, 0.1), (0.1, value)):
        with pytest.raises(ValueError, match="range of double precision"):
            _ = Averages(np.array([R]), np.array([S]), np.array([0.1])).means


BEYOND = {
    "wide scales": lambda: pv.state_evolution(
        pv.Model(scales=pv.LogNormal(0.0, 9.0)), 1e-3, pv.Gram(0.1)
    ),
    "large scales": lambda: pv.state_evolution(
        pv.Model(2.0, scales=pv.Constant(1e112)), 1e-33, pv.Isotropic(1e107)
    ),
    "clipped, wide scales": lambda: pv.state_evolution(
        pv.Model(2.0, scales=pv.LogNormal(0.0, 9.0)),
        2.0,
        pv.Isotropic(0.2),
        kappa=0.2,
        ridge=pv.PowerLaw(1.0, 1.0),
    ),
    "clipped, large scales": lambda: pv.state_evolution(
        pv.Model(2.0, scales=pv.Constant(1e112)), 1e-33, pv.Isotropic(1e107), kappa=1e-33
    ),
    "rotated": lambda: pv.state_evolution(
        pv.model.RotatedModel(0.5, scales=pv.Constant(1e120)), 1e60, pv.Gram(1e-20)
    ),
    "critical line": lambda: critical_lambda_ratio(
        pv.Model(0.5, scales=pv.Empirical([1e-140, 1e140])), pv.PowerLaw(1.0, -1.0)
    ),
    "wrong scales": lambda: mismatched_state_evolution(
        pv.Model(2.0, scales=pv.Constant(1e140)), 1e-60, pv.Isotropic(1.0), 0.5
    ),
}


@pytest.mark.parametrize("name", BEYOND)
def test_predictions_beyond_double_precision_are_refused(name):
    with pytest.raises(ValueError, match="range of double precision"):
        BEYOND[name]()


def test_small_columns_of_which_none_is_ever_selected():
    model = pv.Model(1e-3, scales=pv.Constant(1e-70))
    fp = pv.state_evolution(model, 1e70, pv.Isotropic(1e-104), kappa=1e-33)
    assert (fp.E, fp.V, fp.rho_hat) == (pytest.approx(0.01), 0.0, 0.0)


def test_as_many_coefficients_as_rows_within_rounding():
    """At α = 1 and a λ that vanishes beside the noise, 1 − ρ̂ is zero in double precision."""
    model = pv.Model(alpha=1.0, scales=pv.LogNormal(0.0, 0.5))
    for lam in (1e-30, 1e-200):
        with pytest.raises(ValueError, match="range of double precision"):
            pv.state_evolution(model, lam, pv.Gram(1.0))


def test_points_of_a_search_beyond_double_precision_count_as_none():
    v, w, variances = beyond(1e200)
    model = pv.Model()
    assert point_gradients(model, 0.2, variances, v, w) is None
    assert clipped_point(model, 0.2, 0.1, v, w, variances, variances) is None


@pytest.mark.parametrize("size", [1e-40, 1e-12, 1e12, 1e40])
@pytest.mark.parametrize("kind", ["squared", "unstable", "clipped", "rotated"])
def test_units_change_nothing(size, kind):
    """Rows that are c times as large, with cξ, c²λ and c²η, have c² times the error."""

    def predicted(c: float) -> FixedPoint:
        model = (pv.model.RotatedModel if kind == "rotated" else pv.Model)(
            0.5, sigma_xi=0.1 * c, scales=pv.LogNormal(math.log(c), 0.5)
        )
        noise = pv.Isotropic((5.0 if kind == "unstable" else 0.1) * c * c)
        if kind == "clipped":
            return pv.state_evolution(model, 0.2 * c * c, noise, kappa=0.3 * c, ridge=0.2 * c * c)
        return pv.state_evolution(model, 0.2 * c * c, noise)

    here, there = predicted(1.0), predicted(size)
    assert here.status is there.status
    assert there.E / size / size == pytest.approx(here.E, rel=1e-8)
    assert here.rho_hat == pytest.approx(there.rho_hat, rel=1e-8)


def hostile(seed):
    """A prediction with numbers of any size."""
    rng = np.random.default_rng(seed)
    far = float(rng.choice([1.0, 20.0, 140.0, 300.0]))

    def number(most=140.0):
        return float(10.0 ** rng.uniform(-min(far, most), min(far, most)))

    law = [
        pv.LogNormal(float(rng.uniform(-3.0, 3.0)), float(rng.choice([0.5, 3.0, 6.0, 100.0]))),
        pv.Uniform(0.0, number()),
        pv.Constant(number()),
        pv.Empirical([number() for _ in range(20)]),
    ][rng.integers(4)]
    gamma = float(rng.uniform(-2.0, 3.0))
    noise = [pv.Gram(number()), pv.Isotropic(number()), pv.PowerLaw(number(), gamma)][
        rng.integers(3)
    ]
    noise = noise.with_sigma(0.0) if rng.random() < 0.1 else noise
    alpha = float(rng.choice([1.0, 1.0 - 1e-16, 0.5, 1e-3, 2.0, 1e3]))
    rho, xi = float(rng.choice([0.1, 1.0, 1e-12])), float(rng.choice([0.0, 0.1, number()]))
    count = None if rng.random() < 0.6 else int(rng.choice([1, 2, 50]))
    given: dict[str, Any] = {"n_features": count}
    kind, lam = rng.integers(4), number(300.0)
    if kind == 0:
        model = pv.model.RotatedModel(alpha, rho, xi, law, spectrum=pv.model.Orthogonal())
        return lambda: pv.state_evolution(model, lam, noise, **given)
    model = pv.Model(alpha, rho, xi, law)
    if kind == 1:
        given["kappa"] = float(rng.choice([0.1, number(), math.inf]))
        given["ridge"] = [0.0, number(), pv.PowerLaw(number(), 1.0)][rng.integers(3)]
    if kind == 2:
        return lambda: mismatched_state_evolution(model, lam, noise, 0.5, **given)
    return lambda: pv.state_evolution(model, lam, noise, **given)


def check_hostile(seed):
    try:
        predict = hostile(seed)
    except ValueError:  # noise or scales whose squares are no doubles
        return
    try:
        point = predict()
    except ValueError as error:
        assert any(text in str(error) for text in ("double precision", "is infinite for"))  # noqa: PT017
        return
    assert point.status.name != "STABLE" or (math.isfinite(point.E) and math.isfinite(point.V))
    assert point.status.name == "INFINITE_ERROR" or 0.0 <= point.rho_hat <= 1.0 + 1e-9


@pytest.mark.filterwarnings("ignore::privasso.theory.QuadratureWarning")
@pytest.mark.parametrize("first", range(0, 60, 20))
def test_numbers_of_any_size(first):
    for seed in range(first, first + 20):
        check_hostile(seed)


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore::privasso.theory.QuadratureWarning")
@pytest.mark.parametrize("first", range(1000, 5000, 200))
def test_many_numbers_of_any_size(first):
    for seed in range(first, first + 200):
        check_hostile(seed)
