"""A kept release comes back as it was, and anything off is refused."""

import json
from dataclasses import replace

import numpy as np
import pytest

import privasso as pv
from privasso.artefact import DocumentError, release_text
from privasso.fit import FitOptions, KeptRelease, plan_fit
from privasso.noise import Factored
from privasso.privacy import Terms

X = np.random.default_rng(0).standard_normal((30, 3))


WEIGHTS = np.random.default_rng(2).exponential(size=30)


def made(noise, fit_intercept, sample_weight=None):
    privacy = pv.LabelDP(1.0, 1e-6, (0.0, 2.0), mechanism="release")
    options = FitOptions(privacy, noise=noise, fit_intercept=fit_intercept)
    plan = plan_fit(X, options, sample_weight=sample_weight)
    y = np.random.default_rng(1).random(30)
    kept = plan.release(y, feature_names=("a", "b", "ü"), target="y").kept
    assert kept is not None
    return kept


@pytest.fixture(params=[True, False])
def kept(request):
    return made("power:0.5", request.param)


@pytest.fixture(params=[True, False])
def shrunk(request):
    return made("auto", request.param)


@pytest.mark.parametrize("fit_intercept", [True, False])
@pytest.mark.parametrize("noise", ["power:0.5", pv.Shaped(shrink=0.0), pv.Shaped()], ids=str)
def test_round_trip(noise, fit_intercept, tmp_path):
    kept = made(noise, fit_intercept)
    path = tmp_path / "release.json"
    pv.save_release(kept, path)
    back = pv.load_release(path)
    assert isinstance(back, KeptRelease)
    for name in ("b", "sigma", "column_squares"):
        assert np.array_equal(getattr(back, name), getattr(kept, name))
    for name in ("n_rows", "centre", "label_sum", "sigma_sum", "mu", "weight_sum", "guarantee",
                 "noise", "feature_names", "target", "software", "privacy"):  # fmt: skip
        assert getattr(back, name) == getattr(kept, name)
    np.testing.assert_array_equal(back.covariance.matrix(), kept.covariance.matrix())
    assert np.array_equal(back.open(X).solve(3.0).coef, kept.open(X).solve(3.0).coef)
    assert ((kept.weight_sum or 0.0) < 29.0) == (noise == pv.Shaped())


def test_correlated_noise_comes_back(kept, tmp_path):
    noise = Factored.from_matrix(np.eye(3) + 0.5)
    pv.save_release(replace(kept, covariance=noise), tmp_path / "release.json")
    back = pv.load_release(tmp_path / "release.json")
    assert isinstance(back, KeptRelease)
    np.testing.assert_array_equal(back.covariance.matrix(), noise.matrix())


def test_other_covariates_are_refused(kept):
    with pytest.raises(ValueError, match="has shape"):
        kept.open(X[:-1])
    with pytest.raises(ValueError, match="column 'b' has other values"):
        kept.open(X * [1.0, 1.001, 1.0])


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"format": "privasso-release"}, "not a kept release"),
        ({"version": 3}, "reads version 2"),
        ({"version": True}, "reads version 2"),
        ({"extra": 1}, "unknown field 'extra'"),
        ({"b": [1.0, 2.0]}, "b must be a list of 3 numbers"),
        ({"b": [1.0, 2.0, "x"]}, "must be a real number"),
        ({"covariance": {"form": "diagonal", "variances": [1, -2, 1]}}, "zero or positive"),
        ({"covariance": None}, "covariance must be an object"),
        ({"column_squares": None}, "column_squares must be a list"),
        ({"feature_names": ["a", "a", "b"]}, "a name twice"),
        ({"feature_names": []}, "list of 3 texts"),
        ({"n_rows": 0}, "n_rows must be an integer"),
        ({"n_rows": 1.5}, "n_rows must be an integer"),
        ({"mu": -0.1}, "mu must be zero or positive"),
        ({"mu": None}, "the sensitivity mu of the release"),
        ({"label_sum": 1.0, "sigma_sum": None}, "go together"),
        ({"guarantee": {}}, "lacks the field"),
        ({"noise": {}}, "lacks the field"),
        ({"n_features": 4}, "must be a list of 4 texts"),
        ({"target": 3}, "target must be text"),
        ({"target": "\ud800"}, "a lone surrogate"),
        ({"feature_names": ["a", "b", "\udfff"]}, "a lone surrogate"),
        ({"\ud800": 1}, "a lone surrogate"),
    ],
)
def test_anything_off_is_refused(kept, tmp_path, change, message):
    document = {**json.loads(release_text(kept)), **change}
    path = tmp_path / "release.json"
    path.write_text(json.dumps(document))
    with pytest.raises(DocumentError, match=message):
        pv.load_release(path)


