"""The noise that a fit of labels would draw for each column, and what state evolution predicts."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from privasso._text import escaped
from privasso.cli._fit_show import effect_words, noise_words
from privasso.cli._options import NO_BOUND, finite

if TYPE_CHECKING:
    from privasso.fit import LabelPlan
    from privasso.forecast import Assumptions, Prediction

_QUANTILES = {"smallest": 0.0, "lower quartile": 0.25, "median": 0.5, "upper quartile": 0.75,
              "largest": 1.0}  # fmt: skip


def noise_of(plan: LabelPlan, names: Sequence[str]) -> dict[str, Any]:
    """Numbers of the noise, for JSON; those of a perturbed objective have labels of range 1."""
    from privasso.noise import noise_to_dict
    from privasso.report import column_noise

    rows, made = plan.rows, plan.calibration
    shrunk, weight = made.shrunk
    effects = column_noise(rows, made.covariance).in_label_units[rows.live]
    objective = ("c", "kappa", "ridge", "sigma", "t") if made.objective is not None else None
    return {
        "columns_without_data": [name for name, live in zip(names, rows.live, strict=True)
                                 if not live],
        "noise": {**(noise_to_dict(plan.noise) or {}), **_spread(made.covariance.sigma)},
        "shrunk_rows": shrunk,
        "mean_weight_of_shrunk_rows": weight,
        "mu": made.mu,
        "perturbed_objective": objective and {key: getattr(made.objective, key)
                                              for key in objective},
        "noise_of_label_sum": made.sigma_sum if rows.centred else None,
        "in_label_units": _spread(effects),
    }  # fmt: skip


def print_noise(plan: LabelPlan, record: dict[str, Any]) -> None:
    """Print the numbers of `noise_of`."""
    from rich.console import Console
    from rich.table import Table

    from privasso.report import column_noise

    live, columns = plan.rows.live, column_noise(plan.rows, plan.calibration.covariance)
    if record["columns_without_data"]:
        names_shown = escaped(", ".join(record["columns_without_data"]))
        print(f"Constant, with coefficient zero: {names_shown}.")
    print(f"Noise: {noise_words(plan.noise)}.")
    if record["shrunk_rows"]:
        print(
            f"Rows shrunk with their labels: {record['shrunk_rows']}, on average by the factor "
            f"{record['mean_weight_of_shrunk_rows']:.2g}."
        )
    if record["mu"] is not None:
        print(
            f"Sensitivity: changing one label within its bounds moves the release by at most "
            f"μ = {record['mu']:.4g} standard deviations of its noise."
        )
    perturbed = record["perturbed_objective"]
    if perturbed is not None:
        print(
            f"Mechanism: objective perturbation. Residuals beyond {perturbed['kappa']:.2g} of the "
            f"range of the labels are clipped, and the ridge is {perturbed['ridge']:.3g} (t = "
            f"{perturbed['t']:.3g}); one label moves the gradient by at most c = "
            f"{perturbed['c']:.4g} standard deviations of the noise."
        )
    table = Table(box=None, padding=(0, 2, 0, 0), title="Over the columns", title_justify="left")
    table.add_column("", no_wrap=True)
    for word in _QUANTILES:
        table.add_column(word, justify="right", no_wrap=True)
    for label, values in (
        ("scale of the column", _spread(columns.scale[live])),
        ("noise in its entry of Fᵀy", record["noise"]),
        ("effect on a prediction, label units", record["in_label_units"]),
    ):
        table.add_row(label, *(f"{values[word]:.3g}" for word in _QUANTILES))
    print()
    Console(width=120, highlight=False).print(table)
    if plan.options.classes is None:
        print(effect_words(columns.in_label_units, live))


def predictions_of(plan: LabelPlan, suppose: Assumptions) -> tuple[Prediction, ...]:
    """State evolution, where covariates are not public and fits on them may not be simulated.

    It assumes that the noise follows the scales of the columns at hand.
    """
    from privasso.forecast import predictions

    privacy = plan.options.privacy
    if privacy.public_covariates or plan.options.scales is not None:
        return ()
    return predictions(plan.rows, privacy, plan.noise, suppose, plan.options.fixed_lam)


def in_numbers(one: Prediction) -> dict[str, Any]:
    """A prediction for JSON."""
    from privasso.noise import noise_to_dict

    numbers = ("lam", "r2", "nonzero", "critical_lam", "onavekl")
    known = {name: finite(getattr(one, name)) for name in numbers}
    return {"noise": noise_to_dict(one.noise), **known}


def print_predictions(
    predicted: tuple[Prediction, ...], suppose: Assumptions, plan: LabelPlan
) -> None:
    """Print a line for each noise design."""
    from rich.console import Console
    from rich.table import Table

    same = plan.options.privacy.compared_at
    at = "at the given λ" if plan.options.fixed_lam is not None else "each at its best λ"
    table = Table(
        box=None,
        padding=(0, 2, 0, 0),
        title=f"\nPredicted by state evolution, at the same {same}, {at}",
        title_justify="left",
    )
    for title in ("noise", "level", "λ", "R² on new rows", "non-zero", "critical λ", "OnAveKL"):
        table.add_column(title, justify="left" if title == "noise" else "right")
    for one in predicted:
        numbers = (one.r2, ".3f"), (one.nonzero, ".1f"), (one.critical_lam, ".4g")
        table.add_row(
            one.noise.in_words(),
            f"{one.noise.sigma:.4g}",
            f"{one.lam:.4g}",
            *(_number(value, style) for value, style in (*numbers, (one.onavekl, ".3g"))),
        )
    Console(width=120, highlight=False).print(table)
    print(f"This assumes {suppose.as_model()}. It is a prediction under that model, not a promise.")
    print(NO_BOUND)


def _spread(values: np.ndarray) -> dict[str, float]:
    found = {word: float(np.quantile(values, q)) for word, q in _QUANTILES.items()}
    return {**found, "root_mean_square": float(np.sqrt(np.mean(values**2)))}


def _number(value: float, style: str) -> str:
    return f"{value:{style}}" if math.isfinite(value) else "—"
