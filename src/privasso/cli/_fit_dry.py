"""`privasso fit --dry-run`: what a fit would do, from the covariates alone."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

import numpy as np

from privasso._text import escaped, json_text
from privasso.cli._fit_forecast import NOT_SIMULATED, print_forecast
from privasso.cli._fit_read import (
    categorical_of,
    encoding_of,
    features_of,
    plan_of,
    table_of,
    target_of,
)
from privasso.cli._fit_run import assumptions_of
from privasso.cli._fit_settings import FitSettings
from privasso.cli._fit_show import effect_words, noise_words, print_size, print_statement
from privasso.cli._ledger import remainder
from privasso.cli._options import NO_BOUND, finite
from privasso.cli._progress import counting

if TYPE_CHECKING:
    from privasso.fit import LabelPlan
    from privasso.forecast import Assumptions, Forecast, Prediction
    from privasso.report import ColumnNoise

_QUANTILES = {"smallest": 0.0, "lower quartile": 0.25, "median": 0.5, "upper quartile": 0.75,
              "largest": 1.0}  # fmt: skip


def dry_run(settings: FitSettings, as_json: bool) -> None:
    """Print noise, sensitivity, predictions and guarantee; the column of labels is not read.

    Where --screen asks for it and a choice of columns is expected to be better, print that.
    """
    from privasso.cli._fit_screened import dry_run_screened
    from privasso.fit import ScreenedLabelPlan
    from privasso.noise import noise_to_dict
    from privasso.report import column_noise

    privacy, lam = settings.privacy(), settings.lam_value()
    suppose = assumptions_of(settings, privacy)
    table, target = table_of(settings), target_of(settings)
    names = features_of(settings, table, target)
    columns = table.columns(names, categorical=categorical_of(settings, names))
    encoding = encoding_of(settings, table, columns, names)
    plan = plan_of(settings, encoding.matrix(columns), encoding)
    if isinstance(plan, ScreenedLabelPlan):
        dry_run_screened(plan, encoding, target, as_json=as_json)
        return
    rows, covariance = plan.rows, plan.calibration.covariance
    noises, ledger = column_noise(rows, covariance), plan.options.ledger
    expected, why_not = _forecast(plan, suppose, lam, quiet=as_json)
    predicted = _predictions(plan, suppose, lam)
    record: dict[str, Any] = {
        "n_rows": rows.shape[0],
        "n_features": rows.shape[1],
        "columns_without_data": [name for name, live in zip(encoding.names, rows.live, strict=True)
                                 if not live],
        "noise": {**(noise_to_dict(plan.noise) or {}), **_spread(covariance.sigma)},
        "shrunk_rows": plan.calibration.shrunk[0],
        "mean_weight_of_shrunk_rows": plan.calibration.shrunk[1],
        "mu": plan.calibration.mu,
        "perturbed_objective": _objective(plan),
        "noise_of_label_sum": plan.calibration.sigma_sum if rows.centred else None,
        "in_label_units": _spread(noises.in_label_units[rows.live]),
        "assumptions": {
            "rho": suppose.rho, "r2": suppose.r2, "label_sd": suppose.label_sd
        },
        "forecast": None if expected is None else expected.to_dict(),
        "predictions": [_prediction(one) for one in predicted],
        "guarantee": plan.guarantee.to_dict(),
        "ledger": None if ledger is None else remainder(ledger, plan.guarantee),
    }  # fmt: skip
    if as_json:
        print(json_text(record))
        return
    print(f"Dry run: no label has been read (column {target!r}), no budget is spent.\n")
    if plan.guarantee.warning is not None:
        print(f"{plan.guarantee.warning}\n")
    _print(record, plan, noises, encoding.in_words())
    if expected is not None:
        print_forecast(expected, plan.options.fixed_lam)
    elif predicted:
        _print_predictions(predicted, suppose, plan)
    else:
        print(f"\nNo prediction is available: {why_not}.")
    print_statement(plan.guarantee, ledger)


def _print(
    record: dict[str, Any], plan: LabelPlan, columns: ColumnNoise, encoded: str | None
) -> None:
    from rich.console import Console
    from rich.table import Table

    live = plan.rows.live
    print_size(record["n_rows"], record["n_features"], encoded)
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
    scale = _spread(columns.scale[live])
    for label, values in (
        ("scale of the column", scale),
        ("noise in its entry of Fᵀy", record["noise"]),
        ("effect on a prediction, label units", record["in_label_units"]),
    ):
        table.add_row(label, *(f"{values[word]:.3g}" for word in _QUANTILES))
    print()
    Console(width=120, highlight=False).print(table)
    if plan.options.classes is None:
        print(effect_words(columns.in_label_units, live))


def _objective(plan: LabelPlan) -> dict[str, float] | None:
    """Numbers of a perturbed objective, with labels in units of their range."""
    noise = plan.calibration.objective
    if noise is None:
        return None
    return {name: getattr(noise, name) for name in ("c", "kappa", "ridge", "sigma", "t")}


def _forecast(
    plan: LabelPlan, suppose: Assumptions, lam: float | None, quiet: bool
) -> tuple[Forecast | None, str | None]:
    """Simulated fits on public covariates, or the reason why there are none."""
    from privasso.forecast import Scheme, forecast

    if not plan.options.privacy.public_covariates:
        return None, "the noise does not follow the scales of the columns at hand"
    if plan.options.classes is not None:
        return None, NOT_SIMULATED
    scheme = Scheme.of_plan(plan, lam)
    if scheme.unavailable is not None:
        return None, scheme.unavailable
    what = "Simulating fits"
    with counting(what, quiet=quiet) as show:
        return forecast(scheme, suppose, progress=lambda done, total: show(done, total, what)), None


def _predictions(
    plan: LabelPlan, suppose: Assumptions, lam: float | None
) -> tuple[Prediction, ...]:
    """State evolution, where covariates are not public and fits on them may not be simulated.

    It assumes that the noise follows the scales of the columns at hand.
    """
    from privasso.forecast import predictions

    privacy = plan.options.privacy
    if privacy.public_covariates or plan.options.scales is not None:
        return ()
    return predictions(plan.rows, privacy, plan.noise, suppose, lam)


def _print_predictions(
    predicted: tuple[Prediction, ...], suppose: Assumptions, plan: LabelPlan
) -> None:
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
    titles = ["noise", "level", "λ", "R² on new rows", "non-zero", "critical λ", "OnAveKL"]
    for title in titles:
        table.add_column(title, justify="left" if title == "noise" else "right")
    for one in predicted:
        cells = [
            one.noise.in_words(),
            f"{one.noise.sigma:.4g}",
            f"{one.lam:.4g}",
            _number(one.r2, ".3f"),
        ]
        cells += [_number(one.nonzero, ".1f"), _number(one.critical_lam, ".4g")]
        cells += [_number(one.onavekl, ".3g")]
        table.add_row(*cells)
    Console(width=120, highlight=False).print(table)
    print(f"This assumes {suppose.as_model()}. It is a prediction under that model, not a promise.")
    print(NO_BOUND)


def _spread(values: np.ndarray) -> dict[str, float]:
    found = {word: float(np.quantile(values, q)) for word, q in _QUANTILES.items()}
    return {**found, "root_mean_square": float(np.sqrt(np.mean(values**2)))}


def _prediction(one: Prediction) -> dict[str, Any]:
    from privasso.noise import noise_to_dict

    numbers = ("lam", "r2", "nonzero", "critical_lam", "onavekl")
    known = {name: finite(getattr(one, name)) for name in numbers}
    return {"noise": noise_to_dict(one.noise), **known}


def _number(value: float, style: str) -> str:
    return f"{value:{style}}" if math.isfinite(value) else "—"
