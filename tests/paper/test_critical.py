"""`CriticalExperiment` against single linear programmes and the answers of the solver."""

import numpy as np
import pytest

import privasso as pv
from privasso.paper._existence import CriticalExperiment
from privasso.paper._experiment import DataSet
from privasso.paper._run import run


def test_critical(tmp_path):
    experiment = CriticalExperiment(
        ("uniform", "lognormal"), ("isotropic", "gram"), n_features=60, samples=3
    )
    table = run({"map": experiment}, store=tmp_path)["map"]
    assert table.height == 4
    for row in table.iter_rows(named=True):
        law = {"uniform": pv.Uniform(), "lognormal": pv.LogNormal()}[row["law"]]
        design = {"isotropic": pv.Isotropic, "gram": pv.Gram}[row["design"]](1.0)
        ratios = []
        for unit in experiment.units():
            if (unit.parameters["law"], unit.parameters["design"]) == (row["law"], row["design"]):
                d = DataSet.draw(unit.parameters)
                eta = d.z * np.sqrt(design.variances(d.sample.v))
                edge = pv.critical_lambda(d.sample.F, eta)
                ratios.append(edge)
                # The edge is where the solver's answer changes.
                below, above = (
                    pv.solve(d.sample.F, d.sample.y, part * edge, eta, throw=False).status
                    for part in (0.98, 1.02)
                )
                assert (below, above) == (pv.Status.UNBOUNDED, pv.Status.CONVERGED)
        assert row["ratio"] == pytest.approx(np.mean(ratios), rel=1e-9)
        assert row["ratio_median"] == pytest.approx(np.median(ratios), rel=1e-9)
        theory = pv.theory.critical_lambda_ratio(pv.Model(scales=law), design, n_features=60)
        assert row["ratio_theory"] == theory
        infinite = row["law"] == "uniform" and row["design"] == "isotropic"
        assert (row["ratio_limit"] is None) == infinite