def test_a_missing_field_and_what_is_no_object(kept, tmp_path):
    path = tmp_path / "release.json"
    for name in json.loads(release_text(kept)):
        document = json.loads(release_text(kept))
        del document[name]
        path.write_text(json.dumps(document))
        with pytest.raises(DocumentError):
            pv.load_release(path)
    for text in ("[]", "{", "nan", '{"b": NaN}'):
        path.write_text(text)
        with pytest.raises(DocumentError):
            pv.load_release(path)


def test_an_average_case_release_is_never_kept(kept, tmp_path):
    terms = Terms(fit_intercept=True, seeded=False, n_rows=80)
    guarantee = pv.OnAverage(1.0).guarantee(terms)
    with pytest.raises(ValueError, match="may not be kept"):
        replace(kept, guarantee=guarantee)
    path = tmp_path / "release.json"
    path.write_text(
        json.dumps({**json.loads(release_text(kept)), "guarantee": guarantee.to_dict()})
    )
    with pytest.raises(DocumentError, match="may not be kept"):
        pv.load_release(path)
    plan = plan_fit(X, FitOptions(pv.OnAverage(1.0), lam=1.0))
    assert plan.release(X[:, 0]).kept is None


def forged(kept, tmp_path, **change):
    document = json.loads(release_text(kept))
    parameters = {**document["guarantee"]["parameters"], **change.pop("parameters", {})}
    document["guarantee"]["parameters"] = parameters
    path = tmp_path / "forged.json"
    path.write_text(json.dumps({**document, **change}))
    return path


@pytest.mark.parametrize(
    "change",
    [
        {"mu": 0.25},
        {"mu": 1e300},
        {"mu": 1e-320},
        {"parameters": {"epsilon": 0.99}},
        {"parameters": {"epsilon": 1e-300}},
        {"parameters": {"delta": 0.9e-6}},
        {"parameters": {"delta": 1e-320}},
    ],
)
def test_a_statement_that_promises_more_than_its_sensitivity_is_refused(kept, tmp_path, change):
    with pytest.raises(DocumentError, match=r"small enough|epsilon and delta allow"):
        pv.load_release(forged(kept, tmp_path, **change))


def test_a_statement_that_promises_less_is_read(kept, tmp_path):
    back = pv.load_release(forged(kept, tmp_path, parameters={"epsilon": 1.1, "delta": 2e-6}))
    assert back.open(X).guarantee["epsilon"] == 1.1


@pytest.mark.parametrize("scale", [0.0, 0.5, 1 - 1e-5])
def test_noise_that_is_too_small_for_the_statement_is_refused(kept, tmp_path, scale):
    variances = (scale * kept.covariance.diagonal).tolist()
    covariance = {"form": "diagonal", "variances": variances}
    back = pv.load_release(forged(kept, tmp_path, covariance=covariance))
    with pytest.raises(ValueError, match="the release has been changed"):
        back.open(X)
    with pytest.raises(ValueError, match="the release has been changed"):
        pv.load_release(forged(kept, tmp_path, parameters={"y_high": 2.1})).open(X)
    if kept.sigma_sum is not None:
        small = pv.load_release(forged(kept, tmp_path, sigma_sum=0.5 * kept.sigma_sum))
        with pytest.raises(ValueError, match="the release has been changed"):
            small.open(X)


def test_the_sensitivity_is_computed_over_the_rows(kept):
    """Each column as before, but its entries in other rows: the norms cannot tell, the rows do."""
    with pytest.raises(ValueError, match="not the covariates of the fit"):
        kept.open(np.sort(X, axis=0))  # the largest entries meet in one row
    centred = X - X.mean(axis=0) if kept.fit_intercept else X
    squared = np.sum((centred / kept.sigma) ** 2, axis=1)
    squared += 0.0 if kept.sigma_sum is None else kept.sigma_sum**-2
    assert 2.0 * np.sqrt(squared.max()) == pytest.approx(kept.mu, rel=1e-7)
    kept.open(X[::-1])


