"""No fit is refused for what the data hold, and what is certified about a minimiser is true."""

from typing import Any

import mpmath as mp
import numpy as np
import pytest
from adversarial import Case, Certified, certified

from privasso.problem import Logistic

DIGITS = 60
#: The same labels are made up for several fits.
pytestmark = pytest.mark.filterwarnings("ignore::privasso.PrivacyWarning")


class Exactly:
    """The problem of a certificate in numbers of 60 digits."""

    def __init__(self, problem: Certified) -> None:
        self.logistic, self.kappa = problem.loss == Logistic(), mp.mpf(problem.loss.kappa)
        self.offset = mp.mpf(getattr(problem.loss, "offset", 0.0))
        self.G = [[mp.mpf(v) for v in row] for row in problem.G.tolist()]
        self.y = [mp.mpf(v) for v in problem.y.tolist()]
        weights = np.ones(len(self.y)) if problem.weights is None else problem.weights
        self.w = [mp.mpf(v) for v in weights.tolist()]
        self.t = [mp.mpf(v) for v in problem.thresholds.tolist()]
        eta, point = (
            mp.matrix([mp.mpf(v.numerator) / v.denominator for v in values])
            for values in (problem.eta, problem.point)
        )
        self.n, self.ridge = len(point), mp.mpf(problem.ridge)
        self.L = mp.eye(self.n) if problem.L is None else mp.matrix(problem.L.tolist())
        self.S, self.eta = self.ridge * (self.L * self.L.T), self.L * eta
        self.point, self.start = point, list(mp.lu_solve(self.L.T, point))

    def value(self, x):
        """The objective."""
        total = mp.fdot(x, self.S * mp.matrix(x)) / 2 + mp.fdot(self.eta, x)
        total += mp.fsum(t * abs(v) for t, v in zip(self.t, x, strict=True))
        for row, label, w in zip(self.G, self.y, self.w, strict=True):
            fitted: Any = mp.fdot(row, x)
            if self.logistic:
                above = fitted if fitted > 0 else 0
                total += w * (mp.log(1 + mp.exp(-abs(fitted))) + above - label * fitted)
            else:
                r = abs(label - fitted)
                total += w * self.offset * (label - fitted)
                total += w * (r * r / 2 if r <= self.kappa else self.kappa * (r - self.kappa / 2))
        return total

    def derivatives(self, x):
        """The gradient of the smooth part, and its matrix of second derivatives."""
        slope, H = self.S * mp.matrix(x) + self.eta, self.S.copy()
        for row, label, w in zip(self.G, self.y, self.w, strict=True):
            fitted = mp.fdot(row, x)
            if self.logistic:
                chance = 1 / (1 + mp.exp(-fitted))
                psi, bend = label - chance, chance * (1 - chance)
            else:
                r = label - fitted
                psi = max(-self.kappa, min(self.kappa, r)) + self.offset
                bend = abs(r) <= self.kappa
            for i in range(self.n):
                slope[i] -= w * psi * row[i]
                if bend and row[i]:
                    for j in range(self.n):
                        H[i, j] += w * bend * row[i] * row[j]
        return slope, H

    def minimiser(self):
        """Newton's method with shorter steps, until the conditions hold to 45 digits."""
        x, t = self.start, self.t
        for _ in range(300):
            slope, H = self.derivatives(x)
            signs = [
                mp.sign(v) if v else (-mp.sign(g) if abs(g) > lam else 0)
                for v, g, lam in zip(x, slope, t, strict=True)
            ]
            free = [i for i in range(self.n) if signs[i] or not t[i]]
            rest = mp.matrix([slope[i] + t[i] * signs[i] for i in free])
            if not free or mp.norm(rest) <= mp.mpf(10) ** -45 * self.ridge:
                return mp.matrix(x)
            step = mp.lu_solve(mp.matrix([[H[i, j] for j in free] for i in free]), -rest)
            before, length = self.value(x), mp.mpf(1)
            while True:
                moved = list(x)
                for i, d in zip(free, step, strict=True):
                    there = x[i] + length * d
                    moved[i] = mp.mpf(0) if t[i] and there * signs[i] < 0 else there
                if self.value(moved) <= before or length < mp.mpf(10) ** -20:
                    break
                length /= 2
            x = moved
        raise AssertionError("the minimiser was not found")


def distance(problem: Certified) -> mp.mpf:
    """How far the point is from the minimiser, in the norm of the claim."""
    with mp.workdps(DIGITS):
        exactly = Exactly(problem)
        return mp.norm(exactly.L.T * exactly.minimiser() - exactly.point)


def check(seed: int, quantile: bool = False) -> str | None:
    """Check one certificate; None where the fit has none."""
    case = Case.of(seed, most_rows=200, most_columns=6)
    with pytest.MonkeyPatch.context() as patch:
        problem = certified(case.of_quantile() if quantile else case, patch)
    if problem is None:
        return None
    assert distance(problem) <= problem.off
    return type(problem.loss).__name__


@pytest.mark.parametrize(
    "start", [0, *(pytest.param(start, marks=pytest.mark.slow) for start in (20, 40))]
)
def test_no_fit_is_refused(start):
    for seed in range(start, start + 20):
        Case.of(seed, most_rows=1000, most_columns=20).fit()


@pytest.mark.slow
@pytest.mark.parametrize("start", range(0, 10_000, 500))
def test_none_of_many_fits_is_refused(start):
    for seed in range(start, start + 500):
        Case.of(seed, most_rows=100_000 if seed % 50 == 0 else 3000).fit()


def test_certificates_are_true():
    assert None not in [check(seed) for seed in (1, 2)]
    assert [check(seed, quantile=True) for seed in (1, 2, 3)] == ["Quantile"] * 3


@pytest.mark.slow
def test_two_hundred_certificates_are_true():
    found = [check(seed) for seed in range(1000, 1300)]
    assert sum(loss is not None for loss in found) >= 200
    assert {"Huber", "Logistic"} <= set(found)


@pytest.mark.slow
def test_sixty_certificates_of_quantiles_are_true():
    assert [check(seed, quantile=True) for seed in range(60)].count("Quantile") >= 50
