"""The privacy statement: true words, no ε where there is none, a faithful round trip."""

import dataclasses
import json
import re

import numpy as np
import pytest

import privasso as pv
from privasso.privacy import Terms

PRIVACY = pv.LabelDP(0.75, 1e-7, (-2.0, 6.0))


def fitted(**options):
    rng = np.random.default_rng(0)
    X = rng.standard_normal((60, 5))
    est = pv.PrivateLasso(lam=1e3).set_params(**options)
    return est.fit(X, X[:, 0]).guarantee_


EVERY = {
    "label-dp": lambda: fitted(privacy=PRIVACY),
    "label-dp, release": lambda: fitted(privacy=dataclasses.replace(PRIVACY, mechanism="release")),
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


@pytest.mark.filterwarnings("ignore::privasso.PrivacyWarning")
@pytest.mark.parametrize(
    ("name", "released"), [("", "perturbed objective"), (", release", "label sum")]
)
def test_label_dp_in_words(name, released):
    text = str(EVERY[f"label-dp{name}"]())
    for part in ("ε = 0.75", "δ = 1e-07", "[-2, 6]", released, "before the labels were seen",
                 "operating system's cryptographic", "covariates"):  # fmt: skip
        assert part in text
    assert "NOT FOR RELEASE" not in text
    seeded = str(EVERY["label-dp, seeded"]())
    assert "NOT FOR RELEASE" in seeded
    assert "label sum" not in seeded


def statement(epsilon=1.0, delta=1e-6, bounds=(0.0, 1.0), n_rows=1000, seeded=False):
    terms = Terms(fit_intercept=True, seeded=seeded, n_rows=n_rows)
    return pv.LabelDP(epsilon, delta, bounds).guarantee(terms)


@pytest.mark.parametrize(
    ("options", "reason"),
    [
        ({}, None),
        ({"epsilon": 20.0}, None),
        ({"epsilon": 20.1}, "above 20"),
        ({"delta": 0.00099}, None),
        ({"delta": 0.001}, "one over the number of rows (1000)"),
        ({"seeded": True}, "fixed random state"),
    ],
)
def test_for_release_is_formal_sane_and_from_the_operating_system(options, reason):
    guarantee = statement(**options)
    assert guarantee.for_release == (reason is None)
    assert guarantee.to_dict()["for_release"] == guarantee.for_release
    if reason is None:
        assert guarantee.warning is None
    else:
        assert reason in str(guarantee.warning)


@pytest.mark.parametrize("name", ["average", "average, model", "none"])
def test_what_is_not_formal_is_never_for_release_and_never_called_private(name):
    guarantee = EVERY[name]()
    assert not guarantee.for_release
    assert guarantee.loss is None
    assert "no formal guarantee for any one person" in str(guarantee.warning)
    assert not re.search("guaranteed|is private|privately", str(guarantee))
    with pytest.raises(ValueError, match="cannot be stated for groups"):
        guarantee.group(2)


def test_losses_are_not_rounded_down_and_bounds_not_at_all():
    text = str(statement(1.00000049, 1.00000049e-6, (0.1 + 0.2, 1234567.25)))
    assert "ε = 1.00001 and δ = 1.00001e-06" in text
    assert "[0.30000000000000004, 1234567.25]" in text


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
    "kind": (lambda d: d | {"kind": "dp"}, "unknown kind"),
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
    "none": (lambda d: d | {"kind": "none", "parameters": {"sigma": 0.1}}, "other parameters"),
    "average without level": (
        lambda d: d | {"kind": "average-case", "parameters": {}},
        "needs other parameters",
    ),
    "for_release": (lambda d: d | {"for_release": 1}, "true or false"),
    "for_release, false": (lambda d: d | {"for_release": False}, "for_release is not what follows"),
    "seeded": (lambda d: d | {"seeded": True}, "for_release is not what follows"),
    "another release": (
        lambda d: d | {"losses": [*d["losses"], {"type": "gaussian", "mu": 0.1}]},
        "small enough for its ε and δ",
    ),
    "no losses": (lambda d: d | {"losses": []}, "needs the losses"),
    "losses of another type": (lambda d: d | {"losses": {}}, "losses must be a list"),
    "no c": (
        lambda d: d | {"losses": [{k: x for k, x in d["losses"][0].items() if k != "c"}]},
        "lacks the field 'c'",
    ),
    "too large a c": (lambda d: d | {"losses": [d["losses"][0] | {"c": 0.2}]}, "ε and δ"),
    "an unknown loss": (lambda d: d | {"losses": [{"type": "none"}]}, "unknown type"),
    "a loss with more": (
        lambda d: d | {"losses": [d["losses"][0] | {"mu": 0.2}]},
        "unknown field 'mu'",
    ),
    "other neighbours": (lambda d: d | {"neighbours": "emptied"}, "for other neighbours"),
    "no neighbours": (lambda d: d | {"neighbours": "none"}, "emptied or replaced"),
    "a group": (lambda d: d | {"size": 2}, "small enough"),
    "half a label": (lambda d: d | {"size": 0.5}, "an integer from 1"),
    "a record": (lambda d: d | {"kind": "record-dp"}, "for other neighbours"),
    "half a row": (lambda d: d | {"parameters": d["parameters"] | {"n_rows": 0.5}}, "n_rows"),
    "the shape of old files": (
        lambda d: {k: x for k, x in d.items() if k != "seeded"},
        "lacks the field 'seeded'",
    ),
}


def test_the_sensitivity_of_a_release_is_checked():
    document = EVERY["label-dp, release"]().to_dict()
    (loss,) = document["losses"]
    for mu, message in ((1.1 * loss["mu"], "small enough"), (-0.1, "mu must be")):
        with pytest.raises(ValueError, match=message):
            pv.Guarantee.from_dict(document | {"losses": [loss | {"mu": mu}]})


@pytest.mark.parametrize("name", CORRUPT)
def test_corruption_is_refused(name):
    change, message = CORRUPT[name]
    document = EVERY["label-dp"]().to_dict()
    with pytest.raises(ValueError, match=message):
        pv.Guarantee.from_dict(change(document))
