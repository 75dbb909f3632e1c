"""`privasso fit --dry-run`: what a fit would do, from the covariates alone."""

from __future__ import annotations

import json
import math
from typing import TYPE_CHECKING, Any

import numpy as np

from privasso.cli._fit_facts import assumptions, forecasts
from privasso.cli._fit_run import covariates, features_of, prior_scales, target_of
from privasso.cli._fit_settings import FitSettings
from privasso.cli._fit_show import NOT_FOR_RELEASE, design_words, noise_words

if TYPE_CHECKING:
    from privasso.report import Columns, Forecast

_QUANTILES = {"smallest": 0.0, "lower quartile": 0.25, "median": 0.5, "upper quartile": 0.75,
              "largest": 1.0}  # fmt: skip


def dry_run(settings: FitSettings, as_json: bool) -> None:
    """Print noise, sensitivity, predictions and guarantee; the target is not even read."""
    from privasso.artefact import design_record
    from privasso.estimator import noise_level, statement
    from privasso.mechanism import LabelDP, noise_levels
    from privasso.report import columns_of
    from privasso.tables import open_table

    privacy, design, lam = settings.privacy(), settings.shape(), settings.lam_value()
    suppose = assumptions(settings, privacy)
    table, target = open_table(settings.data), target_of(settings)
    names = features_of(settings, table, target)
    scales = prior_scales(settings, names)
    rows = covariates(table.matrix(names), names, settings)
    sigma, sigma_sum = noise_levels(rows, privacy, design, scales=scales)
    levelled = design.with_sigma(noise_level(sigma, rows))
    guarantee = statement(
        privacy,
        levelled,
        scales=scales,
        fit_intercept=rows.centred,
        from_os_entropy=settings.seed is None,
    )
    # With prior scales the noise does not follow the columns at hand, and the model has no word.
    predicted = () if scales is not None else forecasts(rows, privacy, design, suppose, lam)
    record: dict[str, Any] = {
        "n_rows": rows.shape[0],
        "n_features": rows.shape[1],
        "columns_without_data": [name for name, live in zip(names, rows.live, strict=True)
                                 if not live],
        "design": design_record(levelled),
        "mu": privacy.mu if isinstance(privacy, LabelDP) else None,
        "noise": _spread(sigma[rows.live]),
        "noise_of_label_sum": sigma_sum if rows.centred else None,
        "in_label_units": _spread(columns_of(rows, sigma).in_label_units[rows.live]),
        "assumptions": {
            "rho": suppose.rho, "r2": suppose.r2, "label_sd": suppose.label_sd
        },
        "predictions": [_prediction(one) for one in predicted],
        "guarantee": guarantee.to_dict(),
    }  # fmt: skip
    if as_json:
        print(json.dumps(record, ensure_ascii=False))
        return
    print(f"Dry run: no label has been read (column {target!r}), no budget is spent.\n")
    if settings.seed is not None:
        print(f"{NOT_FOR_RELEASE}\n")
    _print(record, columns_of(rows, sigma), rows.live, privacy)
    _print_predictions(predicted, suppose, settings)
    print(f"\nA fit would state:\n{guarantee}")


def _print(record: dict[str, Any], columns: Columns, live: np.ndarray, privacy: Any) -> None:
    from rich.console import Console
    from rich.table import Table

    print(f"{record['n_rows']} rows, {record['n_features']} features.")
    if record["columns_without_data"]:
        print(f"Constant, so left at zero: {', '.join(record['columns_without_data'])}.")
    print(f"Noise: {design_words(record['design'])}.")
    if record["mu"] is not None:
        low, high = privacy.y_bounds
        print(
            f"Sensitivity: changing one label from {low:g} to {high:g} moves the release by at "
            f"most μ = {record['mu']:.4g} standard deviations of its noise."
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
    print(noise_words(columns.in_label_units, live))


def _print_predictions(
    predicted: tuple[Forecast, ...], suppose: Any, settings: FitSettings
) -> None:
    from rich.console import Console
    from rich.table import Table

    if not predicted:
        print("\nNo prediction: state evolution does not speak of this noise on these columns.")
        return
    same = "guarantee" if settings.label_dp else "mean variance"
    at = "at the given λ" if settings.lam_value() is not None else "each at its best λ"
    table = Table(
        box=None,
        padding=(0, 2, 0, 0),
        title=f"\nPredicted by state evolution, at the same {same}, {at}",
        title_justify="left",
    )
    titles = ["noise", "level", "λ", "R² on new rows", "non-zero", "critical λ"]
    titles += [] if settings.label_dp else ["OnAveKL"]
    for title in titles:
        table.add_column(title, justify="left" if title == "noise" else "right")
    for one in predicted:
        gamma = getattr(one.design, "gamma", None)
        name = "isotropic" if gamma == 0.0 else f"power:{gamma:g}"
        cells = [name, f"{one.design.sigma:.4g}", f"{one.lam:.4g}", _number(one.r2, ".3f")]
        cells += [_number(one.nonzero, ".1f"), _number(one.critical_lam, ".4g")]
        cells += [] if settings.label_dp else [_number(one.onavekl, ".3g")]
        table.add_row(*cells)
    Console(width=120, highlight=False).print(table)
    print(f"This supposes {suppose}. It is a prediction under that model, not a promise.")
    if not settings.label_dp:
        print("OnAveKL is an average under this model: no bound for any one person, not an ε.")


def _spread(values: np.ndarray) -> dict[str, float]:
    found = {word: float(np.quantile(values, q)) for word, q in _QUANTILES.items()}
    return {**found, "root_mean_square": float(np.sqrt(np.mean(values**2)))}


def _prediction(one: Forecast) -> dict[str, Any]:
    from privasso.artefact import design_record

    numbers = {
        "lam": one.lam,
        "r2": one.r2,
        "nonzero": one.nonzero,
        "critical_lam": one.critical_lam,
        "onavekl": one.onavekl,
    }
    finite = {key: value if math.isfinite(value) else None for key, value in numbers.items()}
    return {"design": design_record(one.design), **finite}


def _number(value: float, style: str) -> str:
    return f"{value:{style}}" if math.isfinite(value) else "—"
