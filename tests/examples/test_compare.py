"""Every method has the guarantee it claims, and λ is chosen by the rule of the library."""

import numpy as np
import polars as pl
import pytest
from sklearn.linear_model import Lasso

import privasso as pv
from privasso.examples import METHODS, Split, compare_methods, simulated_splits, summarise
from privasso.examples._data import NOISES, perturb, prepare
from privasso.fit import Postprocess, choose_lambda
from privasso.fit._posterior import Posterior
from privasso.planning import release_labels

PRIVACY = pv.LabelDP(3.0, 1e-6, (-4.0, 4.0))


def small():
    rng = np.random.default_rng(0)
    X = rng.standard_normal((260, 6)) * np.geomspace(0.1, 10, 6)
    y = X @ (np.array([1.0, 0, -1, 0, 0, 1]) / np.geomspace(0.1, 10, 6))
    return Split(X[:200], y[:200], X[200:], y[200:], (-4.0, 4.0))


def test_label_noise_has_the_same_sensitivity():
    data = prepare(small(), standardise=False)
    one = perturb(data, "label noise", PRIVACY, 0, np.random.default_rng(0))
    s2 = one.noise[0, 0] / data.gram[0, 0]
    assert PRIVACY.width / np.sqrt(s2) == pytest.approx(PRIVACY.mu)
    # and its effect on b has the covariance that the rule assumes
    draws = [
        perturb(data, "label noise", PRIVACY, 0, np.random.default_rng(k)).b for k in range(3000)
    ]
    spread = np.cov(np.array(draws).T) / s2
    np.testing.assert_allclose(spread / np.sqrt(np.outer(np.diag(data.gram), np.diag(data.gram))),
                               data.gram / np.sqrt(np.outer(np.diag(data.gram),
                               np.diag(data.gram))), atol=0.1)  # fmt: skip


@pytest.mark.parametrize("method", NOISES)
def test_the_rule_is_that_of_the_library(method):
    split = small()
    data = prepare(split, standardise=False)
    one = perturb(data, method, PRIVACY, 0, np.random.default_rng(1))
    rng = np.random.default_rng(1)
    release = release_labels(split.X, split.y, PRIVACY, NOISES[method], rng=rng)
    assert np.array_equal(release.b, one.b)
    post = Postprocess(release, data.rows)
    target = one.target(data)
    lam = choose_lambda(post, Posterior(target, np.ones(6), 0.0))

    def distance(x):
        return (x - target) @ data.gram @ (x - target)

    chosen = distance(post.solve(lam)[0])
    for factor in (0.5, 0.8, 1.25, 2.0):
        assert distance(post.solve(factor * lam)[0]) >= 0.9 * chosen


def test_the_noise_of_labels_has_its_own_covariance():
    data = prepare(small(), standardise=False)
    one = perturb(data, "label noise", PRIVACY, 0, np.random.default_rng(0))
    np.testing.assert_allclose(one.noise, (PRIVACY.width / PRIVACY.mu) ** 2 * data.gram)


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
