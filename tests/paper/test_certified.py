"""Certified answers against the linear programme."""

import numpy as np
import pytest

import privasso as pv
from oracles import kkt
from privasso.paper._grid import Answer, GridPoints, _has_ray, certified


@pytest.mark.parametrize("hard", ["all", "none", "blind"])
def test_certified_answers_do_not_depend_on_where_rays_are_sought(hard):
    s = pv.Model(0.5, scales=pv.Uniform()).sample(120, rng=3)
    z = np.random.default_rng(4).standard_normal(120)
    sigmas = np.tile(np.geomspace(0.05, 2.0, 12), 2)
    lams, groups = np.full(24, 0.3), np.repeat([0, 1], 12)
    directions = np.stack([z, z * s.v / np.sqrt(np.mean(s.v**2))], axis=1)
    etas = directions[:, groups] * sigmas
    mask = {"all": np.ones(24), "none": np.zeros(24), "blind": np.arange(24) % 5 == 0}[hard]
    points = GridPoints(groups, lams, sigmas, etas, (etas, etas))  # starts are not used
    answers, x = certified(s.F, s.y, points, mask.astype(bool))
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
        assert _has_ray(pv.problem.Problem.from_labels(s.F, s.y, part * edge, eta)) == expected
