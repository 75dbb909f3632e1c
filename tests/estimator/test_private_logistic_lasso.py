"""The classifier: the contract of scikit-learn, what it keeps, what it says, what it refuses."""

import json
import pickle
import traceback
import warnings

import numpy as np
import pandas as pd
import pytest
import scipy.sparse as sp
from scipy.special import expit
from sklearn.exceptions import NotFittedError
from sklearn.metrics import roc_auc_score
from sklearn.pipeline import make_pipeline
from sklearn.utils.estimator_checks import parametrize_with_checks

import privasso as pv
from privasso.artefact import DocumentError
from privasso.fit import Classes

STRONG = pv.LabelDP(epsilon=1.0, delta=1e-6, y_bounds=(0, 1))
NOT_REFUSED = (
    "the guarantee covers each cell, and a refusal would tell what one of them is: a missing cell "
    "counts as the middle of its bounds in a fit, and an infinite one as a bound"
)
RECORDS = pv.RecordDP(2.0, 1e-6, bounds=[(-4, 4)] * 4, y_bounds=(0, 1))


def data(m=1500, seed=0):
    rng = np.random.default_rng(seed)
    X = rng.standard_normal((m, 4))
    odds = 1.5 * X[:, 0] - X[:, 2] + 0.5
    return X, (rng.random(m) < expit(odds)).astype(int)


def deliberate(estimator):
    """Checks that fail on purpose, each with its reason."""
    if estimator.privacy.public_covariates:
        return {}
    return {"check_estimators_nan_inf": "a refusal of what one private record holds would tell it"}


@pytest.mark.filterwarnings("ignore::privasso.PrivacyWarning")  # the checks fit many times
@parametrize_with_checks(
    [
        pv.PrivateLogisticLasso(
            lam=0.1,
            privacy=pv.LabelDP(1e5, 0.1, (0, 1)),
            classes="observed",
            random_state=0,
        ),
        pv.PrivateLogisticLasso(
            lam=0.01,
            privacy=pv.RecordDP(50.0, 0.1, "private", (0, 1), scales="private"),
            classes="observed",
            random_state=0,
        ),
    ],
    expected_failed_checks=deliberate,
)
def test_sklearn_check(estimator, check):
    if "array_api" not in str(check):
        check(estimator)


@pytest.mark.filterwarnings("ignore::privasso.PrivacyWarning")
@pytest.mark.parametrize("privacy", [STRONG, RECORDS], ids=["labels", "records"])
def test_it_predicts(privacy):
    X, y = data()
    new, truth = data(seed=1)
    est = pv.PrivateLogisticLasso(privacy=privacy, random_state=0).fit(X, y)
    assert roc_auc_score(truth, est.decision_function(new)) > 0.8  # 0.83 without privacy
    p = est.predict_proba(new)
    np.testing.assert_allclose(p.sum(axis=1), 1.0)
    np.testing.assert_allclose(p[:, 1], expit(new @ est.coef_[0] + est.intercept_[0]))
    np.testing.assert_array_equal(est.predict(new), (p[:, 1] > 0.5).astype(int))
    assert est.coef_.shape == (1, 4)
    assert est.classes_.tolist() == [0, 1]
    assert not est.guarantee_.for_release  # a fixed seed
    assert hasattr(est, "coef_se_") == hasattr(est, "release_") == (privacy is STRONG)


def test_errors_cover_the_coefficients():
    X, y = data(m=20_000)
    est = pv.PrivateLogisticLasso(privacy=STRONG, random_state=3).fit(X, y)
    off = np.abs(est.coef_[0] - [1.5, 0.0, -1.0, 0.0]) / est.coef_se_[0]
    assert np.nanmax(off) < 4.0


@pytest.mark.filterwarnings("ignore::privasso.PrivacyWarning")
def test_names_and_order_of_classes():
    X, y = data()
    options = {"privacy": STRONG, "random_state": 0}
    words = np.where(y == 1, "sick", "well")
    coded = pv.PrivateLogisticLasso(**options).fit(X, y)
    named = pv.PrivateLogisticLasso(classes=("well", "sick"), **options).fit(X, words)
    assert named.coef_.tolist() == coded.coef_.tolist()
    assert set(named.predict(X)) == {"well", "sick"}
    assert named.score(X, words) == coded.score(X, y) > 0.7
    true = pv.PrivateLogisticLasso(**options).fit(X, y == 1)  # True is 1
    assert true.coef_.tolist() == coded.coef_.tolist()
    seen = pv.PrivateLogisticLasso(classes="observed", **options).fit(X, words)
    assert seen.classes_.tolist() == ["sick", "well"]
    assert any("taken from the labels" in s for s in seen.guarantee_.assumptions)
    assert not any("taken from the labels" in s for s in named.guarantee_.assumptions)


