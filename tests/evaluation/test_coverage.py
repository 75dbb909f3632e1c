"""How often intervals hold what they are about, on populations that are known completely."""

from functools import cache

import numpy as np
import pytest

import privasso as pv
from bench.evaluate import CLASSES, KINDS, LINEAR, Population, skewed, two_classes
from privasso.evaluation._evaluate import _names, _program
from privasso.evaluation._rows import released
from privasso.queries import Answering, bit_source

pytestmark = pytest.mark.filterwarnings("ignore::privasso.PrivacyWarning")


@cache
def population(binary) -> tuple[Population, dict[str, float]]:
    found = two_classes(20_000) if binary else skewed("skewed", 20_000)
    return found, found.truth()


def covered(binary, kind, epsilon, n_rows, repetitions):
    one, truth = population(binary)
    held = {name: [] for name in truth}
    for seed in range(repetitions):
        metrics = CLASSES if binary else LINEAR
        found = one.evaluated(kind, epsilon, n_rows, seed, metrics)
        for name, (low, high) in found.intervals.items():
            held[name].append(low <= truth[name] <= high)
    return {name: np.mean(each) for name, each in held.items()}


def inside(kind, epsilon, n_rows, repetitions):
    """The share of the population within prediction intervals, on average."""
    one, _ = population(False)
    distances = np.abs(np.clip(one.y, *one.y_bounds) - one.predictions)
    found = []
    for seed in range(repetitions):
        radius = one.evaluated(kind, epsilon, n_rows, seed, ("prediction-interval",))
        found.append(np.mean(distances <= radius.values["prediction-interval"]))
    return np.mean(found), np.std(found) / np.sqrt(repetitions)


@pytest.mark.parametrize("kind", KINDS)
def test_intervals_hold_the_metrics_of_the_population(kind):
    for binary, repetitions in ((False, 16), (True, 4)):
        for share in covered(binary, kind, 3.0, 2000, repetitions).values():
            assert share > 0.95 - 4.0 * np.sqrt(0.05 * 0.95 / repetitions)
    share, error = inside(kind, 3.0, 2000, 8)
    assert 0.9 - 4.0 * error < share < 0.92


@pytest.mark.slow
@pytest.mark.timeout(900)
@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("epsilon", [1.0, 3.0])
def test_intervals_hold_them_as_often_as_they_say(kind, epsilon):
    for binary in (False, True):
        for n_rows in (500, 5000):
            for share in covered(binary, kind, epsilon, n_rows, 300).values():
                assert share > 0.95 - 3.5 * np.sqrt(0.05 * 0.95 / 300)
    share, error = inside(kind, epsilon, 5000, 200)
    assert 0.9 - 3.0 * error < share < 0.91


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("binary", [False, True], ids=["linear", "classes"])
def test_likelihoods_of_the_answers_tell_neighbours_apart_as_the_budget_allows(kind, binary):
    """The mean log likelihood ratio of Gaussian mechanisms of sensitivity μ is μ²/2 at most."""
    one, _ = population(binary)
    privacy = one.privacy(kind, 3.0)
    model = released(one.model)
    metrics = CLASSES if binary else (*LINEAR, "prediction-interval")
    program = _program(model, model, privacy, _names(metrics, model), 0.9)
    X, y = one.drawn(np.random.default_rng(0), 300)
    other = y.copy()
    other[0] = np.nan if privacy.pair.empties else (y[0] < 0.5) * 3.0 - 1.0
    rows, neighbour = (pv.blocks.RowBlocks.of_arrays(X, labels) for labels in (y, other))
    ratios = []
    for seed in range(24):
        ask = Answering(rows, bit_source(np.random.default_rng(seed)))
        program(ask)
        ratios.append(
            sum(
                float((query.log_likelihoods(rows, [a]) - query.log_likelihoods(neighbour, [a]))[0])
                for query, a in ask.transcript
            )
        )
    mu = pv.accounting.sensitivity_for(3.0, 1e-6)
    assert 0.0 < np.mean(ratios) < 0.5 * mu**2 + 4.0 * mu / np.sqrt(24)
    assert np.std(ratios) < 1.7 * mu
