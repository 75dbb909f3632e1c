"""`CorrelatedExperiment` against solves and linear programmes that are written out."""

import numpy as np
import pytest

import privasso as pv
from privasso.noise import MatrixPower
from privasso.paper._correlated import CorrelatedExperiment, covariance_model
from privasso.paper._experiment import stream
from privasso.paper._run import run


def test_one_case(tmp_path):
    experiment = CorrelatedExperiment(
        ("lognormal",), ("ar:0.8",), ("isotropic", "matrix:2"), sigmas=(0.05, 0.1), n_features=50,
        samples=3,
    )  # fmt: skip
    table = run({"few": experiment}, store=tmp_path)["few"]
    assert table.height == 4
    E: dict[tuple[str, float], list[float]] = {}
    ratios: dict[str, list[float]] = {}
    for unit in experiment.units():
        model = covariance_model(unit.parameters)
        C = model.covariance.covariance
        s = model.sample(rng=stream(unit.parameters, "correlated data", "ar:0.8", "lognormal", 50))
        z = stream(unit.parameters, "correlated noise", "ar:0.8", "lognormal", 50)
        z = z.standard_normal(50)
        # Neighbours are correlated by 0.8 whatever their scales are.
        assert C[3, 4] / np.sqrt(C[3, 3] * C[4, 4]) == pytest.approx(0.8)
        for design, eta in (
            ("isotropic", z),
            ("matrix:2", C @ z / np.sqrt(np.mean((C @ C).diagonal()))),
        ):
            ratios.setdefault(design, []).append(pv.critical_lambda(s.F, eta))
            for sigma in (0.05, 0.1):
                x = pv.solve(s.F, s.y, 0.2, sigma * eta).x
                error = (x - s.x0) @ C @ (x - s.x0) / 50 + 0.01
                E.setdefault((design, sigma), []).append(error)
    for row in table.iter_rows(named=True):
        assert row["ratio"] == pytest.approx(np.mean(ratios[row["design"]]), rel=1e-6)
        assert row["E"] == pytest.approx(np.mean(E[row["design"], row["sigma"]]), rel=1e-6)
        assert row["exists"] == 3
        model = covariance_model(experiment.units()[0].parameters)
        noise = pv.Isotropic(0.05) if row["design"] == "isotropic" else MatrixPower(0.05, 2.0)
        if row["sigma"] == 0.05:
            fp = pv.state_evolution(model, 0.2, noise, draws=32, rng=0)
            assert pytest.approx(row["E_theory"]) == fp.E
