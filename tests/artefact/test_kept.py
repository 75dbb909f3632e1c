"""A kept release comes back as it was, and anything off is refused."""

import json

import numpy as np
import pytest

import privasso as pv
from privasso.artefact import ArtefactError, KeptRelease, design_record, kept_text, load_kept
from privasso.estimator import released, statement
from privasso.operators import Covariates


@pytest.fixture(params=[True, False])
def kept(request):
    rng = np.random.default_rng(0)
    rows = Covariates(rng.standard_normal((30, 3)), centre=request.param)
    privacy = pv.LabelDP(1.0, 1e-6, (0.0, 2.0))
    release, design = released(rows, rng.random(30), privacy, pv.PowerLaw(1.0, 0.5))
    guarantee = statement(privacy, design, fit_intercept=request.param, from_os_entropy=True)
    return KeptRelease(
        release, rows.squares, guarantee, design_record(design), ("a", "b", "ü"), "y", "0"
    )


def test_round_trip(kept, tmp_path):
    path = tmp_path / "release.json"
    path.write_text(kept_text(kept), encoding="utf-8")
    back = load_kept(path)
    for name in ("b", "sigma"):
        assert np.array_equal(getattr(back.release, name), getattr(kept.release, name))
    for name in ("n_rows", "centre", "label_sum", "sigma_sum", "mu"):
        assert getattr(back.release, name) == getattr(kept.release, name)
    assert np.array_equal(back.column_squares, kept.column_squares)
    assert (back.guarantee, back.design) == (kept.guarantee, kept.design)
    assert (back.feature_names, back.target) == (kept.feature_names, kept.target)
    assert back.width == 2.0


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"format": "privasso-release"}, "not a kept release"),
        ({"version": 2}, "reads version 1"),
        ({"version": True}, "reads version 1"),
        ({"extra": 1}, "unknown field 'extra'"),
        ({"b": [1.0, 2.0]}, "b must be a list of 3 numbers"),
        ({"b": [1.0, 2.0, "x"]}, "must be a number"),
        ({"sigma": [1.0, -2.0, 1.0]}, "zero or positive"),
        ({"column_squares": None}, "column_squares must be a list"),
        ({"feature_names": ["a", "a", "b"]}, "a name twice"),
        ({"feature_names": []}, "list of names"),
        ({"n_rows": 0}, "n_rows must be an integer"),
        ({"n_rows": 1.5}, "n_rows must be an integer"),
        ({"mu": 0.0}, "mu must be positive"),
        ({"mu": None}, "mu must be a number"),
        ({"label_sum": 1.0, "sigma_sum": None}, "go together"),
        ({"guarantee": {}}, "lacks the field"),
        ({"design": {}}, "lacks the field"),
        ({"target": 3}, "target must be text"),
    ],
)
def test_anything_off_is_refused(kept, tmp_path, change, message):
    document = {**json.loads(kept_text(kept)), **change}
    path = tmp_path / "release.json"
    path.write_text(json.dumps(document))
    with pytest.raises(ArtefactError, match=message):
        load_kept(path)


def test_a_missing_field_and_what_is_no_object(kept, tmp_path):
    path = tmp_path / "release.json"
    for name in json.loads(kept_text(kept)):
        document = json.loads(kept_text(kept))
        del document[name]
        path.write_text(json.dumps(document))
        with pytest.raises(ArtefactError):
            load_kept(path)
    for text in ("[]", "{", "nan", '{"b": NaN}'):
        path.write_text(text)
        with pytest.raises(ArtefactError):
            load_kept(path)


def test_an_average_case_release_is_never_kept(kept):
    guarantee = statement(pv.OnAverage(1.0), pv.Gram(1.0), fit_intercept=True, from_os_entropy=True)
    leaky = KeptRelease(
        kept.release, kept.column_squares, guarantee, kept.design, kept.feature_names, "y", "0"
    )
    with pytest.raises(ArtefactError, match="label differential privacy"):
        kept_text(leaky)
