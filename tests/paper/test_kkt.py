"""`KktExperiment` against the KKT violation of a single run of Algorithm 1."""

import privasso as pv
from oracles import kkt
from privasso.paper._experiment import DataSet
from privasso.paper._run import run
from privasso.paper._sizes import KktExperiment
from privasso.solvers import AmpPaper


def test_paper_kkt(tmp_path):
    experiment = KktExperiment(("lognormal",), ("gram",), 0.5, 0.1, n_features=(60, 240), samples=5)
    table = run({"kkt": experiment}, store=tmp_path)["kkt"]
    assert table["n_features"].to_list() == [60, 240]
    assert (table["converged"] >= 3).all()
    assert (table["kkt_exact"] <= 1e-8).all()
    assert table["kkt"].is_between(1e-3, 0.5).all()
    assert table["distance"].is_between(1e-4, 0.5).all()

    d = DataSet.draw(experiment.units()[-1].parameters)
    F, y, eta = d.sample.F, d.sample.y, 0.1 * d.direction("gram")
    literal = pv.solve(F, y, 0.5, eta, method=AmpPaper(rng=0), throw=False)
    assert literal.status is pv.Status.FIXED_POINT
    # The violation on one of the five data sets is of the size of their mean.
    assert 0.2 < kkt(F, y, 0.5, eta, literal.x) / table["kkt"][1] < 5
