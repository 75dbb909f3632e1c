"""The controls of the page: what each sets, its range and where it starts."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal


@dataclass(frozen=True)
class Control:
    """A slider with a field for exact values.

    - `label`, `help`: what it is called, and what it means in one sentence.
    - `low`, `high`: range of the slider. The field takes values beyond it where they make sense.
    - `scale`: how positions of the slider become values.
    - `whole`: whether only whole numbers make sense.
    """

    name: str
    label: str
    help: str
    low: float
    high: float
    start: float
    scale: Literal["log", "linear"] = "log"
    whole: bool = False


DATA = (
    Control("alpha", "Rows per column, α = M/N", "Rows divided by columns.", 0.05, 100.0, 0.5),
    Control("rho", "True coefficients, ρ", "Fraction that is not zero.", 0.005, 1.0, 0.1),
    Control(
        "sigma_xi", "Label noise, σ_ξ", "Standard deviation of what the columns cannot explain.",
        0.0, 1.0, 0.1, "linear",
    ),
)  # fmt: skip
LAW = {
    "uniform": (
        Control("low", "Smallest scale", "Lower end of the interval.", 0.0, 2.0, 0.0, "linear"),
        Control("high", "Largest scale", "Upper end of the interval.", 0.1, 4.0, 1.0, "linear"),
    ),
    "lognormal": (
        Control("mu", "Mean of log s", "Centre of the law.", -2.0, 2.0, 0.0, "linear"),
        Control(
            "spread", "Deviation of log s", "How much scales differ.", 0.05, 2.0, 0.5, "linear"
        ),
    ),
    "constant": (Control("value", "The scale", "The same for all columns.", 0.1, 10.0, 1.0),),
}
CORRELATION = {
    "ar": (
        Control(
            "neighbour_r", "Correlation of neighbours", "It falls with the distance of columns.",
            0.0, 0.99, 0.8, "linear",
        ),
    ),
    "blocks": (
        Control(
            "block_size", "Columns in a block", "A whole number.", 2.0, 50.0, 10.0, "linear", True
        ),
        Control(
            "block_r", "Correlation within a block", "Blocks do not correlate with one another.",
            0.0, 0.95, 0.5, "linear",
        ),
    ),
    "factors": (
        Control(
            "n_factors", "Number of factors", "A whole number.", 1.0, 50.0, 5.0, "linear", True
        ),
        Control(
            "factor_share", "Share of the factors", "Part of the variance of the columns that is "
            "due to the factors.", 0.0, 0.95, 0.5, "linear",
        ),
    ),
}  # fmt: skip
ESTIMATE = (
    Control("lam", "Penalty, λ", "Larger values give fewer coefficients.", 1e-3, 100.0, 0.2),
    Control(
        "gamma", "Shape of the noise, γ",
        "Its variance grows as the γ-th power of the squared scale: 0 is isotropic, 2 the "
        "Gram-based design.", 0.0, 3.0, 2.0, "linear",
    ),
)  # fmt: skip
NOISE = {
    "level": (
        Control("sigma", "Noise level, σ_η", "Root of its mean variance.", 1e-3, 100.0, 0.05),
    ),
    "labels": (
        Control("epsilon", "Budget, ε", "Smaller is more private.", 0.05, 50.0, 1.0),
        Control(
            "delta", "δ", "About the chance that the guarantee fails; choose far below 1/rows.",
            1e-10, 1e-2, 1e-6,
        ),
        Control(
            "width", "Range of the labels",
            "Distance between their bounds, in standard deviations of the labels.",
            1.0, 100.0, 6.0,
        ),
    ),
}  # fmt: skip

#: Designs whose trade-offs are compared.
COMPARED = {0.0: "isotropic, γ = 0", 0.5: "γ = ½", 1.0: "γ = 1", 2.0: "Gram-based, γ = 2"}


def every_control() -> list[Control]:
    """All controls in the order of the page."""
    groups = [*LAW.values(), *CORRELATION.values(), ESTIMATE, *NOISE.values()]
    return [*DATA, *(control for group in groups for control in group)]
