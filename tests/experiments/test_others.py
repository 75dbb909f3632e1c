"""Critical, PaperKkt and Leakage against what they are made of; certified answers; the store."""

import numpy as np
import pytest

import privasso as pv
from oracles import kkt
from privasso.experiments import Critical, Leakage, PaperKkt, Points, run, speed
from privasso.experiments._certified import Answer, _has_ray, certified
from privasso.experiments._data import DataSet, stream
from privasso.solvers import AmpPaper


def test_critical(tmp_path):
    experiment = Critical(("uniform", "lognormal"), ("isotropic", "gram"), n_features=60, samples=3)
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
        theory = pv.critical_lambda_ratio(pv.Model(scales=law), design, n_features=60)
        assert row["ratio_theory"] == theory
        infinite = row["law"] == "uniform" and row["design"] == "isotropic"
        assert (row["ratio_limit"] is None) == infinite


def test_paper_kkt(tmp_path):
    experiment = PaperKkt("lognormal", "gram", 0.5, 0.1, n_features=(60, 240), samples=5)
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
    # One data set of five: its violation is of the size of the mean.
    assert 0.2 < kkt(F, y, 0.5, eta, literal.x) / table["kkt"][1] < 5


def test_leakage(tmp_path):
    points = (("constant", "isotropic", 0.3, 0.1), ("lognormal", "gram", 0.4, 0.15))
    experiment = Leakage(points, n_features=100, samples=40, records=8)
    table = run({"leak": experiment}, store=tmp_path)["leak"]
    for row in table.iter_rows(named=True):
        assert row["exists"] == 40
        assert abs(row["onavekl_mc"] - row["onavekl"]) < 4 * row["onavekl_mc_se"]
        assert row["onavekl_mc_se"] < 0.2 * row["onavekl_mc"]
        assert row["onavekl_paper"] < row["onavekl"]


def test_leakage_of_one_data_set_from_two_densities(tmp_path):
    experiment = Leakage((("lognormal", "gram", 0.4, 0.15),), n_features=60, samples=2, records=3)
    row = run({"leak": experiment}, store=tmp_path)["leak"].row(0, named=True)
    means = []
    for k in range(2):
        larger = pv.Model(alpha=33 / 60, scales=pv.LogNormal())
        s = larger.sample(60, rng=stream(0, "leakage data lognormal 60", k))
        v2 = s.v**2
        sd = 0.15 * np.sqrt(v2 / v2.mean())
        eta = sd * stream(0, "leakage noise lognormal 60", k).standard_normal(60)
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


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"points": (("uniform", "gram", 0.2, 0.0),)}, "sigma must be positive"),
        ({"points": ()}, "points is empty"),
        ({"records": 500}, "records must not exceed the 200 rows"),
    ],
)
def test_bad_leakage(change, message):
    with pytest.raises(ValueError, match=message):
        Leakage(**({"points": (("uniform", "gram", 0.2, 0.1),)} | change))


@pytest.mark.parametrize("hard", ["all", "none", "blind"])
def test_certified_answers_do_not_depend_on_where_rays_are_sought(hard):
    s = pv.Model(0.5, scales=pv.Uniform()).sample(120, rng=3)
    z = np.random.default_rng(4).standard_normal(120)
    sigmas = np.tile(np.geomspace(0.05, 2.0, 12), 2)
    lams, groups = np.full(24, 0.3), np.repeat([0, 1], 12)
    directions = np.stack([z, z * s.v / np.sqrt(np.mean(s.v**2))], axis=1)
    etas = directions[:, groups] * sigmas
    mask = {"all": np.ones(24), "none": np.zeros(24), "blind": np.arange(24) % 5 == 0}[hard]
    answers, x = certified(s.F, s.y, lams, sigmas, groups, etas, mask.astype(bool))
    edges = np.array([pv.critical_lambda(s.F, direction) for direction in directions.T])
    expected = np.where(sigmas * edges[groups] > lams, Answer.UNBOUNDED, Answer.EXISTS)
    assert (answers == expected).all()
    assert set(expected.tolist()) == {Answer.EXISTS, Answer.UNBOUNDED}
    for k in range(24):
        if answers[k] == Answer.EXISTS:
            assert kkt(s.F, s.y, 0.3, etas[:, k], x[:, k]) <= 2e-8
        else:
            assert np.isnan(x[:, k]).all()


def test_the_linear_programme_decides_next_to_the_edge():
    s = pv.Model(0.5, scales=pv.LogNormal()).sample(80, rng=0)
    eta = pv.Gram(0.3).draw(s.v, rng=1)
    edge = pv.critical_lambda(s.F, eta)
    for part, expected in ((0.9999, True), (1.0001, False)):
        assert _has_ray(pv.Problem.from_labels(s.F, s.y, part * edge, eta)) == expected


@pytest.mark.slow
def test_faster_than_the_transcription():
    sigmas = tuple(np.geomspace(0.01, 0.5, 16).tolist())
    found = speed(Points(sigmas=sigmas, n_features=1000, samples=2), jobs=1)
    assert found.ratio > 1.0
    assert found.batch_ratio > 3.0
