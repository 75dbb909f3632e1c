"""Audits: correct mechanisms stand, broken ones are found, and no other score is better."""

import json
import math
from dataclasses import replace

import numpy as np
import pytest

import privasso as pv
from privasso.attacks import Evidence

RNG = np.random.default_rng(0)
X = RNG.random((40, 3)) * [1.0, 10.0, 0.1]
Y = np.clip(0.2 + 0.5 * X[:, 0] + 0.1 * RNG.standard_normal(40), 0.0, 1.0)
BOUNDS = [(0.0, 1.0), (0.0, 10.0), (0.0, 0.1)]
LABELS = pv.LabelDP(2.0, 0.02, y_bounds=(0.0, 1.0))
RELEASE = replace(LABELS, mechanism="release")
RECORDS = pv.RecordDP(2.0, 0.02, bounds=BOUNDS, y_bounds=(0.0, 1.0))
KINDS = {"objective": LABELS, "release": RELEASE, "records": RECORDS}


def found(privacy, releases=300, seed=1, **options):
    return pv.audit(privacy, X, Y, releases=releases, rng=seed, **options)


@pytest.mark.parametrize("name", KINDS)
@pytest.mark.parametrize("fit_intercept", [pytest.param(False, marks=pytest.mark.slow), True])
def test_correct_mechanisms_stand(name, fit_intercept):
    result = found(KINDS[name], records=[3], fit_intercept=fit_intercept)
    assert result.passed is True
    assert "No claim was refuted" in result.verdict
    (one,) = result.findings
    assert 0.5 < one.auc < 1.0
    # E over "out" of e^score is one: the score is a log likelihood ratio.
    weights = np.exp(one.evidence.out)
    assert abs(weights.mean() - 1.0) < 5.0 * weights.std() / math.sqrt(weights.size) + 0.01


def half_the_noise(monkeypatch):
    from privasso.privacy import _exact_release

    true = _exact_release.rounded_gaussian
    monkeypatch.setattr(
        _exact_release, "rounded_gaussian", lambda deviation, *rest: true(0.4 * deviation, *rest)
    )
    return RELEASE


def too_small_a_kappa(monkeypatch):
    """Residuals are clipped at four times what the noise was made for."""
    from privasso.privacy import _clipped_release

    true = _clipped_release.perturbed_minimiser

    def faulty(G, y, lam, noise, bits, **options):
        return true(G, y, lam, replace(noise, kappa=4.0 * noise.kappa), bits, **options)

    monkeypatch.setattr(_clipped_release, "perturbed_minimiser", faulty)
    return replace(LABELS, kappa=0.05)


def unclipped_rows(monkeypatch):
    """Rows are not shrunk to the length that the noise was made for."""
    from privasso.privacy import PerturbedObjective

    true = PerturbedObjective.rows

    def faulty(self, X, y):
        rows, labels = true(self, X, y)
        return 4.0 * rows, 4.0 * labels

    monkeypatch.setattr(PerturbedObjective, "rows", faulty)
    return RECORDS


@pytest.mark.parametrize(
    "broken", [half_the_noise, too_small_a_kappa, unclipped_rows], ids=lambda x: x.__name__
)
def test_broken_mechanisms_are_found(broken, monkeypatch):
    result = found(broken(monkeypatch), releases=600, records=[3])
    assert result.passed is False
    assert result.worst.refuted
    assert "refuted" in result.verdict


@pytest.mark.slow
@pytest.mark.parametrize("name", KINDS)
def test_correct_mechanisms_stand_in_many_repetitions(name):
    """At a level of 1 %, at most a few of 200 may be refuted; in fact none is."""
    refuted = [
        found(KINDS[name], releases=200, seed=seed, records=[seed % 40]).passed is False
        for seed in range(200)
    ]
    assert sum(refuted) <= 2


def test_membership_under_average_noise():
    rng = np.random.default_rng(1)
    F = rng.standard_normal((30, 20)) / np.sqrt(20)
    y = F[:, 0] + 0.1 * rng.standard_normal(30)
    result = pv.audit(pv.OnAverage(0.3), F, y, lam=0.3, releases=400, rng=2)
    assert result.passed is None
    assert "Nothing is claimed" in result.verdict
    assert len(result.findings) == 4
    for one in result.findings:
        weights = np.exp(one.evidence.out)
        assert abs(weights.mean() - 1.0) < 5.0 * weights.std() / math.sqrt(weights.size) + 0.01
        assert one.closest is None


def heuristics(F, y, record, label, x, rng):
    """Published attacks: each a score of releases, and some that learn from half of them."""
    residual = np.abs(label - x @ record)
    others = y[None, :] - x @ F.T
    typical = np.sqrt(np.mean(others**2, axis=1))
    gradient = residual * np.linalg.norm(record)
    return {
        "loss threshold": -(residual**2),
        "residual in units of the others": -residual / typical,
        "gradient norm": -gradient,
        "distance of the coefficients": -np.linalg.norm(x - x.mean(axis=0), axis=1),
    }


