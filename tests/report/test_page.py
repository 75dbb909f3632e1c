"""The report escapes what it shows and copes with models of every kind."""

from typing import Any

import numpy as np
import pytest

import privasso as pv
from privasso.fit import FitOptions, plan_fit
from privasso.forecast import Assumptions
from privasso.report import FitFacts, facts_of, fit_page


def facts(lam, names, mechanism: Any = "release"):
    rng = np.random.default_rng(0)
    X = rng.standard_normal((60, len(names))) * np.geomspace(0.1, 100, len(names))
    X[:, -1] = 1.0
    privacy = pv.LabelDP(20.0, 1e-3, (-3, 3), mechanism=mechanism)
    plan = plan_fit(X, FitOptions(privacy, lam), seeded=True)
    released = plan.release(
        np.clip(X[:, 1], -3, 3),
        rng=np.random.default_rng(0),
        feature_names=tuple(names),
        target="a < b & $y_1$",
    )
    return facts_of(
        released,
        released.solve(),
        command="privasso fit data.csv",
        path=released.path(np.geomspace(lam, 0.1 * lam, 5)),
        assumptions=Assumptions(0.1, 0.5, 1.0),
    )


NAMES = ["<script>alert(1)</script>", "$x^2$", "plain", "constant"]


@pytest.mark.parametrize("lam", [1.0, 1e9])
def test_page(lam):
    found = facts(lam, NAMES)
    html = fit_page(found).html()
    assert "<script>" not in html
    assert "a &lt; b &amp; $y_1$" in html
    assert "Constant columns say nothing about the labels and get no noise: constant" in html
    assert ("Every coefficient is zero" in html) == (not found.model.coef.any())
    assert "√k" in html
    assert found.columns is not None
    order = np.abs(found.model.coef * found.columns.scale)[found.support]
    assert np.all(np.diff(order) <= 0)


@pytest.mark.parametrize("mechanism", ["release", "objective"])
def test_it_says_where_the_noise_entered(mechanism):
    html = fit_page(facts(1.0, NAMES, mechanism)).html()
    assert ("added once, to the objective, whose minimiser" in html) == (mechanism == "objective")
    assert ("added once, to the products" in html) == (mechanism == "release")


def test_many_columns_are_all_in_the_table():
    found = facts(1e-3, [f"column {k} with a rather long name" for k in range(12)])
    html = fit_page(found).html()
    for k in found.support:
        assert f">{found.names[k]}</td>" in html


@pytest.mark.parametrize(
    ("privacy", "title"),
    [
        (pv.LabelDP(1.0, 1e-6, (0, 1)), "Private LASSO for y"),
        (pv.OnAverage(1.0), "LASSO for y"),
        (pv.OnAverage(0.0), "LASSO for y"),
    ],
)
def test_only_what_is_formal_is_called_private_or_guaranteed(privacy, title):
    X = np.random.default_rng(0).standard_normal((60, 2))
    est = pv.PrivateLasso(1.0, privacy).fit(X, np.ones(60))
    html = fit_page(FitFacts(est.released_model(), "y", 60, "privasso fit data.csv")).html()
    assert f"<h1>{title}</h1>" in html
    formal = isinstance(privacy, pv.LabelDP)
    assert ("What is guaranteed" in html) == ("Private" in html) == formal
    assert ("spends the budget" in html) == formal
    assert ("NOT FOR RELEASE" in html) == (not formal)
