"""Predictions of state evolution against simulations of the model that they suppose."""

import numpy as np
import pytest

import privasso as pv
from privasso.forecast import Assumptions, predict, predictions
from privasso.operators import Covariates
from privasso.planning import calibrate


def test_the_prediction_is_what_simulated_fits_do():
    rng = np.random.default_rng(0)
    m, n, rho, r2, sd = 600, 200, 0.1, 0.6, 7.0
    scales = np.exp(rng.normal(0.0, 0.7, n))
    level = 60.0
    design = pv.PowerLaw(level, 0.5)
    tau = np.sqrt(r2 * sd**2 / (rho * np.sum(scales**2)))
    predicted = predict(
        Covariates(rng.standard_normal((m, n)) * scales, centre=False),
        design,
        Assumptions(rho, r2, sd),
        lam=150.0,
    )
    found, counts = [], []
    for _ in range(12):
        F = rng.standard_normal((m, n)) * scales
        x0 = np.where(rng.random(n) < rho, tau * rng.standard_normal(n), 0.0)
        y = F @ x0 + np.sqrt(1 - r2) * sd * rng.standard_normal(m)
        v = np.sum(F**2, axis=0)
        x = pv.solve(F, y, 150.0, design.draw(v, rng=rng)).x
        error = np.sum(scales**2 * (x - x0) ** 2) + (1 - r2) * sd**2
        found.append(1.0 - error / sd**2)
        counts.append(np.count_nonzero(x))
    for value, draws in ((predicted.r2, found), (predicted.nonzero, counts)):
        assert abs(value - np.mean(draws)) < 4 * np.std(draws) / np.sqrt(len(draws))
    assert predicted.critical_lam == 0.0


def test_the_best_lambda_is_best():
    rng = np.random.default_rng(1)
    rows = Covariates(rng.standard_normal((300, 50)) * np.geomspace(0.1, 10, 50), centre=True)
    suppose = Assumptions(0.2, 0.5, 2.0)
    best = predict(rows, pv.PowerLaw(30.0, 0.5), suppose)
    for factor in (0.5, 2.0):
        other = predict(rows, pv.PowerLaw(30.0, 0.5), suppose, factor * best.lam)
        assert other.r2 < best.r2


def test_units_do_not_matter():
    rng = np.random.default_rng(2)
    F = rng.standard_normal((300, 30)) * np.geomspace(0.1, 10, 30)
    one = predict(Covariates(F, centre=True), pv.Gram(5.0), Assumptions(0.1, 0.5, 2.0), 40.0)
    # Columns in thousandths, labels in hundredths: b and λ grow by both factors.
    other = predict(
        Covariates(1e3 * F, centre=True), pv.Gram(5e5), Assumptions(0.1, 0.5, 200.0), 4e6
    )
    assert other.r2 == pytest.approx(one.r2)
    assert other.nonzero == pytest.approx(one.nonzero)


def test_same_guarantee_for_both():
    rng = np.random.default_rng(3)
    rows = Covariates(rng.standard_normal((200, 10)) * np.geomspace(0.1, 10, 10), centre=True)
    privacy = pv.LabelDP(1.0, 1e-6, (0, 1))
    ours, even = predictions(rows, privacy, pv.Gram(1.0), Assumptions(0.1, 0.5, 0.2))
    for one in (ours, even):
        sigma = calibrate(rows, privacy, one.noise).covariance.sigma
        assert one.noise.sigma == pytest.approx(np.sqrt(np.mean(sigma**2)))
    assert len(predictions(rows, privacy, pv.Isotropic(1.0), Assumptions(0.1, 0.5, 0.2))) == 1


@pytest.mark.parametrize(
    "bad", [{"rho": 0.0}, {"rho": 1.5}, {"r2": 1.0}, {"r2": 0.0}, {"label_sd": 0.0}]
)
def test_bad_assumptions(bad):
    with pytest.raises(ValueError, match=next(iter(bad))):
        Assumptions(**{"rho": 0.1, "r2": 0.5, "label_sd": 1.0, **bad})
