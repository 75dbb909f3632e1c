"""The report escapes what it shows and copes with models of every kind."""

import numpy as np
import pytest

import privasso as pv
from privasso.artefact import design_record
from privasso.estimator import Postprocess, released, statement
from privasso.operators import Covariates
from privasso.report import FitFacts, coefficient_noise, columns_of, fit_page, stability_of


def facts(lam, names):
    rng = np.random.default_rng(0)
    X = rng.standard_normal((60, len(names))) * np.geomspace(0.1, 100, len(names))
    X[:, -1] = 1.0
    privacy = pv.LabelDP(20.0, 1e-3, (-3, 3))
    rows = Covariates(X, centre=True)
    release, design = released(rows, np.clip(X[:, 1], -3, 3), privacy, pv.PowerLaw(1.0, 0.5), rng=0)
    post = Postprocess(release, rows)
    coef, intercept = post.solve(lam)
    guarantee = statement(privacy, design, fit_intercept=True, from_os_entropy=True)
    model = pv.ReleasedModel(
        coef, intercept, lam, guarantee, design_record(design), tuple(names), pv.__version__
    )
    return FitFacts(
        model,
        target="a < b & $y_1$",
        n_rows=60,
        command="privasso fit data.csv",
        mu=privacy.mu,
        columns=columns_of(rows, release.sigma),
        coef_noise=coefficient_noise(post, coef),
        path=post.path(np.geomspace(lam, 0.1 * lam, 5)),
        stability=stability_of(post),
    )


NAMES = ["<script>alert(1)</script>", "$x^2$", "plain", "constant"]


@pytest.mark.parametrize("lam", [1.0, 1e9])
def test_page(lam):
    found = facts(lam, NAMES)
    html = fit_page(found).html()
    assert "<script>" not in html
    assert "a &lt; b &amp; $y_1$" in html
    assert "Constant columns carry no label and get no noise: constant" in html
    assert ("Every coefficient is zero" in html) == (not found.model.coef.any())
    assert "√k" in html
    assert found.columns is not None
    order = np.abs(found.model.coef * found.columns.scale)[found.support]
    assert np.all(np.diff(order) <= 0)


def test_many_columns_are_all_in_the_table():
    found = facts(1e-3, [f"column {k} with a rather long name" for k in range(12)])
    html = fit_page(found).html()
    for k in found.support:
        assert f"<td>{found.names[k]}</td>" in html
