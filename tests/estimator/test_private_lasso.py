"""The estimator: what it fits, what it keeps, what it says."""

import pickle
import traceback

import numpy as np
import pandas as pd
import pytest
import scipy.sparse as sp
from sklearn.base import clone
from sklearn.exceptions import NotFittedError
from sklearn.linear_model import Lasso
from sklearn.metrics import r2_score

import privasso as pv
from privasso.fit import FitOptions, Postprocess, plan_fit
from privasso.fit import _plan as inside
from privasso.operators import Covariates
from privasso.planning import release_labels
from privasso.programs import Release

WEAK = pv.LabelDP(epsilon=1e7, delta=0.5, y_bounds=(-50.0, 50.0))  # next to no noise
STRONG = pv.LabelDP(epsilon=1.0, delta=1e-6, y_bounds=(-3.0, 3.0))


def data(seed=0, m=400, n=12):
    rng = np.random.default_rng(seed)
    Z = rng.standard_normal((m, n))
    X = Z * np.logspace(-2, 2, n) + np.linspace(-5, 5, n)
    return X, Z[:, ::3].sum(axis=1) / 4 + 0.2 * rng.standard_normal(m) + 1.0


def wide(seed=0):
    s = pv.Model(alpha=0.5, scales=pv.LogNormal()).sample(120, rng=seed)
    return s.F, np.clip(s.y, -3, 3)


@pytest.mark.filterwarnings("ignore::privasso.PrivacyWarning")
@pytest.mark.parametrize("fit_intercept", [False, True])
@pytest.mark.parametrize("privacy", [WEAK, pv.OnAverage(0.0)], ids=["label-dp", "no noise"])
@pytest.mark.parametrize("storage", [np.asarray, np.asfortranarray, sp.csr_array, sp.csc_array])
def test_without_noise_it_is_the_lasso(fit_intercept, privacy, storage):
    X, y = data()
    X[:, 5] = 0.25  # constant
    options = {"lam": 20.0, "fit_intercept": fit_intercept, "denoise": False, "random_state": 0}
    est = pv.PrivateLasso(privacy=privacy, noise="power:0.5", **options).fit(storage(X), y)
    if privacy is WEAK and not fit_intercept:
        # a public shift of the labels must not change the estimator
        assert est.release_.centre == 0.0
        off = pv.LabelDP(1e7, 0.5, (-20.0, 80.0))
        other = pv.PrivateLasso(privacy=off, noise="power:0.5", **options).fit(storage(X), y)
        np.testing.assert_allclose(other.predict(X), est.predict(X), atol=0.05)
    oracle = Lasso(20.0 / len(y), fit_intercept=fit_intercept, tol=1e-12, max_iter=100_000)
    oracle.fit(X, y)
    loose = 0.05 if privacy is WEAK else 1e-6
    np.testing.assert_allclose(est.predict(X), oracle.predict(X), atol=loose)
    if privacy is not WEAK:
        np.testing.assert_allclose(est.coef_, oracle.coef_, atol=1e-6)
        assert est.intercept_ == pytest.approx(oracle.intercept_, abs=1e-6)


def test_on_average_is_the_papers_estimator():
    s = pv.Model(alpha=0.5).sample(100, rng=0)
    est = pv.PrivateLasso(0.2, pv.OnAverage(0.05), "gram", fit_intercept=False, random_state=3).fit(
        s.F, s.y
    )
    v, nothing = np.sum(s.F**2, axis=0), np.zeros(50)  # labels of zero leave the noise alone
    privacy, shape = pv.OnAverage(0.05), pv.Gram(1.0)
    noise = release_labels(s.F, nothing, privacy, shape, fit_intercept=False, rng=3)
    eta = -noise.b
    np.testing.assert_allclose(noise.sigma**2, pv.Gram(0.05).variances(v))
    np.testing.assert_allclose(est.coef_, pv.solve(s.F, s.y, 0.2, eta).x, atol=1e-7)
    assert est.noise_.sigma == pytest.approx(0.05)
    assert not hasattr(est, "release_")
    for call in (lambda: est.refit(s.F, 1.0), lambda: est.path(s.F, [1.0])):
        with pytest.raises(ValueError, match="OnAverage does not cover"):
            call()


