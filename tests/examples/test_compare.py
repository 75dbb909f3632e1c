"""Every method has the guarantee it claims, and λ is chosen by the rule of the library."""

import numpy as np
import polars as pl
import pytest
from sklearn.linear_model import Lasso

import privasso as pv
from privasso.examples import METHODS, Split, compare_methods, simulated_splits, summarise
from privasso.examples._methods import NOISES, perturb, prepare
from privasso.fit import Postprocess
from privasso.fit._choose_lambda import _cautious_risk

PRIVACY = pv.LabelDP(3.0, 1e-6, (-4.0, 4.0))


def small():
    rng = np.random.default_rng(0)
    X = rng.standard_normal((260, 6)) * np.geomspace(0.1, 10, 6)
    y = X @ (np.array([1.0, 0, -1, 0, 0, 1]) / np.geomspace(0.1, 10, 6))
    return Split(X[:200], y[:200], X[200:], y[200:], (-4.0, 4.0))


def test_label_noise_has_the_same_sensitivity():
    data = prepare(small(), standardise=False)
    one = perturb(data, "label noise", PRIVACY, 0, np.random.default_rng(0))
    assert PRIVACY.width / np.sqrt(one.s2) == pytest.approx(PRIVACY.mu)
    # and its effect on b has the covariance that the rule assumes
    draws = [
        perturb(data, "label noise", PRIVACY, 0, np.random.default_rng(k)).b for k in range(3000)
    ]
    spread = np.cov(np.array(draws).T) / one.s2
    np.testing.assert_allclose(spread / np.sqrt(np.outer(np.diag(data.gram), np.diag(data.gram))),
                               data.gram / np.sqrt(np.outer(np.diag(data.gram),
                               np.diag(data.gram))), atol=0.1)  # fmt: skip


@pytest.mark.parametrize("method", NOISES)
def test_the_rule_is_that_of_the_library(method):
    split = small()
    data = prepare(split, standardise=False)
    one = perturb(data, method, PRIVACY, 0, np.random.default_rng(1))
    rng = np.random.default_rng(1)
    release = pv.privacy.release_labels(split.X, split.y, PRIVACY, NOISES[method], rng=rng)
    assert np.array_equal(release.b, one.b)
    post = Postprocess(release, data.rows)
    for lam in np.abs(one.b).max() * np.array([0.9, 0.3, 0.03]):
        x, _ = post.solve(lam)
        assert one.risk(data, x) == pytest.approx(
            _cautious_risk(post, x, (8.0 / 6.0) ** 2), rel=1e-6
        )


def test_stein_s_estimate_for_label_noise():
    data = prepare(small(), standardise=False)
    clean = data.labels
    deviations, stated = [], []
    for k in range(400):
        one = perturb(data, "label noise", PRIVACY, 0, np.random.default_rng(k))
        x = pv.solvers.solve_problem(pv.problem.Problem(data.root, one.b, 40.0)).x
        risk, error = one.risk(data, x)
        variance = 2.0 * data.label_variance * np.count_nonzero(x)
        fitted = (data.split.X - data.rows.mean) @ x
        loss = np.sum((clean - clean.mean() - fitted) ** 2) - np.sum((clean - clean.mean()) ** 2)
        deviations.append(risk - 2 * error - variance - loss)
        stated.append(error**2)
    assert abs(np.mean(deviations)) < 4 * np.std(deviations) / 20
    assert np.mean(np.square(deviations)) == pytest.approx(np.mean(stated), rel=0.3)


def test_without_privacy_it_is_the_lasso():
    split = small()
    table = compare_methods([split], [1.0], delta=1e-6, methods=["no privacy"], rng=0)
    largest = np.abs((split.X - split.X.mean(0)).T @ np.clip(split.y, -4, 4)).max()
    scores = [
        Lasso(alpha=largest * f / 200, tol=1e-10, max_iter=100_000)
        .fit(split.X, np.clip(split.y, -4, 4))
        .score(split.X_test, split.y_test)
        for f in np.geomspace(1.0, 1e-3, 18)
    ]
    oracle = table.filter(pl.col("rule") == "oracle")["r2"].item()
    assert oracle == pytest.approx(max(scores), abs=1e-6)


def test_table_and_summary():
    table = compare_methods(
        simulated_splits(500, 8, rng=0), [1.0, 10.0], delta=1e-6, draws=3, rng=0
    )
    assert set(table["method"]) == set(METHODS)
    private = table.filter(~pl.col("method").str.starts_with("no privacy"))
    assert private.group_by("method", "epsilon", "rule").len()["len"].unique().to_list() == [3]
    wide = private.pivot("rule", index=["method", "epsilon", "draw"], values="r2")
    assert (wide["oracle"] >= wide["auto"] - 1e-12).all()
    one = table.filter((pl.col("method") == "Gram") & (pl.col("rule") == "auto"))
    found = summarise(one).filter(pl.col("epsilon") == 1.0)["r2"].item()
    assert found == one.filter(pl.col("epsilon") == 1.0)["r2"].median()
