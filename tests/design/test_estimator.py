"""`PrivateLasso(noise="optimal")`: the exponent is the one that brute force prefers."""

import numpy as np
import pytest

import privasso as pv
from privasso.design._optimal import least_leakage_exponent
from privasso.theory import label_sensitivity

MODEL = pv.Model(alpha=4.0, rho=0.1, sigma_xi=0.1, scales=pv.LogNormal(0.0, 1.0))
BUDGET = pv.LabelDP(4.0, 1e-5, (-3.0, 3.0))


def fitted(privacy, lam, **options):
    s = MODEL.sample(80, rng=1)
    y = np.clip(s.y, -3, 3)
    est = pv.PrivateLasso(
        lam, privacy, "optimal", fit_intercept=False, model=MODEL, random_state=0, **options
    )
    return s, est.fit(s.F, y)


def test_label_dp_minimises_the_predicted_error_for_these_columns():
    s, est = fitted(BUDGET, 3.0)
    scales = np.sqrt(np.sum(s.F**2, axis=0) * 80 / 320)
    data = pv.Model(4.0, 0.1, 0.1, pv.Empirical(scales))

    def error(gamma):
        design = pv.PowerLaw(1.0, gamma)
        mu = BUDGET.label_width * label_sensitivity(data, design, n_features=80)
        return pv.state_evolution(data, 3.0, design.with_sigma(mu / BUDGET.mu)).E

    gammas = np.linspace(-0.5, 1.5, 81)
    best = gammas[np.argmin([error(g) for g in gammas])]
    assert est.noise_.gamma == pytest.approx(best, abs=0.05)  # pyright: ignore
    assert est.guarantee_.kind == "label-dp"
    # What was predicted for the level is what the rows gave, within their fluctuation.
    assert isinstance(est.noise_, pv.PowerLaw)
    predicted = BUDGET.label_width * label_sensitivity(data, est.noise_, n_features=80)
    assert predicted == pytest.approx(BUDGET.mu, rel=0.1)


def test_lambda_may_be_left_to_the_release():
    _, est = fitted(BUDGET, "auto")
    assert 0.0 < est.noise_.gamma < 1.2  # pyright: ignore


def test_on_average_minimises_the_leakage_of_the_model():
    sigma, lam = 0.3, 1.0
    _, est = fitted(pv.OnAverage(sigma), lam)
    gammas = np.linspace(0.2, 1.8, 81)
    leaks = [pv.state_evolution(MODEL, lam, pv.PowerLaw(sigma, g)).onavekl() for g in gammas]
    best = gammas[np.argmin(leaks)]
    assert est.noise_.gamma == pytest.approx(best, abs=0.03)  # pyright: ignore
    assert least_leakage_exponent(MODEL, lam, sigma) == pytest.approx(best, abs=0.03)


def test_refusals():
    s = MODEL.sample(40, rng=0)
    with pytest.raises(ValueError, match="noise='optimal' needs model"):
        pv.PrivateLasso(1.0, BUDGET, "optimal").fit(s.F, s.y)
    small = pv.Model(alpha=0.5, scales=pv.LogNormal(0.0, 0.5))
    with pytest.raises(pv.InfeasibleError, match="leaves no estimator, whatever its shape"):
        least_leakage_exponent(small, 0.1, 5.0)
    with pytest.raises(ValueError, match="'auto', 'shaped', 'optimal'"):
        pv.PrivateLasso(1.0, BUDGET, "best", model=MODEL).fit(s.F, s.y)