@pytest.mark.filterwarnings("ignore::privasso.PrivacyWarning")
def test_noise_names():
    X, y = data()

    def gamma(noise, privacy):
        est = pv.PrivateLasso(1e4, privacy, noise).fit(X, y)
        sigma = est.noise_
        assert isinstance(sigma, pv.PowerLaw)
        return sigma.gamma

    assert gamma("auto", pv.OnAverage(0.1)) == 1.0
    assert gamma("isotropic", STRONG) == 0.0
    assert gamma("gram", STRONG) == 2.0
    assert gamma("power:1.25", STRONG) == 1.25
    assert gamma(pv.PowerLaw(7.0, 0.75), STRONG) == 0.75
    for noise in ("auto", "shaped", pv.Shaped(sigma=7.0)):
        est = pv.PrivateLasso(1e4, STRONG, noise).fit(X, y)
        assert isinstance(est.noise_, pv.Shaped)
        assert est.noise_.shrink == (0.5 if noise == "auto" else 0.75)
        assert est.noise_.sigma**2 == pytest.approx(np.mean(est.release_.sigma**2))
    half = pv.PrivateLasso(1e4, STRONG, pv.Shaped(shrink=0.5)).fit(X, y)
    assert isinstance(half.noise_, pv.Shaped)
    assert half.noise_.shrink == 0.5
    with pytest.raises(ValueError, match="would reveal them, and OnAverage"):
        pv.PrivateLasso(1e4, pv.OnAverage(0.1), "shaped").fit(X, y)
    with pytest.raises(ValueError, match="takes no scales"):
        pv.PrivateLasso(1e4, STRONG, scales=np.ones(12)).fit(X, y)


@pytest.mark.parametrize("fit_intercept", [False, True])
def test_solver_and_path_need_only_the_release_and_the_covariates(fit_intercept):
    X, y = wide()
    est = pv.PrivateLasso(
        500.0, STRONG, "power:0.5", fit_intercept=fit_intercept, denoise=False
    ).fit(X, y)
    kept = est.release_
    by_hand = Release(
        b=kept.b.copy(),
        covariance=kept.covariance,
        n_rows=X.shape[0],
        centre=kept.centre,
        label_sum=kept.label_sum,
        sigma_sum=kept.sigma_sum,
    )
    del y, kept
    post = Postprocess(by_hand, Covariates(X, centre=fit_intercept))
    coef, intercept = post.solve(500.0)
    np.testing.assert_array_equal(coef, est.coef_)
    assert intercept == est.intercept_
    lams = np.array([900.0, 500.0, 300.0])
    path = post.path(lams)
    again = est.path(X, lams)
    np.testing.assert_array_equal(path.coef, again.coef)
    np.testing.assert_allclose(path.coef[:, 1], est.coef_, rtol=1e-6, atol=1e-9)
    assert path.intercept[1] == pytest.approx(est.intercept_, rel=1e-6)
    sparse = est.path(sp.csr_array(X), lams)
    np.testing.assert_allclose(sparse.coef, path.coef, rtol=1e-5, atol=1e-8)
    rows = X - X.mean(axis=0) if fit_intercept else X
    for lam, x in zip(lams, path.coef.T, strict=True):
        correlation = by_hand.b - rows.T @ (rows @ x)
        assert np.max(np.abs(correlation)) <= lam * (1 + 1e-6)
        np.testing.assert_allclose(correlation[x != 0], lam * np.sign(x[x != 0]), rtol=1e-6)


def test_an_unbounded_release_is_kept_and_refit_is_free():
    X, y = wide()
    est = pv.PrivateLasso(1e-3, STRONG, "power:0.5", denoise=False, random_state=0)
    with pytest.raises(pv.UnboundedError, match="budget of this fit is spent") as caught:
        est.fit(X, y)
    message = str(caught.value)
    assert "release_" in message
    assert "refit(X, lam)" in message
    needed = float(message.split("above ")[1].rstrip(".").split()[0])
    release = est.release_
    assert not hasattr(est, "coef_")
    with pytest.raises(NotFittedError):
        est.predict(X)
    # The named λ is the edge: it works just above and fails just below.
    est.refit(X, 1.01 * needed)
    assert est.release_ is release
    assert np.isfinite(est.predict(X)).all()
    assert est.lam_ == 1.01 * needed
    with pytest.raises(pv.UnboundedError):
        est.refit(X, 0.99 * needed)
    path = est.path(X, [0.9 * needed, 1.1 * needed])
    assert [s.name for s in path.status] == ["UNBOUNDED", "CONVERGED"]
    assert np.isnan(path.coef[:, 0]).all()
    assert np.isfinite(path.coef[:, 1]).all()