def test_a_release_of_correlated_noise_is_checked_too(kept):
    whole = replace(kept, covariance=Factored.from_matrix(np.diag(kept.covariance.diagonal)))
    whole.open(X)
    with pytest.raises(ValueError, match="the release has been changed"):
        replace(whole, covariance=whole.covariance.scaled(0.9)).open(X)


def refused(release, X=X, **options):
    with pytest.raises(ValueError, match=r"the release has been changed|not the covariates"):
        release.open(X, **options)


def test_a_shrunk_release_whose_noise_was_changed_is_refused(shrunk, tmp_path):
    shrunk.open(X)
    for factor in (0.5, 1 - 1e-4, 1 + 1e-4, 2.0):
        refused(replace(shrunk, covariance=shrunk.covariance.scaled(factor)))
        refused(replace(shrunk, weight_sum=factor * shrunk.weight_sum))
        if shrunk.sigma_sum is not None:
            refused(replace(shrunk, sigma_sum=factor * shrunk.sigma_sum))
    thinner = shrunk.covariance.matrix()
    thinner[0, :] *= 0.9
    thinner[:, 0] *= 0.9
    refused(replace(shrunk, covariance=Factored.from_matrix(thinner)))
    refused(replace(shrunk, covariance=Factored.from_matrix(np.diag(np.diag(thinner)))))
    refused(pv.load_release(forged(shrunk, tmp_path, parameters={"y_high": 2.1})))
    refused(pv.load_release(forged(shrunk, tmp_path, weight_sum=30.0)))
    with pytest.raises(DocumentError, match="weight_sum"):
        pv.load_release(forged(shrunk, tmp_path, weight_sum=-1.0))


def test_a_shrunk_release_knows_its_rows_and_weights(shrunk):
    refused(shrunk, np.sort(X, axis=0))
    refused(shrunk, X * [1.0, 1.001, 1.0])
    refused(shrunk, sample_weight=WEIGHTS)
    shrunk.open(X[::-1])
    shrunk.open(X, sample_weight=np.full(30, 7.0))  # only ratios matter


@pytest.mark.parametrize("noise", ["power:0.5", pv.Shaped(shrink=0.0), pv.Shaped()], ids=str)
def test_a_weighted_release_asks_for_its_weights(noise):
    kept = made(noise, True, WEIGHTS)
    kept.open(X, sample_weight=3.0 * WEIGHTS)
    refused(kept)
    refused(kept, sample_weight=WEIGHTS[::-1])
    other = WEIGHTS.copy()
    other[4] *= 1.01
    refused(kept, sample_weight=other)
    with pytest.raises(ValueError, match="shape"):
        kept.open(X, sample_weight=WEIGHTS[:-1])


def test_no_row_of_a_shrunk_release_exceeds_the_sensitivity(shrunk):
    """The sizes of the rows by dense algebra, with the weights that a solve will use."""
    weights = shrunk.checked_weights(shrunk.open(X).rows)
    centred = X - X.mean(axis=0) if shrunk.fit_intercept else X
    squared = np.sum(centred * np.linalg.solve(shrunk.covariance.matrix(), centred.T).T, axis=1)
    squared += 0.0 if shrunk.sigma_sum is None else shrunk.sigma_sum**-2
    moved = 2.0 * weights * np.sqrt(squared)
    assert moved.max() == pytest.approx(shrunk.mu, rel=1e-7)
    assert np.sum(moved > shrunk.mu * (1 - 1e-7)) >= 0.75 * 30
    assert shrunk.weight_sum == pytest.approx(weights.sum(), rel=1e-7)


def test_one_large_row_among_many_is_noticed():
    rng = np.random.default_rng(0)
    F = rng.standard_normal((200_000, 2))
    F[7] = [300.0, -200.0]
    privacy = pv.LabelDP(1.0, 1e-6, (0.0, 2.0), mechanism="release")
    kept = plan_fit(F, FitOptions(privacy, noise="gram")).release(rng.random(200_000)).kept
    assert kept is not None
    kept.checked_weights(kept.open(F).rows)
    for factor in (0.98, 0.5):  # other rows are far below the bound
        refused(replace(kept, covariance=kept.covariance.scaled(factor)), F)
