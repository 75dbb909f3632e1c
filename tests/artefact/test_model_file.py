"""The release artefact: whole, faithful, and refused when anything is off."""

import json
import os

import numpy as np
import polars as pl
import pytest
import scipy.sparse as sp

import privasso as pv
from privasso.artefact import DocumentError, _model_file

PRIVACY = pv.LabelDP(5.0, 1e-5, (-2.0, 2.0))


@pytest.fixture(scope="module")
def fitted():
    rng = np.random.default_rng(0)
    X = rng.standard_normal((500, 6)) * np.logspace(-2, 2, 6)
    est = pv.PrivateLasso(60.0, PRIVACY, random_state=1).fit(X, np.clip(X[:, 2], -2, 2))
    assert 0 < np.count_nonzero(est.coef_) < 6
    return est, X


@pytest.fixture
def path(tmp_path, fitted):
    target = tmp_path / "model.json"
    pv.save(fitted[0], target)
    return target


def test_round_trip(path, fitted):
    est, X = fitted
    model = pv.load(path)
    assert model.predict(X).tolist() == est.predict(X).tolist()
    np.testing.assert_allclose(model.predict(sp.csr_array(X)), est.predict(X), rtol=1e-12)
    assert model.guarantee == est.guarantee_
    assert not model.guarantee.for_release
    assert (model.lam, model.software, model.feature_names) == (60.0, pv.__version__, None)
    assert model.noise == est.noise_
    assert isinstance(model.noise, pv.Shaped)
    assert model.denoised == est.denoised_ == True  # noqa: E712
    again = path.with_name("again.json")
    pv.save(model, again)
    assert again.read_bytes() == path.read_bytes()
    assert sorted(p.name for p in path.parent.iterdir()) == ["again.json", "model.json"]


def test_it_holds_nothing_but_the_published(path, fitted):
    document = json.loads(path.read_text(encoding="utf-8"))
    assert set(document) == {
        "format", "version", "software", "n_features", "feature_names", "coef", "intercept",
        "lam", "denoised", "noise", "guarantee",
    }  # fmt: skip
    assert len(document["coef"]["value"]) == np.count_nonzero(fitted[0].coef_)


def test_names(tmp_path):
    rng = np.random.default_rng(0)
    frame = pl.DataFrame(rng.standard_normal((80, 3)), schema=["age", "dose", "größe"])
    est = pv.PrivateLasso(1e-3, pv.OnAverage(0.01), random_state=0)
    est.fit(frame.to_numpy(), frame["age"].to_numpy())
    est.feature_names_in_ = np.array(frame.columns, dtype=object)  # pyright: ignore[reportAttributeAccessIssue]
    pv.save(est, tmp_path / "m.json")
    model = pv.load(tmp_path / "m.json")
    assert model.feature_names == ("age", "dose", "größe")
    shuffled = frame.select("größe", "age", "dose")
    # One of the sums leaves out columns whose coefficients are zero.
    np.testing.assert_allclose(
        model.predict(shuffled), model.predict(frame.to_numpy()), rtol=1e-12, atol=1e-14
    )
    with pytest.raises(ValueError, match="lacks the column 'dose'"):
        model.predict(frame.drop("dose"))
    with pytest.raises(ValueError, match="X must have 3 columns, not 2"):
        model.predict(frame.to_numpy()[:, :2])


def test_an_interrupted_write_leaves_the_old_file(path, fitted, monkeypatch):
    before = path.read_bytes()

    def interrupted(descriptor):
        raise OSError("disk full")

    monkeypatch.setattr(os, "fsync", interrupted)
    with pytest.raises(OSError, match="disk full"):
        pv.save(fitted[0], path)
    assert path.read_bytes() == before
    assert [p.name for p in path.parent.iterdir()] == ["model.json"]


def test_what_cannot_be_saved(tmp_path):
    with pytest.raises(ValueError, match="only a fitted PrivateLasso"):
        pv.save(3, tmp_path / "m.json")  # pyright: ignore[reportArgumentType]
    with pytest.raises(ValueError, match="not fitted"):
        pv.save(pv.PrivateLasso(), tmp_path / "m.json")
    assert list(tmp_path.iterdir()) == []


def changed(**fields):
    return lambda d: d | fields


def without(name):
    return lambda d: {k: v for k, v in d.items() if k != name}