def test_labels_of_another_type_are_refused_and_not_shown():
    X, y = data(m=30)
    for labels, classes in (
        (np.where(y == 1, "secret", "no"), (0, 1)),
        (np.linspace(0.123456, 1.0, 30), "observed"),
        (np.array(["secret", "no", "yes"] * 10), "observed"),
    ):
        with pytest.raises(ValueError, match=r"labels|label type") as caught:
            pv.PrivateLogisticLasso(privacy=STRONG, classes=classes).fit(X, labels)
        shown = "".join(traceback.format_exception(caught.value))
        assert "0.123456" not in shown
        assert "secret" not in shown


@pytest.mark.filterwarnings("ignore::privasso.PrivacyWarning")
@pytest.mark.parametrize("privacy", [STRONG, RECORDS], ids=["labels", "records"])
def test_a_label_of_neither_class_is_a_missing_one(privacy):
    X, y = data(m=300)
    options = {"privacy": privacy, "random_state": 0}
    found = {}
    for odd in (np.nan, 7.0, np.inf, -0.5, None, 0.0, 1.0):
        labels = np.append(y[1:], 0).astype(object)
        labels[-1] = odd
        found[odd] = pv.PrivateLogisticLasso(**options).fit(X, labels).coef_.tolist()
        if odd is None or np.isnan(odd):
            seen = pv.PrivateLogisticLasso(**options, classes="observed").fit(X, labels)
            assert seen.coef_.tolist() == found[odd]
    missing = found.pop(None)
    assert all(found[odd] == missing for odd in found if odd not in (0.0, 1.0))
    assert found[0.0] != missing != found[1.0]
    words = np.array(["well", "sick"], dtype=object)[y]
    words[5], same = "unknown", words.copy()
    same[5] = None
    one, two = (
        pv.PrivateLogisticLasso(**options, classes=("well", "sick")).fit(X, labels)
        for labels in (words, same)
    )
    assert one.coef_.tolist() == two.coef_.tolist()
    if privacy is RECORDS:  # whose record is an empty one
        moved = np.vstack([X[:-1], np.full(4, np.inf)])
        labels = np.append(y[1:].astype(float), np.nan)
        other = pv.PrivateLogisticLasso(**options).fit(moved, labels)
        assert other.coef_.tolist() == missing


@pytest.mark.filterwarnings("ignore::privasso.PrivacyWarning")
def test_refit_and_path_need_no_labels():
    X, y = data()
    est = pv.PrivateLogisticLasso(lam=5.0, privacy=STRONG).fit(X, y)
    first = est.coef_.copy()
    path = est.path(X, [5.0, 200.0])
    np.testing.assert_allclose(path.coef[:, 0], first[0], atol=1e-6)
    assert np.count_nonzero(est.refit(X, 200.0).coef_) <= np.count_nonzero(first)
    assert est.lam_ == 200.0
    np.testing.assert_allclose(est.refit(X, 5.0).coef_, first, atol=1e-9)
    with pytest.raises(ValueError, match="not the covariates"):
        est.refit(2.0 * X)
    with pytest.raises(NotFittedError, match="call fit before refit"):
        pv.PrivateLogisticLasso(privacy=STRONG).refit(X)


def test_sparse_covariates():
    X, y = data()
    X[np.abs(X) < 0.5] = 0.0
    options = {"lam": 5.0, "privacy": STRONG, "random_state": 0}
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", pv.PrivacyWarning)
        # Another storage rounds the whitened rows differently, so compare the solves of a release.
        kept = pv.PrivateLogisticLasso(**options).fit(X, y).release_
    dense, sparse = (
        kept.open(storage(X), classes=Classes()).solve(5.0)
        for storage in (np.asarray, sp.csr_array)
    )
    np.testing.assert_allclose(sparse.coef, dense.coef, rtol=1e-5)
    assert sparse.intercept == pytest.approx(dense.intercept, rel=1e-5)


def test_it_keeps_neither_labels_nor_noise():
    rng = np.random.default_rng(0)
    X, y = data(m=500)
    for privacy in (STRONG, RECORDS):
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", pv.PrivacyWarning)
            est = pv.PrivateLogisticLasso(privacy=privacy, random_state=rng).fit(X, y)
        est.random_state = None
        sizes = [v.size for v in vars(est).values() if isinstance(v, np.ndarray)]
        assert max(sizes) < 500
        assert len(pickle.dumps(est)) < 20_000
        again = pickle.loads(pickle.dumps(est))
        assert again.predict(X).tolist() == est.predict(X).tolist()


