"""`LeakageExperiment` against its prediction and against two densities of one data set."""

import numpy as np
import pytest

import privasso as pv
from privasso.paper._experiment import stream
from privasso.paper._leakage import LeakageExperiment
from privasso.paper._run import run


def test_leakage(tmp_path):
    points = (("constant", "isotropic", 0.3, 0.1), ("lognormal", "gram", 0.4, 0.15))
    experiment = LeakageExperiment(points, n_features=100, samples=40, records=8)
    table = run({"leak": experiment}, store=tmp_path)["leak"]
    for row in table.iter_rows(named=True):
        assert row["exists"] == 40
        assert abs(row["onavekl_mc"] - row["onavekl"]) < 4 * row["onavekl_mc_se"]
        assert row["onavekl_mc_se"] < 0.2 * row["onavekl_mc"]
        assert row["onavekl_paper"] < row["onavekl"]


def test_leakage_of_one_data_set_from_two_densities(tmp_path):
    experiment = LeakageExperiment(
        (("lognormal", "gram", 0.4, 0.15),), n_features=60, samples=2, records=3
    )
    row = run({"leak": experiment}, store=tmp_path)["leak"].row(0, named=True)
    means = []
    for k in range(2):
        larger = pv.Model(alpha=33 / 60, scales=pv.LogNormal())
        s = larger.sample(60, rng=stream({"seed": 0, "index": k}, "leakage data lognormal 60"))
        v2 = s.v**2
        sd = 0.15 * np.sqrt(v2 / v2.mean())
        eta = sd * stream({"seed": 0, "index": k}, "leakage noise lognormal 60").standard_normal(60)
        F, y = s.F[:30], s.y[:30]
        x = pv.solve(F, y, 0.4, eta, method="cd").x
        losses = []
        for j in range(3):
            keep = np.arange(30) != j
            F2, y2 = np.vstack([F[keep], s.F[30 + j]]), np.append(y[keep], s.y[30 + j])
            here, there = (pv.log_density(*d, 0.4, sd**2, x) for d in ((F, y), (F2, y2)))
            losses.append(here - there)
        means.append(np.mean(losses))
    assert row["onavekl_mc"] == pytest.approx(np.mean(means), rel=1e-6)
