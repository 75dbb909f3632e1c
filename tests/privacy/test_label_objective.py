"""Labels through objective perturbation: the rows, the minimiser, and what is made of it."""

import json
import math
from dataclasses import replace
from fractions import Fraction
from typing import Any

import numpy as np
import pytest
import scipy.optimize
import scipy.sparse as sp
from parts import last_fit

import privasso as pv
from privasso.accounting import GaussianLoss, objective_delta
from privasso.fit import FitOptions, plan_fit
from privasso.operators import Covariates
from privasso.planning import calibrate, release_labels, release_mechanism
from privasso.queries import bit_source, rounded_gaussian

BOUNDS = (-2.0, 6.0)
PRIVACY = pv.LabelDP(1.0, 1e-6, BOUNDS, mechanism="objective")
pytestmark = pytest.mark.filterwarnings("ignore::privasso.PrivacyWarning")


def data(m=60, n=4, seed=0):
    rng = np.random.default_rng(seed)
    X = rng.standard_t(4, (m, n)) * 10.0 ** rng.uniform(-3, 3, n) + rng.normal(0, 2, n)
    z = (X - X.mean(axis=0)) / X.std(axis=0)
    y = 2.0 + z @ rng.normal(0, 0.6, n) + 0.5 * rng.standard_normal(m)
    return X, y


def whitened(rows, calibration, privacy=PRIVACY):
    """Rows as the mechanism sees them, and what labels at the upper bound become."""
    view: Any = release_mechanism(privacy).program(rows, calibration)
    table = rows.labelled(np.full(rows.shape[0], privacy.y_bounds[1]))
    return table.gathered(view.view)


@pytest.mark.parametrize("storage", [np.asarray, np.asfortranarray, sp.csr_array])
@pytest.mark.parametrize(
    "noise", [pv.Shaped(shrink=0.5), pv.Shaped(shrink=0.0), pv.PowerLaw(1, 0.5)]
)
@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("centre", [False, True])
def test_no_row_is_longer_than_the_radius_in_exact_arithmetic(storage, noise, weighted, centre):
    for seed, factor in ((0, 1.0), (1, 1e100), (2, 1e-100)):
        X, _ = data(m=25, n=3, seed=seed)
        rng = np.random.default_rng(seed)
        weights = rng.uniform(0.0, 2.0, 25) * (rng.random(25) > 0.2) if weighted else None
        rows = Covariates(storage(X * factor), centre=centre, weights=weights)
        G, labels = whitened(rows, calibrate(rows, PRIVACY, noise))
        squares = [sum(Fraction(x) ** 2 for x in row) for row in G.tolist()]
        assert max(squares) <= 1
        # With weights, a design may be set by the largest row and the largest weight apart.
        assert max(squares) > (0.5 if weighted else 1 - 1e-5)
        # Rows and labels are multiplied by the same factor.
        if weights is not None:
            assert np.all(labels <= 0.5 * np.sqrt(weights))
            assert not G[weights == 0.0].any()


def test_the_level_of_the_noise_gives_the_guarantee():
    rows = Covariates(data()[0], centre=True)
    for epsilon, delta in ((0.1, 1e-8), (1.0, 1e-6), (10.0, 1e-4)):
        privacy = pv.LabelDP(epsilon, delta, BOUNDS)
        noise = calibrate(rows, privacy, pv.Shaped()).objective
        assert noise is not None
        # A label moves a clipped residual by 2κ at most, and a row has the length R.
        assert 2.0 * noise.kappa * noise.radius / noise.sigma <= noise.c
        assert noise.radius**2 / noise.ridge <= noise.t
        achieved = objective_delta(epsilon, noise.c, noise.t, "labels")
        assert 0.99 * delta < achieved <= delta


