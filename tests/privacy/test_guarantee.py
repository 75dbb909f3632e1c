"""The privacy statement: true words, no ε where there is none, a faithful round trip."""

import dataclasses
import json
import re

import numpy as np
import pytest

import privasso as pv

PRIVACY = pv.LabelDP(0.75, 1e-7, (-2.0, 6.0))


def fitted(**options):
    rng = np.random.default_rng(0)
    X = rng.standard_normal((60, 5))
    est = pv.PrivateLasso(lam=1e3).set_params(**options)
    return est.fit(X, X[:, 0]).guarantee_


EVERY = {
    "label-dp": lambda: fitted(privacy=PRIVACY),
    "label-dp, seeded": lambda: fitted(privacy=PRIVACY, random_state=0, fit_intercept=False),
    "average": lambda: fitted(privacy=pv.OnAverage(0.3)),
    "average, array": lambda: fitted(privacy=pv.OnAverage(0.3), scales=np.ones(5)),
    "average, law": lambda: fitted(privacy=pv.OnAverage(0.3), scales=pv.Uniform()),
    "average, model": lambda: fitted(lam=0.5, privacy=pv.OnAverage(0.3), model=pv.Model(alpha=2.0)),
    "average, unstable": lambda: fitted(
        lam=0.01, privacy=pv.OnAverage(1.0), model=pv.Model(alpha=0.5)
    ),
    "none": lambda: fitted(privacy=pv.OnAverage(0.0)),
}
every_guarantee = pytest.mark.parametrize("name", EVERY)


@every_guarantee
def test_only_label_dp_shows_an_epsilon(name):
    guarantee = EVERY[name]()
    assert guarantee.kind == {"l": "label-dp", "a": "average-case", "n": "none"}[name[0]]
    everything = (str(guarantee) + repr(guarantee) + json.dumps(guarantee.to_dict())).lower()
    assert bool(re.search("ε|epsilon|\\\\u03b5|δ|delta", everything)) == (name[0] == "l")


@every_guarantee
def test_round_trip_through_json(name):
    guarantee = EVERY[name]()
    again = pv.Guarantee.from_dict(json.loads(json.dumps(guarantee.to_dict())))
    assert again == guarantee
    assert hash(again) == hash(guarantee)
    assert str(again) == str(guarantee)


def test_label_dp_in_words():
    text = str(EVERY["label-dp"]())
    for part in ("ε = 0.75", "δ = 1e-07", "[-2, 6]", "label sum", "before the labels were seen",
                 "operating system's cryptographic", "covariates"):  # fmt: skip
        assert part in text
    assert "NOT FOR RELEASE" not in text
    seeded = str(EVERY["label-dp, seeded"]())
    assert "NOT FOR RELEASE" in seeded
    assert "label sum" not in seeded


def test_average_case_in_words():
    assert "leak" in str(EVERY["average"]())
    assert "prior knowledge" in str(EVERY["average, array"]())
    assert "law" in str(EVERY["average, law"]())
    guarantee = EVERY["average, model"]()
    point = pv.state_evolution(pv.Model(alpha=2.0), 0.5, pv.PowerLaw(0.3, 1.0))
    assert guarantee["onavekl_joint"] == pytest.approx(point.onavekl())
    assert f"{point.onavekl():.4g}" in str(guarantee)
    assert "not finite" in str(EVERY["average, unstable"]())


def test_frozen():
    guarantee = EVERY["none"]()
    with pytest.raises(dataclasses.FrozenInstanceError):
        guarantee.kind = "label-dp"  # pyright: ignore[reportAttributeAccessIssue]


CORRUPT = {
    "not an object": (lambda d: [], "must be an object"),
    "missing": (lambda d: {k: v for k, v in d.items() if k != "released"}, "lacks the field"),
    "unknown": (lambda d: d | {"extra": 1}, "unknown field"),
    "kind": (lambda d: d | {"kind": "dp"}, "kind must be one of"),
    "kind type": (lambda d: d | {"kind": 3}, "kind must be text"),
    "assumptions": (lambda d: d | {"assumptions": "none"}, "list of texts"),
    "released": (lambda d: d | {"released": [1]}, "must be text"),
    "parameters": (lambda d: d | {"parameters": [1]}, "object with named fields"),
    "nan": (lambda d: d | {"parameters": d["parameters"] | {"delta": np.nan}}, "must be finite"),
    "text number": (
        lambda d: d | {"parameters": d["parameters"] | {"delta": "1"}},
        "must be a real number",
    ),
    "no delta": (lambda d: d | {"parameters": {"epsilon": 1.0}}, "needs the parameter"),
    "delta 2": (lambda d: d | {"parameters": d["parameters"] | {"delta": 2.0}}, "delta < 1"),
    "bounds": (lambda d: d | {"parameters": d["parameters"] | {"y_low": 9.0}}, "y_low < y_high"),
    "smuggled": (lambda d: d | {"kind": "average-case"}, "has no parameter"),
    "average without level": (
        lambda d: d | {"kind": "average-case", "parameters": {}},
        "needs the parameter 'sigma'",
    ),
    "for_release": (lambda d: d | {"for_release": 1}, "true or false"),
}


@pytest.mark.parametrize("name", CORRUPT)
def test_corruption_is_refused(name):
    change, message = CORRUPT[name]
    document = EVERY["label-dp"]().to_dict()
    with pytest.raises(ValueError, match=message):
        pv.Guarantee.from_dict(change(document))