def test_a_problem_too_large_for_the_programme_names_a_bound(monkeypatch):
    X, y = wide()
    est = pv.PrivateLasso(1e-3, STRONG, "power:0.5", denoise=False, random_state=0)
    monkeypatch.setattr("privasso.fit._postprocess.LP_LIMIT", 0.0)
    with pytest.raises(pv.UnboundedError, match="lam must be well above") as caught:
        est.fit(X, y)
    bound = float(str(caught.value).split("well above ")[1].rstrip("."))
    monkeypatch.undo()
    critical = pv.critical_lambda(X - X.mean(axis=0), est.release_.b)
    assert 1e-3 < bound <= critical * (1 + 1e-6)


@pytest.mark.parametrize("denoise", [False, True])
def test_any_failure_after_the_draw_says_that_the_budget_is_spent(monkeypatch, denoise):
    X, y = data()

    def gives_up(*args, **kwargs):
        raise RuntimeError("the linear programme failed")

    for road in (
        "_postprocess.solve_problem",
        "_postprocess.solve_problems",
        "_denoised.GramLasso",
    ):
        monkeypatch.setattr(f"privasso.fit.{road}", gives_up)
    est = pv.PrivateLasso(1.0, STRONG, denoise=denoise)
    with pytest.raises(RuntimeError, match=r"budget of this fit is spent.*programme failed\.$"):
        est.fit(X, y)
    monkeypatch.undo()
    assert np.isfinite(est.refit(X, 1.0).coef_).all()


def test_an_unbounded_average_case_fit_keeps_nothing():
    X, y = wide()
    est = pv.PrivateLasso(1e-6, pv.OnAverage(1.0), random_state=0)
    with pytest.raises(pv.UnboundedError, match="has been drawn, and nothing of it is kept"):
        est.fit(X, y)
    assert not hasattr(est, "release_")


@pytest.mark.filterwarnings("ignore::privasso.PrivacyWarning")
def test_entropy_and_seeds():
    X, y = data()
    fits = [pv.PrivateLasso(1.0, STRONG).fit(X, y) for _ in range(2)]
    assert np.all(fits[0].release_.b != fits[1].release_.b)
    assert fits[0].guarantee_.for_release
    for state in (5, np.random.RandomState(5), np.random.default_rng(5)):
        fixed = pv.PrivateLasso(1.0, STRONG, random_state=state).fit(X, y)
        assert not fixed.guarantee_.for_release
        assert "NOT FOR RELEASE" in str(fixed.guarantee_)
    a, b = (pv.PrivateLasso(1.0, STRONG, random_state=5).fit(X, y) for _ in range(2))
    np.testing.assert_array_equal(a.coef_, b.coef_)


def test_a_fit_draws_once(monkeypatch):
    X, y = data()
    calls = []
    real = inside.Answering
    monkeypatch.setattr(inside, "Answering", lambda *a: (calls.append(1), real(*a))[1])
    est = pv.PrivateLasso("auto", STRONG).fit(X, y)
    est.refit(X, 5.0)
    est.path(X, [1.0, 2.0])
    assert len(calls) == 1


def test_bad_settings_are_refused_before_any_noise_is_drawn(monkeypatch):
    X, y = data()
    monkeypatch.setattr(inside, "Answering", lambda *a: pytest.fail("noise drawn"))
    for change, message in [
        ({"lam": 0.0}, "lam must be positive"),
        ({"lam": "best"}, "lam must be a positive number or 'auto'"),
        ({"lam": "auto", "privacy": pv.OnAverage(1.0)}, "OnAverage does not cover"),
        ({"noise": "round"}, "noise must be a noise design or one of"),
        ({"noise": "power:x"}, "needs 1 number after the colon"),
        ({"method": "amp-paper"}, "method must be one of auto, amp, cd"),
        ({"tol": 0.0}, "tol must be positive"),
        ({"model": 3}, "model must be a Model"),
        ({"random_state": "x"}, "rng must be"),
    ]:
        with pytest.raises(ValueError, match=message):
            pv.PrivateLasso(**({"privacy": STRONG} | change)).fit(X, y)