def test_no_heuristic_beats_the_likelihood_ratio():
    rng = np.random.default_rng(3)
    F = rng.standard_normal((40, 20)) / np.sqrt(20)
    y = F @ (rng.standard_normal(20) * (rng.random(20) < 0.3)) + 0.3 * rng.standard_normal(40)
    from privasso.attacks._on_average import membership_pairs

    k = 5
    (pair,) = membership_pairs(F, y, 0.2, np.full(20, 0.1**2), {k: "row"})
    assert pair.score is not None
    into, out = (world.releases(1600, rng) for world in (pair.into, pair.out))
    best = Evidence(pair.score(into), pair.score(out), np.zeros(1), 0.1)
    rest = np.delete(F, k, 0), np.delete(y, k)
    scores = [heuristics(*rest, F[k], y[k], x, rng) for x in (into, out)]
    # Two that learn: Gaussian laws of the residual in both worlds, and a classifier of x.
    half = 800
    r = [y[k] - x @ F[k] for x in (into, out)]
    laws = [(one[:half].mean(), one[:half].std()) for one in r]

    def gaussian(values):
        (a, s), (b, t) = laws
        return (
            -0.5 * ((values - a) / s) ** 2 - np.log(s) + 0.5 * ((values - b) / t) ** 2 + np.log(t)
        )

    from sklearn.linear_model import LogisticRegression

    both = np.vstack([into[:half], out[:half]])
    features = [np.hstack([x, x**2]) for x in (into, out)]
    classifier = LogisticRegression(max_iter=500).fit(
        np.hstack([both, both**2]), np.r_[np.ones(half), np.zeros(half)]
    )
    for one, values, x in zip(scores, r, features, strict=True):
        one["Gaussian laws of the residual"] = gaussian(values)
        one["trained classifier"] = classifier.decision_function(x)
    for name in scores[0]:
        other = Evidence(scores[0][name][half:], scores[1][name][half:], np.zeros(1), 0.1)
        error = math.hypot(best.auc_error, other.auc_error)
        assert other.auc < best.auc + 3.0 * error, name
    assert best.auc > 0.55


def test_results_for_people_and_machines(tmp_path):
    result = found(RECORDS, releases=100)
    assert len(result.findings) == 5
    assert result.findings[-1].name == "a record made up at the bounds"
    document = json.loads(json.dumps(result.to_dict()))
    assert document["passed"] is True
    assert len(document["findings"]) == 5
    page, numbers = tmp_path / "audit.html", tmp_path / "audit.json"
    result.save(page, "privasso audit …")
    result.save(numbers)
    assert json.loads(numbers.read_text()) == document
    text = page.read_text()
    for part in ("Audit of a private fit", "Keep it with the data", "made up at the bounds", "AUC"):
        assert part in text
    assert "AUC" in str(result)
    one, again = (found(RELEASE, releases=100, records=[3]).to_dict() for _ in range(2))
    assert one == again


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: pv.audit(LABELS, X, Y[:-1]), "one label for each"),
        (lambda: pv.audit(LABELS, X, Y, releases=10), "releases"),
        (lambda: pv.audit(LABELS, X, Y, level=2.0), "level"),
        (lambda: pv.audit(LABELS, X, Y, records=[99]), "from 0 to 39"),
        (lambda: pv.audit(LABELS, X, Y, records="worst"), "'auto' or"),  # pyright: ignore
        (lambda: pv.audit(pv.OnAverage(0.0), X, Y, lam=1.0), "no noise"),
        (lambda: pv.audit(pv.OnAverage(0.1), X, Y), "lam"),
        (lambda: pv.audit(replace(RECORDS, scales="private"), X, Y), "black_box"),
        (lambda: pv.audit(replace(RECORDS, mechanism="statistics"), X, Y), "black_box"),
        (lambda: pv.audit("label-dp", X, Y), "privacy must say"),  # pyright: ignore
        (lambda: pv.audit(LABELS, X * np.nan, Y), "NaN"),
    ],
)
def test_bad_input(call, message):
    with pytest.raises(ValueError, match=message):
        call()


def test_the_verdict_of_few_releases_does_not_claim_too_much():
    rng = np.random.default_rng(0)
    X = rng.standard_normal((40, 2))
    y = X @ [1.0, 0.5] + 0.1 * rng.standard_normal(40)
    found = pv.audit(pv.LabelDP(2.0, 1e-6, (-3.0, 3.0)), X, y, records=[0], releases=100, rng=0)
    assert found.passed
    assert "too few to show any ε above zero" in found.verdict
    assert f"{found.findings[0].auc:.3f}" in found.verdict
