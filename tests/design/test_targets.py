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


def test_a_choice_needs_columns():
    wide = pv.Model(alpha=0.5, rho=0.005, sigma_xi=0.05, scales=pv.Constant(1.0))
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
    ("target", "keyword"),
    [
        (pv.MaxLeakage(2.0), {"max_onavekl": 2.0}),
        (pv.MaxAdvantage(0.3), {"max_advantage": 0.3}),
        (pv.MaxError(0.1), {"max_error": 0.1}),
        (pv.Budget(LABELS), {"label_dp": LABELS}),
        (pv.Budget(LABELS, "objective"), {"label_dp": LABELS, "mechanism": "objective"}),
        (pv.Budget(RECORDS), {"record_dp": RECORDS}),
    ],
    ids=str,
)
def test_a_keyword_stands_for_its_target(target: Any, keyword: dict[str, Any]):
    model = pv.Model(alpha=10.0, scales=pv.Constant(1.0))
    one, other = pv.optimal_design(model, target), pv.optimal_design(model, **keyword)
    assert (one.lam, one.noise) == (other.lam, other.noise)


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
        (lambda: pv.optimal_design(MODEL), "target must be MaxLeakage"),
        (lambda: pv.optimal_design(MODEL, max_error=0.1, max_onavekl=1.0), "give one target"),
        (lambda: pv.optimal_design(MODEL, pv.MaxError(0.1), max_onavekl=1.0), "give one target"),
        (lambda: pv.optimal_design(MODEL, max_error=0.1, screen=1), "go with a budget"),
        (
            lambda: pv.optimal_design(MODEL, pv.Budget(RECORDS), scale_error=0.1),
            "leave scale_error out",
        ),
    ],
)
def test_refusals(make: Any, message: str):
    with pytest.raises(ValueError, match=message):
        make()
