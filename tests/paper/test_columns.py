"""The table of `QuarterExperiment` against plain computations on the same data."""

from dataclasses import replace

import numpy as np
import pytest

import privasso as pv
from privasso.paper._experiment import stream
from privasso.paper._run import run
from privasso.paper._small import QuarterExperiment

FEW = QuarterExperiment(("lognormal",), lams=(0.2,), n_features=60, samples=3, records=2, seed=3)


@pytest.fixture(scope="module")
def table(tmp_path_factory):
    return run({"quarters": FEW}, store=tmp_path_factory.mktemp("store"))["quarters"]


@pytest.mark.parametrize("design", ["isotropic", "gram"])
def test_quarters_against_coordinate_descent(table, design):
    nonzero, change = [], []
    for unit in FEW.units():
        larger = replace(pv.Model(scales=pv.LogNormal()), alpha=32 / 60)
        parameters = unit.parameters
        s = larger.sample(60, rng=stream(parameters, "quarters data", "lognormal", 60))
        z = stream(parameters, "quarters noise", "lognormal", 60).standard_normal(60)
        power = s.v ** {"isotropic": 0.0, "gram": 2.0}[design]
        eta = 0.05 * z * np.sqrt(power / power.mean())
        order = np.argsort(s.v)
        x = pv.solve(s.F[:30], s.y[:30], 0.2, eta, method="cd").x
        moved = np.zeros(60)
        for k in range(2):
            rows = [30 + k if row == k else row for row in range(30)]
            other = pv.solve(s.F[rows], s.y[rows], 0.2, eta, method="cd").x
            moved += 60 * (other - x) ** 2 / 2
        nonzero.append((x[order] != 0.0).reshape(4, 15).mean(axis=1))
        change.append(moved[order].reshape(4, 15).mean(axis=1))
    rows = table.filter(design=design).sort("quarter")
    assert rows["exists"].to_list() == [3] * 4
    np.testing.assert_allclose(rows["nonzero"], np.mean(nonzero, axis=0), atol=1e-12)
    np.testing.assert_allclose(rows["change"], np.mean(change, axis=0), rtol=1e-4, atol=1e-9)
    assert (np.diff(rows["scale"]) > 0.0).all()