def arrays_within(value, seen=None):
    """Every array reachable from an object."""
    seen = set() if seen is None else seen
    if id(value) in seen:
        return
    seen.add(id(value))
    if isinstance(value, np.ndarray):
        yield value
    elif isinstance(value, dict):
        for item in value.values():
            yield from arrays_within(item, seen)
    elif isinstance(value, (list, tuple, set)):
        for item in value:
            yield from arrays_within(item, seen)
    elif hasattr(value, "__dict__"):
        yield from arrays_within(vars(value), seen)


@pytest.mark.parametrize("privacy", [STRONG, pv.OnAverage(5.0)], ids=["label-dp", "average"])
def test_nothing_secret_is_kept(privacy):
    X, y = data()
    lam = 1e3
    est = pv.PrivateLasso(lam, privacy, random_state=9).fit(X, y)
    labels = np.clip(y, -3, 3) if privacy is STRONG else y
    rows = X - X.mean(axis=0)
    secrets = {"y": y, "clipped": labels, "residual": y - est.predict(X), "X": X.ravel()}
    if privacy is STRONG:
        secrets["eta"] = rows.T @ labels - est.release_.b
    secrets["exact product"] = rows.T @ labels
    # Norms of the public columns are kept, to know them again; other products are not.
    secrets["Gram"] = (rows.T @ rows)[np.triu_indices(rows.shape[1], 1)]
    objective = 0.5 * np.sum((y - est.predict(X)) ** 2) + lam * np.abs(est.coef_).sum()
    assert set(vars(est)) - set(est.get_params()) <= {
        "coef_", "coef_se_", "intercept_", "guarantee_", "lam_", "denoised_", "noise_",
        "release_", "n_features_in_",
    }  # fmt: skip
    found = list(arrays_within(est))
    assert found
    for name, secret in secrets.items():
        for array in found:
            flat = np.asarray(array, dtype=float).ravel()
            for sign in (1, -1):
                assert flat.size != secret.size or not np.allclose(sign * flat, secret), name
    dump = pickle.dumps(est)
    for secret in [*secrets.values(), np.array([objective])]:
        for part in (secret[0], secret[-1]):
            assert np.float64(part).tobytes() not in dump
    assert "array" not in repr(est)
    assert pickle.loads(dump).predict(X).tolist() == est.predict(X).tolist()


def test_clone_and_wrong_covariates():
    X, y = data()
    est = pv.PrivateLasso(1.0, STRONG)
    assert str(clone(est)) == str(est)
    with pytest.raises(NotFittedError, match="call fit before path"):
        est.path(X, [1.0])
    est.fit(X, y)
    with pytest.raises(ValueError, match="pass the covariates of the fit"):
        est.refit(X[:10], 1.0)


def test_a_failed_fit_leaves_nothing_of_the_fit_before():
    X, y = data()
    est = pv.PrivateLasso(1.0, STRONG).fit(X, y)
    with pytest.raises(ValueError, match="NaN"):
        est.fit(np.full_like(X, np.nan), y)
    assert not hasattr(est, "coef_")
    assert not hasattr(est, "release_")


SECRET = ["0.5"] * 7 + ["HIV-positive"] + ["0.25"] * 392
BAD_LABELS = {
    "text": SECRET,
    "array of text": np.array(SECRET),
    "objects": np.array(SECRET, dtype=object),
    "bytes": np.array(SECRET, dtype="S"),
    "numbers as text": ["1.5"] * 400,
    "frame": pd.DataFrame({"status": SECRET}),
    "categories": pd.Series(SECRET, dtype="category"),
    "dates": np.full(400, np.datetime64("2020-01-17")),
    "complex": np.full(400, 1.5 + 1j),
    "two columns": np.zeros((400, 2)),
    "ragged": [[1.0], [2.0, 3.0]] * 200,
}
#: What one label may hold, with the number in [−2, 2] that it counts as.
ODD_LABELS = {
    "none": ([None], 0.0),
    "missing": (pd.Series([pd.NA], dtype="Float64"), 0.0),
    "nan": (np.array([np.nan]), 0.0),
    "infinity": (np.array([np.inf]), 2.0),
    "minus infinity": (np.array([-np.inf]), -2.0),
    "too large": ([10**400], 2.0),
    "far too small": ([-(10**400)], -2.0),
}


