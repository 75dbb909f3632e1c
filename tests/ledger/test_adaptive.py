"""Fits whose settings are chosen after looking at earlier releases keep the budget, too."""

import csv
import math
from pathlib import Path

import numpy as np
import pytest
from ledgers import mu_of
from parts import last_fit

import privasso as pv
from privasso.fit import FitOptions, plan_for

EPSILON, DELTA = 2.0, 1e-6
X = np.zeros((2000, 3))
RIDGES = (0.1, 0.4, 1.5, 3.0)
MANY = np.geomspace(0.1, 1.9, 20).tolist()  # with larger ones ramps are narrower than steps of Z
DATA = Path(__file__).parents[2] / "docs" / "data"


def planned(epsilon, delta, **settings):
    bounds = {"bounds": [(0, 1)] * 3, "y_bounds": (0, 1)}
    return plan_for(X, FitOptions(pv.RecordDP(epsilon, delta, **bounds, **settings))).guarantee


def objective(delta, t):
    return planned(1.1, delta, t=t, level=False)


def largest(ledger, t):
    """The fit with this ridge and the largest δ that the ledger admits."""

    def admitted(log_delta):
        try:
            ledger.after(objective(math.exp(log_delta), t))
        except pv.BudgetError:
            return False
        return True

    low, high = math.log(1e-9), math.log(0.1)
    if not admitted(low):
        return None
    for _ in range(6):
        middle = 0.5 * (low + high)
        low, high = (middle, high) if admitted(middle) else (low, middle)
    return objective(math.exp(low), t)


Z = np.linspace(-10.0, 10.0, 8001)
PHI = np.exp(-0.5 * Z * Z) / math.sqrt(2.0 * math.pi)


def exact_profile(c, t, epsilons):
    """δ of one record and no other, with against without, at the worst place of its ramp.

    Its residual is clipped but for a ramp, on which z moves by s(z); see the page on objective
    perturbation. Both densities are explicit, so this is what the mechanism really does.
    """
    best = np.zeros_like(epsilons)
    for place in np.linspace(0.0, 6.0, 9):
        s = np.clip(t / (1.0 + t) * (Z - place), -c, c)
        other = np.exp(-0.5 * (Z - s) ** 2) / math.sqrt(2.0 * math.pi)
        other = other * np.where(np.abs(s) < c, 1.0 / (1.0 + t), 1.0)
        gains = np.maximum(PHI - np.exp(epsilons)[:, None] * other, 0.0)
        best = np.maximum(best, gains.sum(axis=1) * (Z[1] - Z[0]))
    return best


@pytest.mark.parametrize("ridges", [RIDGES, pytest.param(MANY, marks=pytest.mark.slow)])
def test_a_ridge_that_is_chosen_after_the_first_release(ridges):
    """Whoever sees an unlikely first release takes another ridge than after a likely one."""
    ledger = pv.Ledger(EPSILON, DELTA)
    first = planned(0.7, DELTA, mechanism="statistics")
    ledger.charge(first)
    fits = [fit for t in ridges if (fit := largest(ledger, t)) is not None]
    assert len(fits) == len(ridges)
    mu, z = mu_of(first), np.linspace(-7.0, 7.0, 71)
    likely = np.exp(-0.5 * z * z) / math.sqrt(2.0 * math.pi) * (z[1] - z[0])
    left = EPSILON - (0.5 * mu * mu + mu * z)  # the loss of the first release, and what is left
    noises = [last_fit(fit) for fit in fits]
    profiles = [exact_profile(one.c, one.t, left) for one in noises]
    fixed = [float(likely @ profile) for profile in profiles]
    adaptive = float(likely @ np.max(profiles, axis=0))
    assert max(fixed) < adaptive  # the profiles cross
    assert 0.02 * DELTA < adaptive <= DELTA


@pytest.mark.parametrize("epsilon", [1.0, 5.0])
def test_small_deltas(epsilon):
    """A second fit has room where the first has used a part of the budget, however small δ is."""
    for delta in (1e-12, 1e-15):
        ledger = pv.Ledger(5.0, delta)
        fit = planned(epsilon / 5.0, delta)
        ledger.charge(fit)
        ledger.charge(fit)
        assert epsilon / 5.0 < ledger.spent() < 2.0 * epsilon / 5.0
        assert ledger.remaining > 0.5 * (5.0 - ledger.spent())


@pytest.mark.parametrize(
    ("name", "settings"),
    [("objective perturbation", {"level": False}), ("Gaussian noise", {"mechanism": "statistics"})],
)
def test_what_choosing_as_one_goes_costs(name, settings):
    """The table of the page, computed anew."""
    with (DATA / "ledger-cost.csv").open(encoding="utf-8", newline="") as file:
        written = {int(row["fits"]): row for row in csv.DictReader(file) if row["each"] == name}
    one = planned(1.0, 1e-6, **settings)
    assert sorted(written) == [2, 5, 20]
    for count, row in written.items():
        ledger = pv.Ledger(100.0, 1e-6)
        for _ in range(count):
            ledger.charge(one)
        declared = dict(pv.privacy.compose([one] * count).parameters)["epsilon"]
        assert float(row["chosen as one goes"]) == pytest.approx(ledger.spent(), rel=1e-3)
        assert float(row["declared"]) == pytest.approx(declared, rel=1e-3)
        assert declared < ledger.spent() < 1.1 * declared
