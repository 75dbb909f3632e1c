"""Tables: every row is the point that state evolution gives, in the order asked for."""

import numpy as np
import pytest

import privasso as pv

COLUMNS = [
    "lam", "sigma", "status", "E", "V", "rho_hat", "stability", "onavekl", "onavekl_paper",
    "advantage",
]  # fmt: skip


def assert_rows_are_points(table, model, design, **kwargs):
    assert table.columns == COLUMNS
    for row in table.iter_rows(named=True):
        fp = pv.state_evolution(model, row["lam"], design.with_sigma(row["sigma"]), **kwargs)
        assert row["status"] == fp.status.value
        for name, value in (
            ("E", fp.E),
            ("V", fp.V),
            ("rho_hat", fp.rho_hat),
            ("stability", fp.stability),
            ("onavekl", fp.onavekl()),
            ("onavekl_paper", fp.onavekl("paper")),
            ("advantage", fp.attack().advantage if row["status"] == "stable" else np.nan),
        ):
            if np.isnan(value):
                assert row[name] is None
            else:
                assert row[name] == pytest.approx(value, rel=3e-6, abs=1e-12), name


@pytest.mark.parametrize(
    ("law", "design", "kwargs"),
    [
        (pv.Uniform(), pv.Gram(1.0), {}),
        (pv.Uniform(), pv.Isotropic(1.0), {}),
        (pv.Uniform(), pv.Isotropic(1.0), {"n_features": 300}),
        (pv.LogNormal(0.0, 0.5), pv.PowerLaw(5.0, 1.0), {}),
    ],
)
def test_tradeoff(law, design, kwargs):
    model = pv.Model(scales=law)
    sigmas = [0.3, 0.01, 0.1, 0.0, 0.2, 0.05]
    table = pv.tradeoff(model, 0.2, design, sigmas, **kwargs)
    assert table["sigma"].to_list() == sigmas
    assert_rows_are_points(table, model, design, **kwargs)


def test_large_grid_takes_threads_and_gives_the_same():
    model = pv.Model(scales=pv.LogNormal(0.0, 1.0))
    sigmas = np.geomspace(1e-3, 1.0, 900)
    table = pv.tradeoff(model, 0.2, pv.PowerLaw(1.0, 1.0), sigmas)
    few = table.gather_every(60)
    assert_rows_are_points(few, model, pv.PowerLaw(1.0, 1.0))


def test_phase_diagram():
    model = pv.Model(scales=pv.LogNormal(0.0, 0.5))
    design = pv.Gram(1.0)
    table = pv.phase_diagram(model, [0.3, 0.1, 0.2], design, [0.4, 0.1, 0.3])
    assert table["lam"].to_list() == [0.3] * 3 + [0.1] * 3 + [0.2] * 3
    assert_rows_are_points(table, model, design)
    stable = (table["lam"] / table["sigma"]) > pv.theory.critical_lambda_ratio(model, design)
    assert (table["status"] == "stable").to_list() == stable.to_list()


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ((0.2, pv.Gram(1.0), [-0.1]), "sigma must be zero or positive"),
        ((0.2, pv.Gram(1.0), [np.nan]), "sigmas contains NaN"),
        ((0.2, pv.Gram(1.0), []), "sigmas is empty"),
        ((0.0, pv.Gram(1.0), [0.1]), "lam must be positive"),
        ((0.2, "gram", [0.1]), "noise design"),
    ],
)
def test_refusals(arguments, message):
    with pytest.raises(ValueError, match=message):
        pv.tradeoff(pv.Model(), *arguments)


def test_phase_diagram_refuses():
    with pytest.raises(ValueError, match="lams must be positive"):
        pv.phase_diagram(pv.Model(), [0.1, 0.0], pv.Gram(1.0), [0.1])