@pytest.mark.parametrize("fit_intercept", [False, True])
def test_the_release_is_made_of_the_minimiser_that_the_formula_names(fit_intercept):
    X, y = data(m=40, n=3)
    y[:4] = [-50.0, 50.0, -2.0, 6.0]  # two are clipped to the bounds
    rows = Covariates(X, centre=fit_intercept)
    calibration = calibrate(rows, PRIVACY, pv.Shaped(shrink=0.5))
    noise = calibration.objective
    assert noise is not None
    made = release_labels(
        rows, y, PRIVACY, calibration, fit_intercept=fit_intercept, rng=np.random.default_rng(5)
    )
    # The first numbers of the same stream are the noise.
    bits = bit_source(np.random.default_rng(5))
    size = 3 + fit_intercept
    z = np.ldexp(rounded_gaussian(2.0**52, size, bits).astype(float), -52)
    F = X - X.mean(axis=0) if fit_intercept else X
    S = calibration.covariance.scaled((noise.sigma * PRIVACY.label_width) ** -2)
    G = S.whiten(F.T).T
    if fit_intercept:
        first = calibration.sigma_sum / (noise.sigma * PRIVACY.label_width)
        G = np.column_stack([G, np.full(40, 1.0 / first)])
    roots = np.minimum(1.0, 1.0 / np.linalg.norm(G, axis=1))
    G *= roots[:, None]
    labels = roots * (np.clip(y, *BOUNDS) - 2.0) / 8.0

    def objective(u):
        r = labels - G @ u
        a = np.abs(r)
        loss = np.where(a <= noise.kappa, 0.5 * r * r, noise.kappa * (a - 0.5 * noise.kappa))
        psi = np.clip(r, -noise.kappa, noise.kappa)
        value = loss.sum() + 0.5 * noise.ridge * u @ u + noise.sigma * z @ u
        return value, noise.ridge * u + noise.sigma * z - G.T @ psi

    found = scipy.optimize.minimize(
        objective, np.zeros(size), jac=True, method="BFGS", options={"gtol": 1e-9}
    ).x
    expected = G.T @ (G @ found) + noise.ridge * found  # in units of the range
    b = S.colour(expected[:3]) * 8.0
    slack = 8.0 * (noise.ridge + 40) * noise.sigma_out * 8.0
    np.testing.assert_allclose(S.whiten(made.b), S.whiten(b), atol=slack)
    if fit_intercept:
        assert made.label_sum is not None
        level = calibration.sigma_sum / noise.sigma
        assert made.label_sum / level == pytest.approx(expected[-1], abs=slack)


def test_without_clipped_residuals_it_is_the_gaussian_release_of_products():
    X, y = data(m=30, n=3)
    privacy = replace(PRIVACY, kappa=1.0, t=0.01)  # û is small, and no residual as large as κ
    rows = Covariates(X, centre=True)
    calibration = calibrate(rows, privacy, pv.Shaped(shrink=0.5))
    F = np.column_stack([X - X.mean(axis=0), np.ones(30)])
    weights = calibration.weights
    assert weights is not None
    products = F.T @ (weights * (np.clip(y, *BOUNDS) - 2.0))
    rng = np.random.default_rng(0)
    found = []
    for _ in range(250):
        made = release_labels(rows, y, privacy, calibration, rng=rng)
        assert made.label_sum is not None
        white = calibration.covariance.whiten(made.b - products[:3])
        found.append([*white, (made.label_sum - products[3]) / calibration.sigma_sum])
    error = 1.0 / math.sqrt(250)
    np.testing.assert_allclose(np.mean(found, axis=0), 0.0, atol=4.5 * error)
    np.testing.assert_allclose(np.cov(np.transpose(found)), np.eye(4), atol=7.0 * error)


def test_a_kept_release_says_what_it_comes_from_and_is_read_back(tmp_path):
    X, y = data()
    privacy = pv.LabelDP(1.0, 1e-6, BOUNDS)
    est = pv.PrivateLasso(privacy=privacy).fit(X, y)
    kept = est.release_
    assert kept.mu is None
    settled = kept.privacy
    calibration = plan_fit(X, FitOptions(privacy)).calibration
    noise = None if calibration is None else calibration.objective
    assert noise is not None
    assert settled == pv.LabelDP(
        1.0, 1e-6, BOUNDS, "objective", kappa=noise.kappa, t=noise.t, level=False
    )
    assert repr(settled).endswith(f"kappa=0.1, t={noise.t!r}, level=False)")
    assert (last_fit(est.guarantee_).c, last_fit(est.guarantee_).t) == (noise.c, noise.t)
    assert est.guarantee_.to_dict()["losses"][0]["shift"] == noise.shift
    path = tmp_path / "release.json"
    pv.save_release(kept, path)
    model = pv.load_release(path).open(X).solve("auto")
    np.testing.assert_array_equal(model.coef, est.coef_)
    # Less noise than stated, or numbers that do not give the stated δ, are refused.
    document = json.loads(path.read_text())
    root = document["covariance"]["root"]
    document["covariance"]["root"] = [0.7 * x for x in root]
    path.write_text(json.dumps(document))
    with pytest.raises(ValueError, match="does not fit its statement"):
        pv.load_release(path).open(X)
    document["covariance"]["root"] = root
    document["guarantee"]["losses"][0]["c"] *= 1.01
    path.write_text(json.dumps(document))
    with pytest.raises(ValueError, match="small enough"):
        pv.load_release(path)