@pytest.mark.filterwarnings("ignore::privasso.PrivacyWarning")
def test_models_of_a_frame_are_saved_with_their_classes(tmp_path):
    X, y = data()
    frame = pd.DataFrame(X, columns=pd.Index(["age", "dose", "weight", "pulse"]))
    labels = np.where(y == 1, "yes", "no")
    est = pv.PrivateLogisticLasso(privacy=STRONG, classes=("no", "yes")).fit(frame, labels)
    path = tmp_path / "model.json"
    pv.save(est, path)
    model = pv.load(path)
    assert model.classes == ("no", "yes")
    assert model.predict(frame).tolist() == est.predict(frame).tolist()
    # Columns whose coefficients are zero are left out of one of the sums.
    np.testing.assert_allclose(model.predict_proba(frame), est.predict_proba(frame), rtol=1e-13)
    document = json.loads(path.read_text(encoding="utf-8"))
    for wrong in (["a"], ["a", "a"], [None, 1], "ab", {}):
        path.write_text(json.dumps({**document, "classes": wrong}), encoding="utf-8")
        with pytest.raises(DocumentError, match="classes must be two different"):
            pv.load(path)
    numbers = pv.PrivateLogisticLasso(privacy=STRONG).fit(frame, y)
    pv.save(numbers, path)
    assert pv.load(path).classes == (0, 1)
    linear = pv.PrivateLasso(privacy=STRONG).fit(frame, y)
    with pytest.raises(ValueError, match="linear and gives no probabilities"):
        linear.released_model().predict_proba(frame)


@pytest.mark.filterwarnings("ignore::privasso.PrivacyWarning")
def test_a_pipeline_with_a_table_is_saved(tmp_path):
    X, y = data(m=300)
    frame = pd.DataFrame({"age": X[:, 0], "group": np.where(X[:, 1] > 0, "a", "b")})
    fitted = make_pipeline(pv.TableEncoder(), pv.PrivateLogisticLasso(privacy=STRONG)).fit(frame, y)
    pv.save(fitted, tmp_path / "model.json")
    model = pv.load(tmp_path / "model.json")
    np.testing.assert_allclose(model.predict_proba(frame), fitted.predict_proba(frame))


def test_a_kept_release_of_labels_serves_logistic_models():
    X, y = data(m=300)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", pv.PrivacyWarning)
        est = pv.PrivateLogisticLasso(lam=3.0, privacy=STRONG).fit(X, y)
        wide = pv.LabelDP(1.0, 1e-6, (0, 2))
        other = pv.PrivateLasso(3.0, wide).fit(X, y)
    model = est.release_.open(X, classes=Classes()).solve(3.0)
    assert model.coef.tolist() == est.coef_[0].tolist()
    with pytest.raises(ValueError, match="so their bounds are 0 and 1"):
        other.release_.open(X, classes=Classes())
    with pytest.raises(ValueError, match="no sample_weight"):
        est.release_.open(X, classes=Classes(), sample_weight=np.ones(300))


def test_a_ledger_is_charged_and_a_second_fit_warns():
    X, y = data(m=300, seed=7)
    ledger = pv.Ledger(1.2, 1e-6)
    pv.PrivateLogisticLasso(privacy=STRONG, ledger=ledger).fit(X, y)
    with pytest.raises(pv.BudgetError):
        pv.PrivateLogisticLasso(privacy=STRONG, ledger=ledger).fit(X, y)
    pv.PrivateLogisticLasso(privacy=STRONG).fit(X, y)
    with pytest.warns(pv.PrivacyWarning, match="released 2 times"):
        pv.PrivateLogisticLasso(privacy=STRONG).fit(X, y)
    with pytest.warns(pv.PrivacyWarning, match="NOT FOR RELEASE"):
        pv.PrivateLogisticLasso(privacy=pv.LabelDP(30.0, 1e-6, (0, 1))).fit(X[:299], y[:299])


@pytest.mark.parametrize(
    ("privacy", "message"),
    [
        (None, "privacy must say what to protect"),
        (pv.OnAverage(0.1), "OnAverage is not for labels of two classes"),
        (pv.LabelDP(1.0, 1e-6, (0, 5)), "so their bounds are 0 and 1"),
        (pv.LabelDP(1.0, 1e-6, (0, 1), mechanism="objective"), "needs the same noise"),
    ],
)
def test_privacy_that_does_not_fit(privacy, message):
    X, y = data(m=20)
    with pytest.raises(ValueError, match=message):
        pv.PrivateLogisticLasso(privacy=privacy).fit(X, y)


def test_too_many_columns_are_refused_before_the_labels_are_read():
    X = np.random.default_rng(0).standard_normal((3, 2049))
    with pytest.raises(ValueError, match="at most 2048 columns"):
        pv.PrivateLogisticLasso(privacy=STRONG).fit(X, [0, 1, 1])
