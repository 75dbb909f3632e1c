"""`privasso theory --covariance`: the same predictions for correlated columns."""

from __future__ import annotations

import json
import math
from pathlib import Path
from typing import TYPE_CHECKING, Any

from privasso.cli._covariance import with_covariance
from privasso.cli._options import NO_BOUND, finite
from privasso.cli._progress import working

if TYPE_CHECKING:
    from privasso.model import Model
    from privasso.theory import CorrelatedPoint, Edge


def predict(
    model: Model,
    covariance: str,
    lam: float,
    noise: str,
    sigma: float,
    n_features: int | None,
    draws: int,
    seed: int | None,
    *,
    scales_given: bool,
    as_json: bool,
    plot: Path | None,
) -> None:
    """Predict for the model with this covariance, and print or draw the result."""
    import numpy as np

    from privasso.noise import column_noise_from_name
    from privasso.theory import CorrelatedPoint, correlated_edge, state_evolution

    rng = np.random.default_rng(seed)
    model = with_covariance(model, covariance, scales_given)
    shape = column_noise_from_name("--noise", noise, sigma)
    model = model.realised(n_features or (None if model.covariance.n_columns else 1000), rng)
    with working("Simulating effective problems", quiet=as_json):
        fp = state_evolution(model, lam, shape, draws=draws, rng=rng)
        assert isinstance(fp, CorrelatedPoint)
        edge = correlated_edge(model, shape, draws=draws, rng=rng)
    if as_json:
        print(json.dumps(_record(fp, edge, covariance), indent=2))
    else:
        _print_table(fp, edge, covariance)
    if plot is not None:
        from privasso.cli._theory_correlated_plot import draw

        draw(fp, edge, covariance, plot)
        if not as_json:
            print(f"wrote {plot}")


def leakage(fp: CorrelatedPoint) -> dict[str, float]:
    """OnAveKL and attack; NaN where they are not known or do not exist."""
    names = ("onavekl", "onavekl_error", "onavekl_paper", "onavekl_bound")
    names += ("attack_auc", "attack_advantage")
    found: dict[str, float] = dict.fromkeys(names, math.nan)
    if fp.status.value != "stable":
        return found
    found["onavekl_bound"] = fp.onavekl("bound")
    if fp.onavekl_is_known:
        attack = fp.attack()
        found |= {
            "onavekl": fp.onavekl(), "onavekl_error": fp.onavekl_error,
            "onavekl_paper": fp.onavekl("paper"),
            "attack_auc": attack.auc, "attack_advantage": attack.advantage,
        }  # fmt: skip
    return found


def _record(fp: CorrelatedPoint, edge: Edge, covariance: str) -> dict[str, Any]:
    leak = leakage(fp)
    errors = fp.standard_errors._replace(onavekl=leak.pop("onavekl_error"))
    sigma = fp.lam / edge.ratio if edge.ratio > 0.0 else math.inf
    numbers = {
        "E": fp.E, "V": fp.V, "rho_hat": fp.rho_hat, "stability": fp.stability,
        **leak, "critical_noise": sigma,
    }  # fmt: skip
    model = fp.model
    return {
        "status": fp.status.value,
        **{name: finite(value) for name, value in numbers.items()},
        "standard_errors": {name: finite(value) for name, value in errors._asdict().items()},
        "input": {
            "alpha": model.alpha, "rho": model.rho, "sigma_xi": model.sigma_xi,
            "covariance": covariance, "n_features": model.covariance.n_columns,
            "scales": repr(model.scales), "lam": fp.lam, "noise": repr(fp.noise),
            "draws": fp.n_draws,
        },
    }  # fmt: skip


def _print_table(fp: CorrelatedPoint, edge: Edge, covariance: str) -> None:
    from rich.console import Console
    from rich.table import Table

    from privasso.cli._theory import MEANING

    leak, error = leakage(fp), fp.standard_errors
    sigma = fp.lam / edge.ratio if edge.ratio > 0.0 else math.inf
    rows = [
        ("status", fp.status.value, "", MEANING[fp.status.value]),
        ("E", fp.E, error.E, "prediction error on a new record, label noise included"),
        ("ρ̂", fp.rho_hat, error.rho_hat, "fraction of nonzero coefficients"),
        ("ρ̂/α", fp.stability, error.stability, "stability: the estimator exists below 1"),
        ("V", fp.V, error.V, "response of the other coefficients"),
        ("OnAveKL", leak["onavekl"], leak["onavekl_error"], "one record replaced (average)"),
        ("  bound", leak["onavekl_bound"], "", "upper bound of it, for any covariance of noise"),
        ("attack", leak["attack_auc"], "", "AUC of the best membership attack (average)"),
        ("critical σ", sigma, "", "noise level at which the estimator ceases to exist"),
    ]
    model = fp.model
    table = Table(
        title=f"λ = {fp.lam:g}, {fp.noise!r}, α = {model.alpha:g}, ρ = {model.rho:g}, "
        f"σ_ξ = {model.sigma_xi:g}, {model.covariance.n_columns} columns, {covariance}",
        title_justify="left", title_style="", show_header=False, box=None, padding=(0, 2, 0, 0),
    )  # fmt: skip
    for name, value, spread, meaning in rows:
        table.add_row(name, _shown(value), _error(spread), meaning)
    Console(soft_wrap=True, highlight=False).print(table)
    print(NO_BOUND)


def _shown(value: float | str) -> str:
    if isinstance(value, str):
        return value
    return "—" if math.isnan(value) else f"{value:.4g}"


def _error(value: float | str) -> str:
    return "" if isinstance(value, str) or not value > 0.0 else f"± {value:.2g}"