@pytest.mark.parametrize("name", ["kappa", "t", "level", "name"])
def test_a_kept_release_needs_all_settings_of_its_mechanism(name, tmp_path):
    X, y = data()
    path = tmp_path / "release.json"
    pv.save_release(pv.PrivateLasso(privacy=PRIVACY).fit(X, y).release_, path)
    document = json.loads(path.read_text())
    document["mechanism"][name] = "objects" if name == "name" else None
    path.write_text(json.dumps(document))
    with pytest.raises(ValueError, match="release, or objective with kappa, t and level"):
        pv.load_release(path)


def test_a_further_loss_does_not_fit_into_the_statement():
    X, _ = data()
    guarantee = plan_fit(X, FitOptions(PRIVACY)).guarantee
    with pytest.raises(ValueError, match="small enough"):
        replace(guarantee, losses=(*guarantee.losses, GaussianLoss(0.1)))


def test_groups_and_compositions_of_perturbed_objectives():
    X, _ = data()
    one = plan_fit(X, FitOptions(PRIVACY)).guarantee
    release = plan_fit(X, FitOptions(pv.LabelDP(1.0, 1e-6, BOUNDS, "release"))).guarantee
    pair = one.group(2)
    assert pair.adjacency == "up to 2 entries"
    assert 1.9 < pair["epsilon"] < 2.6
    together = one.compose(release)
    assert together.losses == (*one.losses, *release.losses)
    assert release.compose(release)["epsilon"] < together["epsilon"] < 2.0
    assert type(one).from_dict(one.to_dict()) == one


def test_settings_are_given_or_chosen_without_labels():
    X, y = data()
    given = pv.LabelDP(1.0, 1e-6, BOUNDS, "objective", kappa=0.2, t=0.07)
    est = pv.PrivateLasso(privacy=given, random_state=0).fit(X, y)
    assert est.release_.privacy == replace(given, level=False)
    assert last_fit(est.guarantee_).t == 0.07
    auto = pv.LabelDP(1.0, 1e-6, BOUNDS)
    one, other = (
        pv.PrivateLasso(privacy=auto, random_state=0).fit(X, labels).guarantee_
        for labels in (y, -3.0 * y)
    )
    assert one == other


def test_what_perturbs_the_objective_and_what_does_not():
    X, y = data()

    def kind(noise="auto", **privacy):
        est = pv.PrivateLasso(
            privacy=pv.LabelDP(**{"epsilon": 1.0, "delta": 1e-6, "y_bounds": BOUNDS, **privacy}),
            noise=noise,
            random_state=0,
        )
        return isinstance(est.fit(X, y).guarantee_.loss, GaussianLoss)

    assert not kind()
    assert not kind("shaped")
    assert kind("power:0.5")
    assert not kind("power:0.5", mechanism="objective")
    assert kind(mechanism="release")
    assert kind(epsilon=100.0)


def test_noise_for_another_guarantee_is_refused():
    X, y = data()
    rows = Covariates(X, centre=True)
    calibration = calibrate(rows, PRIVACY, pv.Shaped())
    for other in (replace(PRIVACY, epsilon=0.5), replace(PRIVACY, delta=1e-9)):
        with pytest.raises(ValueError, match="another guarantee"):
            release_labels(rows, y, other, calibration)
    fewer = Covariates(X[:30], centre=True)
    with pytest.raises(ValueError, match="another guarantee or another number of rows"):
        release_labels(fewer, y[:30], PRIVACY, calibration)
