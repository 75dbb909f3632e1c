"""Designs and covariances as plain values: what is written comes back, the rest is refused."""

import json
from dataclasses import dataclass

import numpy as np
import pytest

import privasso as pv
from privasso.artefact import DocumentError
from privasso.noise import (
    Diagonal,
    Factored,
    covariance_from_dict,
    covariance_to_dict,
    noise_from_dict,
    noise_to_dict,
)

TABLE = {"name": "Tabulated", "sigma": 1.0, "log_v": [0.0], "log_profile_at": [0.0]}


@pytest.mark.parametrize(
    "noise",
    [
        pv.Isotropic(0.3),
        pv.Gram(0.3),
        pv.PowerLaw(0.1, 1 / 3),
        pv.Tabulated(0.5, (0.1, 1.0, 2.0), (0.0, 2.0, 1 / 3)),
    ],
    ids=repr,
)
def test_designs_come_back_exactly(noise):
    again = noise_from_dict(json.loads(json.dumps(noise_to_dict(noise))))
    assert again == noise
    assert type(again) is type(noise)


def test_a_design_of_the_callers_own_is_not_described():
    @dataclass(frozen=True)
    class Own(pv.PowerLaw):
        pass

    assert noise_to_dict(Own(1.0, 1.0)) is None
    assert noise_from_dict(None) is None


@pytest.mark.parametrize(
    ("values", "message"),
    [
        ([], "must be an object"),
        ({}, "lacks the field 'name'"),
        ({"name": "os.system"}, "named one of"),
        ({"name": ["Gram"]}, "named one of"),
        ({"name": "Gram", "sigma": 0.1}, "lacks the field 'gamma'"),
        ({"name": "Gram", "sigma": -0.1, "gamma": 2.0}, "sigma must be zero or positive"),
        ({"name": "Gram", "sigma": 0.1, "gamma": 1.0}, "contradicts the name"),
        ({"name": "Gram", "sigma": 1e-200, "gamma": 2.0}, "keeps full precision"),
        (TABLE | {"more": 1}, "unknown field 'more'"),
        (TABLE | {"log_v": "0"}, "must be a list"),
        (TABLE | {"log_v": [True]}, "must be a real number"),
        (TABLE | {"log_v": [], "log_profile_at": []}, "1 to 10000 entries"),
        (TABLE | {"sigma": "1"}, "sigma must be a real number"),
        (TABLE | {"log_v": [10**400]}, "must be finite"),
        (TABLE | {"log_v": [0.0] * 20_000}, "1 to 10000 entries"),
        (TABLE | {"log_v": [1.0, 0.0], "log_profile_at": [0.0, 0.0]}, "must increase"),
    ],
)
def test_bad_designs(values, message):
    with pytest.raises(DocumentError, match=message):
        noise_from_dict(values)


@pytest.mark.parametrize(
    "covariance",
    [
        Diagonal([0.0, 1 / 3, 1e-200]),
        Factored(np.array([[1.0, 0.0], [1 / 3, 2.0], [0.1, 1e-7]])),
        Factored.from_matrix(np.eye(3) + 0.1),
    ],
    ids=["diagonal", "factored", "full"],
)
def test_covariances_come_back_exactly(covariance):
    again = covariance_from_dict(json.loads(json.dumps(covariance_to_dict(covariance))), 3)
    assert type(again) is type(covariance)
    np.testing.assert_array_equal(again.matrix(), covariance.matrix())


@pytest.mark.parametrize(
    ("values", "message"),
    [
        (None, "must be an object"),
        ({"form": "other"}, "diagonal or factored"),
        ({"form": "diagonal", "variances": [1.0, 1.0]}, "list of 3 numbers"),
        ({"form": "diagonal", "variances": [1.0, 1.0, -1.0]}, "zero or positive"),
        ({"form": "diagonal", "variances": [1.0, 1.0, 1.0], "rank": 1}, "unknown field"),
        ({"form": "factored", "rank": 4, "root": [0.0] * 12}, "from 1 to 3"),
        ({"form": "factored", "rank": 1, "root": [0.0] * 3}, "linearly independent"),
        ({"form": "factored", "rank": 2, "root": [1.0] * 6}, "linearly independent"),
    ],
)
def test_bad_covariances(values, message):
    with pytest.raises(DocumentError, match=message):
        covariance_from_dict(values, 3)
