"""What noise alone produces, against repeated fits of columns that say nothing."""

import numpy as np
import pytest

import privasso as pv
from privasso.encoding import Dictionary, NumberEntry
from privasso.fit import FitOptions, plan_for
from privasso.report import facts_of

pytestmark = pytest.mark.filterwarnings("ignore::privasso.PrivacyWarning")


def found(privacy, X, y, seed, lam=1e-3):
    plan = plan_for(X, FitOptions(privacy, lam), seeded=True)
    made = plan.release(y, rng=np.random.default_rng(seed))
    ends = Dictionary((NumberEntry("a", 0.0, 1.0), NumberEntry("b", 0.0, 10.0)))
    known = ends if privacy.protects_records else None
    return facts_of(made, made.solve(None), plan, known, command="")


def test_a_level_that_nobody_has_varies_as_much_as_is_said():
    rng = np.random.default_rng(0)
    X = np.c_[np.zeros(2000), rng.uniform(0.0, 10.0, 2000)]
    y = 0.5 + 0.02 * X[:, 1] + 0.05 * rng.standard_normal(2000)
    privacy = pv.RecordDP(1.0, 1e-6, bounds=["0/1", (0, 10)], y_bounds=(0, 1))
    facts = [found(privacy, X, y, seed) for seed in range(60)]
    said = facts[0].noise_alone
    assert said is not None
    coef = np.array([one.model.coef for one in facts])
    assert np.std(coef[:, 0]) == pytest.approx(said[0], rel=0.3)
    # A column that varies more than is supposed has less noise than is said.
    assert np.std(coef[:, 1]) < said[1]
    assert {one.notes[0] for one in facts} >= {"cannot be told from zero if few rows have it"}
    assert np.mean([one.notes[0] != "" for one in facts]) > 0.85
    assert facts[0].notes[1] == ""


def test_public_columns_vary_as_much_as_is_said():
    rng = np.random.default_rng(1)
    X = rng.uniform(size=(1000, 2)) * [1.0, 10.0]
    X -= X.mean(axis=0)
    X[:, 1] -= X[:, 0] * (X[:, 0] @ X[:, 1]) / (X[:, 0] @ X[:, 0])
    y = np.clip(0.5 + 0.03 * X[:, 1], 0.0, 1.0)
    privacy = pv.LabelDP(1.0, 1e-6, y_bounds=(0, 1), mechanism="release")
    plan = plan_for(X, FitOptions(privacy, 1e-3, denoise=False), seeded=True)
    coef, said, notes = [], None, []
    for seed in range(80):
        made = plan.release(y, rng=np.random.default_rng(seed))
        facts = facts_of(made, made.solve(None), plan, command="")
        coef.append(facts.model.coef)
        said, notes = facts.noise_alone, [*notes, facts.notes]
    assert said is not None
    np.testing.assert_allclose(np.std(coef, axis=0), said, rtol=0.25)
    assert np.mean([one[0] == "cannot be told from zero" for one in notes]) > 0.85
