"""An attack on the released vector: it must not beat the claim, and must beat a false one."""

import math

import numpy as np
import pytest
from scipy import stats

import privasso as pv
from privasso.accounting import gaussian_delta
from privasso.noise import Noise
from privasso.operators import Covariates
from privasso.planning import calibrate, release_labels, release_mechanism
from privasso.planning._label_products import LabelProducts
from privasso.queries import Answering, bit_source

LEVEL = 1e-4  # probability that the lower bound exceeds the true value
#: Design, whether there is an intercept, releases, and the ε that they refute at least.
CASES = [
    pytest.param(pv.PowerLaw(1.0, 0.5), False, 6000, 0.5, marks=pytest.mark.slow),
    pytest.param(pv.PowerLaw(1.0, 0.5), True, 6000, 0.5, marks=pytest.mark.slow),
    pytest.param(pv.Shaped(), True, 6000, 0.4, marks=pytest.mark.slow),
    (pv.Shaped(), True, 2000, 0.3),
]


def bound(privacy: pv.LabelDP, design: Noise, fit_intercept: bool, count: int, seed: int) -> float:
    """Lower bound on ε from the likelihood-ratio test between two neighbouring label sets."""
    rng = np.random.default_rng(seed)
    F = rng.standard_normal((6, 3)) * [0.1, 1.0, 10.0] + [0.0, 2.0, 5.0]
    rows = Covariates(F, centre=fit_intercept)
    calibration = calibrate(rows, privacy, design)
    program = release_mechanism(privacy).program(rows, calibration)

    def releases(y: np.ndarray, count: int) -> np.ndarray:
        table, bits = rows.labelled(y), bit_source(rng)
        made = (program(Answering(table, bits), 0.0) for _ in range(count))
        return np.array([np.append(r.b, r.label_sum or 0.0) for r in made])

    one = release_labels(rows, np.zeros(6), privacy, calibration, fit_intercept=fit_intercept)
    precision = np.zeros((4, 4))
    precision[:3, :3] = np.linalg.inv(one.covariance.matrix())
    precision[3, 3] = (one.sigma_sum or 1.0) ** -2
    weights = np.ones(6) if calibration.weights is None else calibration.weights
    matrix = weights[:, None] * np.column_stack(
        [F - F.mean(axis=0), np.ones(6)] if fit_intercept else [F, 0 * F[:, 0]]
    )
    if isinstance(design, pv.Shaped):
        assert np.sum(weights < 1.0 - 1e-9) >= 3  # rows are shrunk
    worst = int(np.argmax(np.sum(matrix * (matrix @ precision), axis=1)))

    low = rng.random(6)
    high = low.copy()
    low[worst], high[worst] = 0.0, 1.0
    row, means = matrix[worst], matrix.T @ (low - 0.5)
    direction = precision @ row  # of the log likelihood ratio
    unit = math.sqrt(direction @ row)
    centre = direction @ (means + row / 2)
    score_low, score_high = ((releases(y, count) @ direction - centre) / unit for y in (low, high))
    return refuted_epsilon(score_low, score_high, privacy.delta)


def refuted_epsilon(score_low: np.ndarray, score_high: np.ndarray, delta: float) -> float:
    """Largest ε refuted: log((P₁(reject) − δ)/P₀(reject)) with Clopper–Pearson limits.

    The thresholds are fixed beforehand, and the level is shared among them.
    """
    thresholds = np.linspace(-1.0, 3.0, 9)
    level, best = LEVEL / (2 * thresholds.size), -math.inf
    count = score_low.size
    for t in thresholds:
        hits, false = int(np.sum(score_high > t)), int(np.sum(score_low > t))
        power = stats.beta.ppf(level, hits, count - hits + 1) if hits else 0.0
        size = stats.beta.ppf(1 - level, false + 1, count - false) if false < count else 1.0
        if power > delta:
            best = max(best, math.log((power - delta) / size))
    return best


@pytest.mark.parametrize(("design", "fit_intercept", "count", "least"), CASES, ids=str)
def test_the_claim_stands_and_half_the_noise_is_caught(
    design, fit_intercept, count, least, monkeypatch
):
    privacy = pv.LabelDP(1.0, 0.02, (0.0, 1.0), mechanism="release")
    honest = bound(privacy, design, fit_intercept, count, seed=1)
    assert honest < 1.0
    assert honest > least  # not blind: it refutes claims not far below the true one
    # A mechanism with a fault: it believes that twice the sensitivity is allowed.
    monkeypatch.setattr(LabelProducts, "mu", 2.0 * privacy.mu)
    faulty = bound(privacy, design, fit_intercept, count, seed=2)
    assert faulty > 1.0
    print(f"\nbounds at epsilon = 1: {honest:.3f} as built, {faulty:.3f} with half the noise")
    assert gaussian_delta(1.0, 2.0 * privacy.mu) > 2 * 0.02
