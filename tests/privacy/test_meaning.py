"""What a guarantee means in plain words, against tests that are as good as any can be."""

import math
import re

import numpy as np
import pytest
from scipy import stats

import privasso as pv
from privasso.accounting import ApproximateLoss, GaussianLoss, ObjectiveLoss, true_alarms
from privasso.fit import FitOptions, plan_for
from privasso.privacy import Terms, compose, meaning
from privasso.queries import LABEL_REPLACED

FALSE = 0.05
X = np.random.default_rng(0).random((2000, 3))


def stated(text):
    """The rate of true alarms, and the one that ε and δ alone would allow."""
    found = re.search(r"(?:at most|possibly) ([\d.]+) %", text)
    plain = re.search(r"alone it would be ([\d.]+) %", text)
    assert found is not None
    return float(found[1]), None if plain is None else float(plain[1])


@pytest.mark.parametrize("epsilon", [0.1, 1.0, 2.5, 3.0, 5.0, 10.0])
def test_where_only_epsilon_is_known_randomised_response_attains_the_bound(epsilon):
    # Its curve is straight from (0, 0) to (1 − truth, truth), and from there to (1, 1).
    truth = math.exp(epsilon) / (1.0 + math.exp(epsilon))
    rate = float(np.interp(FALSE, [0.0, 1.0 - truth, 1.0], [0.0, truth, 1.0]))
    assert true_alarms(ApproximateLoss(epsilon, 0.0), FALSE) == pytest.approx(rate, rel=1e-9)
    numbers = {"delta": 1e-9, "epsilon": epsilon, "n_rows": 9, "y_low": 0.0, "y_high": 1.0}
    loss = ApproximateLoss(epsilon, 1e-9)
    known = pv.Guarantee(LABEL_REPLACED, tuple(numbers.items()), (loss,), released=("counts",))
    text = meaning(known)
    found, plain = stated(text)
    assert plain is None
    assert "alone, as nothing else is known" in text
    digits = len(f"{found:.10g}".partition(".")[2])
    assert found - 10.0**-digits - 1e-9 <= 100.0 * rate <= found + 1e-6
    assert ("rules out little" in text) == (rate > 0.9)


@pytest.mark.parametrize("mu", [0.05, 0.24, 0.65, 2.0])
def test_gaussian_mechanisms(mu):
    """The best test of two normal laws is a threshold."""
    exact = float(stats.norm.cdf(stats.norm.ppf(FALSE) + mu))
    assert exact <= true_alarms(GaussianLoss(mu), FALSE) <= exact + 5e-4


def best_test(c, t, place, first):
    """True alarms of the likelihood ratio test of one record and no other, by quadrature."""
    z = np.linspace(-12.0, 12.0, 48_001)
    slope = t / (1.0 + t) if first == "with" else t
    s = np.clip(slope * (z - place), -c, c)
    inside = np.abs(s) < c
    density = np.exp(-0.5 * z * z)
    if first == "with":
        other = np.exp(-0.5 * (z - s) ** 2) * np.where(inside, 1.0 - slope, 1.0)
    else:
        other = np.exp(-0.5 * (z + s) ** 2) * np.where(inside, 1.0 + slope, 1.0)
    order = np.argsort(other / density)
    density, other = (x[order] / x.sum() for x in (density, other))
    return float(np.interp(FALSE, np.cumsum(other), np.cumsum(density)))


@pytest.mark.parametrize(("c", "t"), [(0.2, 0.3), (0.6, 1.4)])
def test_perturbed_objectives(c, t):
    bound = true_alarms(ObjectiveLoss(c, t, "records"), FALSE)
    found = [best_test(c, t, place, first) for place in np.linspace(0.0, 4.0, 9)
             for first in ("with", "without")]  # fmt: skip
    assert FALSE < max(found) <= bound
    assert max(found) - FALSE > 0.5 * (bound - FALSE)


@pytest.mark.parametrize(("epsilon", "most"), [(1.0, 9.0), (3.0, 25.0)])
@pytest.mark.parametrize("kind", ["record", "label"])
def test_a_fit_says_what_its_own_profile_allows(kind, epsilon, most):
    privacy = {
        "record": pv.RecordDP(epsilon, 1e-6, bounds=[(0, 1)] * 3, y_bounds=(0, 1)),
        "label": pv.LabelDP(epsilon, 1e-6, y_bounds=(0, 1), mechanism="objective"),
    }[kind]
    guarantee = plan_for(X, FitOptions(privacy)).guarantee
    text = meaning(guarantee)
    found, plain = stated(text)
    assert plain is not None
    assert 5.0 < found < most < plain
    assert f"one person's {kind}" in text
    assert f"ε = {epsilon:g} and δ = 1e-06 alone" in text


def test_other_statements():
    terms = Terms(fit_intercept=True, seeded=False, n_rows=1000)
    one = pv.LabelDP(1.0, 1e-6, (0, 1)).guarantee(terms)
    alone, several, pair = (stated(meaning(g))[0] for g in (one, compose([one] * 4), one.group(2)))
    assert alone < several == pair  # 2μ both
    with pytest.raises(ValueError, match="bounds no loss"):
        meaning(pv.OnAverage(1.0).guarantee(terms))