CORRUPT = {
    "a list": (lambda d: [d], "no JSON object"),
    "format": (changed(format="other"), "not a model"),
    "no format": (without("format"), "not a model"),
    "version 3": (changed(version=3), "has version 3"),
    "former version": (changed(version=1), "use the version of privasso that wrote it"),
    "version true": (changed(version=True), "has version True"),
    "no version": (without("version"), "has version None"),
    "missing": (without("intercept"), "lacks the field 'intercept'"),
    "unknown": (changed(extra=1), "unknown field 'extra'"),
    "n_features 0": (changed(n_features=0), "n_features must be an integer from 1"),
    "n_features huge": (changed(n_features=10**12), "n_features must be an integer"),
    "n_features float": (changed(n_features=6.0), "n_features must be an integer"),
    "intercept nan": (changed(intercept=float("nan")), "the file holds NaN"),
    "intercept inf": (changed(intercept=float("-inf")), "the file holds -Infinity"),
    "intercept text": (changed(intercept="1"), "intercept must be a real number"),
    "intercept bool": (changed(intercept=True), "intercept must be a real number"),
    "intercept null": (changed(intercept=None), "intercept must be a real number"),
    "intercept integer": (changed(intercept=10**400), "intercept must be finite"),
    "lam 0": (changed(lam=0.0), "lam must be positive"),
    "coef list": (changed(coef=[1.0]), "coef must be an object"),
    "coef lengths": (changed(coef={"index": [1], "value": []}), "list of 1 numbers"),
    "coef missing": (changed(coef={"index": []}), "coef lacks the field 'value'"),
    "coef range": (changed(coef={"index": [6], "value": [1.0]}), "from 0 to 5"),
    "coef negative": (changed(coef={"index": [-1], "value": [1.0]}), "from 0 to 5"),
    "coef twice": (changed(coef={"index": [1, 1], "value": [1.0, 1.0]}), "increasing integers"),
    "coef value": (changed(coef={"index": [1], "value": [None]}), "must be a real number"),
    "names twice": (changed(feature_names=list("aabcde")), "a name twice"),
    "names short": (changed(feature_names=["a"]), "list of 6 texts"),
    "names type": (
        changed(feature_names=[1, 2, 3, 4, 5, 6]),
        "an entry of feature_names must be text",
    ),
    "noise": (changed(noise="gram"), "noise must be an object"),
    "noise level": (changed(noise={"name": "Gram", "sigma": -1, "gamma": 2}), "zero or positive"),
    "noise field": (changed(noise={"name": "Gram", "sigma": 1}), "lacks the field 'gamma'"),
    "software": (changed(software=1), "software must be text"),
    "guarantee": (changed(guarantee={}), "the guarantee lacks the field"),
    "guarantee null": (changed(guarantee=None), "must be an object"),
}


@pytest.mark.parametrize("name", CORRUPT)
def test_every_corruption_is_refused_in_one_sentence(name, path):
    change, message = CORRUPT[name]
    path.write_text(json.dumps(change(json.loads(path.read_text(encoding="utf-8")))))
    with pytest.raises(DocumentError, match=message) as caught:
        pv.load(path)
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        (b"", "not valid JSON"),
        (b"{", "not valid JSON"),
        (b"\xff\xfe{}", "not valid JSON"),
        (b"[" * 200_000, "not valid JSON"),
        (b'{"a": 1, "a": 2}', "same name twice"),
        (b'{"a": 1' + b"0" * 10_000 + b"}", "not valid JSON"),
    ],
)
def test_what_is_not_json(tmp_path, text, message):
    target = tmp_path / "m.json"
    target.write_bytes(text)
    with pytest.raises(DocumentError, match=message):
        pv.load(target)


def test_overflowing_number(path):
    text = path.read_text(encoding="utf-8").replace('"lam": 60.0', '"lam": 1e999')
    path.write_text(text, encoding="utf-8")
    with pytest.raises(DocumentError, match="lam must be finite"):
        pv.load(path)


def test_truncation_anywhere_is_refused(path):
    whole = path.read_bytes().rstrip()
    for end in range(0, len(whole), 97):
        path.write_bytes(whole[:end])
        with pytest.raises(DocumentError):
            pv.load(path)


def test_oversize_is_refused_unread(path, monkeypatch):
    monkeypatch.setattr(_model_file, "MAX_BYTES", 100)
    with pytest.raises(DocumentError, match="larger than 100 bytes"):
        pv.load(path)


def test_files_of_another_name_of_the_format_are_refused(path):
    document = json.loads(path.read_text(encoding="utf-8"))
    path.write_text(json.dumps({**document, "format": "privasso-release"}), encoding="utf-8")
    with pytest.raises(DocumentError, match="is not a model"):
        pv.load(path)
