"""Targets as values: they mean what the keywords mean, and a new one needs no other file."""

import math
from dataclasses import dataclass
from typing import Any

import pytest

import privasso as pv
from privasso.design._limits import Setting, Target
from privasso.privacy import RecordBudget

MODEL = pv.Model(alpha=10.0, scales=pv.LogNormal(0.0, 0.5))
LABELS = pv.LabelDP(3.0, 1e-5, (-1.0, 1.0))
RECORDS = RecordBudget(1.0, 1e-6)
WRONG: Any = "output"


@pytest.mark.parametrize(
    ("target", "keywords"),
    [
        (pv.MaxLeakage(1.5), {"max_onavekl": 1.5}),
        (pv.MaxAdvantage(0.2), {"max_advantage": 0.2}),
        (pv.MaxError(0.05), {"max_error": 0.05}),
        (pv.Budget(LABELS), {"label_dp": LABELS}),
        (pv.Budget(LABELS, "release"), {"label_dp": LABELS, "mechanism": "release"}),
        (pv.Budget(LABELS, "objective"), {"label_dp": LABELS, "mechanism": "objective"}),
        (pv.Budget(RECORDS), {"record_dp": RECORDS}),
    ],
)
@pytest.mark.parametrize("given", [{}, {"lam": 2.0}, {"gamma": 1.0, "n_features": 100}])
def test_a_target_is_what_its_keyword_means(target: Any, keywords: Any, given: Any):
    best, same = (
        pv.optimal_design(MODEL, target, **given),
        pv.optimal_design(MODEL, **keywords, **given),
    )
    assert type(best) is type(same)
    assert (best.lam, best.noise, best.E) == (same.lam, same.noise, same.E)


def test_a_choice_of_columns():
    wide = pv.Model(alpha=0.5, rho=0.005, sigma_xi=0.05, scales=pv.Constant(1.0))
    best = pv.optimal_design(wide, pv.Budget(RECORDS, screen=20), n_features=2000)
    assert best == pv.optimal_design(wide, record_dp=RECORDS, screen=20, n_features=2000)
    with pytest.raises(ValueError, match="n_features must be at least 2"):
        pv.optimal_design(wide, pv.Budget(RECORDS, screen=1), n_features=1)


def test_another_target_is_a_class_of_its_own():
    @dataclass(frozen=True)
    class NullError(Target[float]):
        factor: float

        def design(self, setting: Setting) -> float:
            return self.factor * setting.null_error

    expected = 2.0 * (0.1 * math.exp(0.5) + 0.01)
    assert pv.optimal_design(MODEL, NullError(2.0)) == pytest.approx(expected)


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: pv.MaxLeakage(0.0), "onavekl must be positive"),
        (lambda: pv.MaxAdvantage(1.5), "advantage is a probability"),
        (lambda: pv.MaxError(math.nan), "error must be finite"),
        (lambda: pv.Budget(WRONG), "privacy must be a budget such as LabelDP"),
        (lambda: pv.Budget(RECORDS, "release"), "whole records"),
        (lambda: pv.Budget(LABELS, WRONG), "mechanism must be one of"),
        (lambda: pv.optimal_design(MODEL, WRONG), "target must be MaxLeakage"),
        (lambda: pv.optimal_design(MODEL, pv.MaxError(0.05), max_onavekl=1.0), "leave out max_on"),
        (lambda: pv.optimal_design(MODEL, pv.Budget(RECORDS), family="free"), "leave out"),
    ],
)
def test_refusals(make: Any, message: str):
    with pytest.raises(ValueError, match=message):
        make()


def test_an_unknown_keyword_is_named():
    with pytest.raises(TypeError, match="optimal_design has no argument 'max_kl'"):
        pv.optimal_design(MODEL, max_kl=1.0)
