"""Kept statistics of records come back as they were, and anything off is refused."""

import json
import tracemalloc

import numpy as np
import pytest

import privasso as pv
from privasso.artefact import DocumentError, release_text
from privasso.fit import KeptStatistics

pytestmark = pytest.mark.filterwarnings("ignore::privasso.PrivacyWarning")
RNG = np.random.default_rng(0)
X = RNG.uniform(0.0, 1.0, (500, 3)) * [1.0, 10.0, 100.0]
Y = np.clip(X @ [0.5, 0.05, 0.0] + 0.1 * RNG.standard_normal(500), 0.0, 2.0)
SETTINGS = [
    {},
    {"scales": "private"},
    {"bounds": "private"},
    {"bounds": "private", "scales": "private", "share": 0.4},
    {"bounds": ["0/1", (0, 10), (0, 100)]},
]


def kept(fit_intercept=True, **settings):
    given = {"bounds": [(0, 1), (0, 10), (0, 100)], "y_bounds": (0, 2), **settings}
    privacy = pv.RecordDP(2.0, 1e-6, mechanism="statistics", **given)
    est = pv.PrivateLasso(privacy=privacy, random_state=1, fit_intercept=fit_intercept)
    return est.fit(X, Y).statistics_


@pytest.mark.parametrize("settings", SETTINGS, ids=str)
@pytest.mark.parametrize("fit_intercept", [True, False])
def test_round_trip(settings, fit_intercept, tmp_path):
    before = kept(fit_intercept, **settings)
    pv.save_release(before, tmp_path / "statistics.json")
    back = pv.load_release(tmp_path / "statistics.json")
    assert isinstance(back, KeptStatistics)
    assert back.guarantee == before.guarantee
    assert (back.lam, back.n_rows, back.feature_names) == (before.lam, before.n_rows, None)
    for lam in (None, 5.0, 200.0):
        one, other = before.solve(lam), back.solve(lam)
        np.testing.assert_array_equal(one.coef, other.coef)
        np.testing.assert_array_equal(one.coef_se, other.coef_se)
        assert one.intercept == other.intercept


@pytest.fixture(scope="module")
def document():
    return json.loads(release_text(kept()))


def loaded(document, tmp_path):
    (tmp_path / "s.json").write_text(json.dumps(document))
    return pv.load_release(tmp_path / "s.json")


def test_a_small_file_takes_little_memory(document, tmp_path):
    """One that states many columns, and has not the numbers for them."""
    wide = {**document, "n_features": 10_000, "low": [0] * 10_000, "high": [1] * 10_000}
    tracemalloc.start()
    with pytest.raises(DocumentError, match="matrix must be a list of 50025003 numbers"):
        loaded({**wide, "scaling": None}, tmp_path)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert peak < 10**7


def test_extreme_numbers_are_refused(document, tmp_path):
    matrix = [1e308, *document["matrix"][1:]]
    for change in ({"matrix": matrix}, {"sigma": 1e308}):
        with pytest.raises(DocumentError, match="which no release has"):
            loaded({**document, **change}, tmp_path)


def test_smaller_noise_than_stated_is_refused(document, tmp_path):
    for part in (0.5, 0.999):
        with pytest.raises(DocumentError, match="too small for their statement"):
            loaded({**document, "sigma": part * document["sigma"]}, tmp_path)
    loaded(document, tmp_path)


BAD = [
    ({"sigma": 0.0}, "sigma must be positive"),
    ({"sigma": "1"}, "sigma"),
    ({"matrix": [1.0]}, "matrix must be a list of 15 numbers"),
    ({"low": [0.0, 0.0]}, "low must be a list of 3 numbers"),
    ({"low": [2.0, 0.0, 0.0]}, "must not decrease"),
    ({"scaling": {"origin": [0, 0, 0], "scale": [1, 1, -1]}}, "zero or positive"),
    ({"scaling": 3}, "scaling must be an object"),
    ({"fit_intercept": 1}, "true or false"),
    ({"n_features": 0}, "n_features"),
    ({"lam": -1.0}, "lam must be positive"),
    ({"noise": None}, "unknown field 'noise'"),
    ({"version": 3}, "version"),
    ({"feature_names": ["a", "a", "b"]}, "name twice"),
]


@pytest.mark.parametrize(("change", "message"), BAD)
def test_what_is_off_is_refused_in_a_sentence(document, tmp_path, change, message):
    with pytest.raises(DocumentError, match=message) as caught:
        loaded({**document, **change}, tmp_path)
    assert "\n" not in str(caught.value)


def test_every_field_is_needed(document, tmp_path):
    for name in document:
        if name in ("format", "version"):
            continue
        with pytest.raises(DocumentError):
            loaded({key: value for key, value in document.items() if key != name}, tmp_path)


def test_another_kind_of_guarantee_is_refused(document, tmp_path):
    privacy = pv.LabelDP(1.0, 1e-6, (0.0, 2.0))
    other = pv.PrivateLasso(50.0, privacy).fit(X, Y).guarantee_.to_dict()
    with pytest.raises(DocumentError, match="a guarantee of records for sums"):
        loaded({**document, "guarantee": other}, tmp_path)