@pytest.mark.filterwarnings("ignore::sklearn.exceptions.DataConversionWarning")
@pytest.mark.parametrize("labels", BAD_LABELS)
@pytest.mark.parametrize("privacy", [STRONG, pv.OnAverage(0.1)], ids=["label-dp", "average"])
def test_bad_labels_are_refused_without_saying_which(labels, privacy, monkeypatch):
    X, y = data()
    fitted = pv.PrivateLasso(100.0, privacy).fit(X, y)
    monkeypatch.setattr(inside, "Answering", lambda *a: pytest.fail("noise drawn"))
    for call in (pv.PrivateLasso(100.0, privacy).fit, fitted.score):
        refused(lambda call=call: call(X, BAD_LABELS[labels]))


def refused(call):
    with pytest.raises(ValueError, match="the labels must be one column of finite") as caught:
        call()
    shown = "".join(traceback.format_exception(caught.value))
    assert "HIV" not in shown
    assert "During handling" not in shown
    assert caught.value.__context__ is None
    assert caught.value.__cause__ is None


@pytest.mark.filterwarnings("ignore::privasso.PrivacyWarning")
@pytest.mark.parametrize("label", ODD_LABELS)
@pytest.mark.parametrize("screen", [None, 2])
def test_a_label_is_no_reason_to_refuse_a_formal_fit(label, screen):
    """A missing one counts as the middle of its bounds, an infinite one as a bound."""
    X, y = data()
    odd, number = ODD_LABELS[label]
    changed = pd.Series([*y[:399].tolist(), *odd], dtype=getattr(odd, "dtype", object))
    privacy = pv.LabelDP(3.0, 1e-6, (-2.0, 2.0))
    one, two = (
        pv.PrivateLasso(5.0, privacy, random_state=0, screen=screen).fit(X, labels)
        for labels in (changed, np.append(y[:399], number))
    )
    assert one.coef_.tolist() == two.coef_.tolist()
    assert one.intercept_ == two.intercept_
    if screen is None:  # without a guarantee a refusal tells nothing that is protected
        refused(lambda: pv.PrivateLasso(5.0, pv.OnAverage(0.1)).fit(X, changed))
    refused(lambda: one.score(X, changed))


def test_labels_of_another_length_or_none():
    X, y = data()
    with pytest.raises(ValueError, match="one label for each of the 400 rows, not 399"):
        pv.PrivateLasso(1.0, STRONG).fit(X, y[:-1])
    with pytest.raises(ValueError, match="requires y to be passed"):
        pv.PrivateLasso(1.0, STRONG).fit(X, None)


def test_score_is_that_of_scikit_learn_and_says_that_it_is_not_private():
    X, y = data()
    est = pv.PrivateLasso(20.0, WEAK, random_state=0).fit(X, y)
    assert est.score(X, y) == r2_score(y, est.predict(X))
    weights = np.arange(1.0, 401.0)
    assert est.score(X, y, weights) == r2_score(y, est.predict(X), sample_weight=weights)
    assert "not private" in (pv.PrivateLasso.score.__doc__ or "")


def test_names_that_could_not_be_saved_are_refused_before_paying(monkeypatch):
    monkeypatch.setattr(inside, "Answering", lambda *a: pytest.fail("noise drawn"))
    X, y = data()
    frame = pd.DataFrame(X[:, :2], columns=pd.Index(["a", "b\ud800"], dtype=object))
    with pytest.raises(ValueError, match="half a character"):
        pv.PrivateLasso(1.0, STRONG).fit(frame, y)
    plan = plan_fit(X[:, :2], FitOptions(STRONG))
    with pytest.raises(ValueError, match="two columns have the name 'a'"):
        plan.release(y, feature_names=("a", "a"))
