"""The edge of stability for correlated columns, against linear programmes and the closed form."""

import numpy as np
import pytest

import privasso as pv
from privasso.model import AutoRegressive, Blocks, RandomEigenvectors, TwoLevel
from privasso.noise import MatrixPower
from privasso.theory import correlated_edge, critical_lambda_ratio


@pytest.mark.parametrize("noise", [pv.Isotropic(0.3), pv.Gram(2.0)])
def test_a_diagonal_covariance_is_the_closed_form(noise):
    model = pv.Model(0.5, scales=pv.LogNormal(0.0, 0.5))
    wanted = critical_lambda_ratio(model, noise, n_features=200)
    found = critical_lambda_ratio(model.realised(200, rng=0), noise)
    assert found == pytest.approx(wanted, rel=1e-4)


@pytest.mark.parametrize(
    ("alpha", "kind", "noise"),
    [
        (0.5, AutoRegressive(0.8), pv.Isotropic(1.0)),
        (0.3, Blocks(10, 0.6), pv.Isotropic(1.0)),
        (0.5, AutoRegressive(0.8), MatrixPower(1.0, 2.0)),
        pytest.param(
            0.5,
            RandomEigenvectors(TwoLevel(10.0)),
            MatrixPower(1.0, 1.0),
            marks=pytest.mark.slow,
        ),
    ],
    ids=repr,
)
def test_edges_against_linear_programmes(alpha, kind, noise):
    model = pv.Model(alpha, scales=pv.Constant(1.0), covariance=kind).realised(150, rng=0)
    edge = correlated_edge(model, noise, draws=16, rng=1)
    rng = np.random.default_rng(2)
    C = model.covariance.covariance
    found = []
    for _ in range(8):
        if isinstance(noise, MatrixPower):
            root = noise.root(C)
            eta = root @ rng.standard_normal(root.shape[1])
        else:
            eta = noise.draw(np.diag(C), rng)
        found.append(pv.critical_lambda(model.sample(rng=rng).F, eta))
    error = np.hypot(np.std(found, ddof=1) / np.sqrt(8), edge.standard_error)
    # A linear programme of 150 columns is off by a few per cent from the limit.
    assert abs(np.mean(found) - edge.ratio) < 4 * error + 0.02 * edge.ratio
    sigma = pv.critical_noise(model, 0.2, noise, draws=16, rng=1)
    assert sigma == pytest.approx(0.2 / edge.ratio)
    below, above = (
        pv.state_evolution(model, 0.2, noise.with_sigma(f * sigma), draws=16, rng=1)
        for f in (0.8, 1.25)
    )
    assert (below.status.name, above.status.name) == ("STABLE", "UNSTABLE")


def test_no_edge():
    model = pv.Model(1.5, scales=pv.Constant(1.0), covariance=AutoRegressive(0.8)).realised(50)
    assert correlated_edge(model, pv.Isotropic(1.0)) == (0.0, 0.0)
    assert pv.critical_noise(model, 0.2, pv.Isotropic(1.0)) == np.inf


def test_phase_diagram():
    model = pv.Model(0.5, scales=pv.Constant(1.0), covariance=AutoRegressive(0.7))
    table = pv.phase_diagram(
        model, [0.1, 0.6], pv.Isotropic(1.0), [0.3, 0.02, 0.05], n_features=150, rng=0
    )
    assert table["lam"].to_list() == [0.1] * 3 + [0.6] * 3
    assert table["sigma"].to_list() == [0.3, 0.02, 0.05] * 2
    assert table["status"].to_list() == ["unstable", "stable", "stable"] + ["stable"] * 3
    assert table["onavekl"][0] is None
    assert table["onavekl"][1] > table["onavekl"][2] > 0
    full = pv.tradeoff(model, 0.2, MatrixPower(1.0), [0.05, 0.1], n_features=150, rng=0)
    assert (full["onavekl"] < full["onavekl_bound"]).all()
    assert (full["onavekl_paper"] < full["onavekl"]).all()
    with pytest.raises(ValueError, match="level"):
        pv.tradeoff(model, 0.2, pv.noise.Diagonal(np.ones(150)), [0.1], n_features=150)
