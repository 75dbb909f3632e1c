"""Designs where the scales or the model are not what was assumed."""

import pytest

import privasso as pv
from privasso.theory import mismatched_state_evolution

V1, V2 = pv.Uniform(), pv.LogNormal(0.0, 0.5)


def test_designs_for_wrong_scales():
    model = pv.Model(scales=V2)
    best = pv.optimal_design(model, pv.MaxLeakage(2.0))
    worse = pv.optimal_design(model, pv.MaxLeakage(2.0), scale_error=0.7)
    assert worse.onavekl() == pytest.approx(2.0, rel=1e-5)
    fp = mismatched_state_evolution(model, worse.lam, worse.noise, 0.7)
    assert (fp.E, fp.onavekl()) == (worse.E, worse.onavekl())
    assert worse.E > best.E
    assert worse.gamma < best.gamma  # pyright: ignore
    # Isotropic noise does not look at the scales; what follows wrong ones closely loses to it.
    equal = best.comparison["isotropic"]
    assert pytest.approx(equal.E, rel=1e-5) == worse.comparison["isotropic"].E
    assert worse.E < equal.E < worse.comparison["gram"].E


def test_table():
    model = pv.Model(scales=V2)
    best = pv.optimal_design(model, pv.MaxLeakage(2.0))
    others = [model, pv.Model(rho=0.2, scales=V2), pv.Model(sigma_xi=0.3, scales=V1)]
    table = pv.misspecification_table(others, best.lam, best.noise, scale_errors=[0.0, 0.5])
    assert table.height == 6
    assert table["scale_error"].to_list() == [0.0, 0.5] * 3
    assert table["regret"].min() >= 1 - 1e-4  # pyright: ignore
    assert table["regret"][0] == pytest.approx(1.0, abs=1e-4)
    fp = mismatched_state_evolution(others[2], best.lam, best.noise, 0.5)
    assert table.row(5, named=True)["E"] == fp.E
    assert table.row(5, named=True)["onavekl"] == fp.onavekl()
    few = pv.misspecification_table([model], best.lam, best.noise, n_features=300)
    assert few["E"][0] == pv.state_evolution(model, best.lam, best.noise, n_features=300).E
    far = pv.misspecification_table([model], 0.1, pv.Gram(3.0))
    assert far.row(0, named=True)["status"] == "unstable"
    assert far["onavekl"][0] is None


def test_table_arguments():
    model = pv.Model(scales=V2)
    with pytest.raises(ValueError, match="lam must be positive"):
        pv.misspecification_table([model], 0.0, pv.Gram(0.1))
    with pytest.raises(ValueError, match="must not be empty"):
        pv.misspecification_table([], 0.2, pv.Gram(0.1))
    with pytest.raises(ValueError, match="scale_errors must be zero or"):
        pv.misspecification_table([model], 0.2, pv.Gram(0.1), scale_errors=[-1.0])
