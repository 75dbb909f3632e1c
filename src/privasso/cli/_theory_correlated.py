"""`privasso theory --covariance`: the same predictions for correlated columns."""

from __future__ import annotations

import json
import math
from pathlib import Path
from typing import TYPE_CHECKING, Any

from privasso.cli._options import NO_BOUND, finite
from privasso.cli._progress import working

if TYPE_CHECKING:
    from privasso.model import Model
    from privasso.noise import MatrixPower, NoiseDesign
    from privasso.theory import CorrelatedPoint, Edge

COVARIANCE_HELP = (
    "Correlated columns: ar:R, blocks:SIZE,R, factors:NUMBER,SHARE, power:P or levels:RATIO,PART "
    "(random eigenvectors), or a data file of public covariates."
)


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

    from privasso.theory import CorrelatedPoint, correlated_edge, state_evolution

    rng = np.random.default_rng(seed)
    model = _with_covariance(model, covariance, scales_given)
    shape = _noise(noise, sigma)
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


def _with_covariance(model: Model, text: str, scales_given: bool) -> Model:
    from dataclasses import replace

    from privasso.model import COVARIANCE_NAMES, GivenCovariance, covariance_from_name

    if text.partition(":")[0].lower() in COVARIANCE_NAMES:
        return replace(model, covariance=covariance_from_name("--covariance", text))
    if not Path(text).exists():
        raise ValueError(
            f"--covariance {text!r} is neither a file nor one of {', '.join(COVARIANCE_NAMES)}"
        )
    if scales_given:
        raise ValueError("a file of covariates brings its own scales; leave --scales out")
    from privasso.tables import open_table

    table = open_table(text)
    C = GivenCovariance.of(table.matrix(table.names))
    return replace(model, scales=None, covariance=C)


def _noise(text: str, sigma: float) -> NoiseDesign | MatrixPower:
    """The design of a word, or ``matrix:GAMMA``, a power of the covariance."""
    from privasso.noise import MatrixPower, noise_from_name

    word, _, rest = text.partition(":")
    if word.lower() != "matrix":
        return noise_from_name("--noise", text, sigma)
    try:
        return MatrixPower(sigma, float(rest))
    except ValueError:
        raise ValueError(
            f"--noise {text!r} needs a number after the colon, e.g. matrix:1"
        ) from None


def leakage(fp: CorrelatedPoint) -> dict[str, float]:
    """OnAveKL and attack; NaN where they are not known or do not exist."""
    names = ("onavekl", "onavekl_paper", "onavekl_bound", "attack_auc", "attack_advantage")
    found: dict[str, float] = dict.fromkeys(names, math.nan)
    if fp.status.value != "stable":
        return found
    found["onavekl_bound"] = fp.onavekl("bound")
    if not math.isnan(fp.standard_errors.onavekl):
        attack = fp.attack()
        found |= {
            "onavekl": fp.onavekl(), "onavekl_paper": fp.onavekl("paper"),
            "attack_auc": attack.auc, "attack_advantage": attack.advantage,
        }  # fmt: skip
    return found


def _record(fp: CorrelatedPoint, edge: Edge, covariance: str) -> dict[str, Any]:
    sigma = fp.lam / edge.ratio if edge.ratio > 0.0 else math.inf
    numbers = {
        "E": fp.E, "V": fp.V, "rho_hat": fp.rho_hat, "stability": fp.stability,
        **leakage(fp), "critical_noise": sigma,
    }  # fmt: skip
    model = fp.model
    return {
        "status": fp.status.value,
        **{name: finite(value) for name, value in numbers.items()},
        "standard_errors": {
            name: finite(value) for name, value in fp.standard_errors._asdict().items()
        },
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
        ("OnAveKL", leak["onavekl"], error.onavekl, "one record replaced (average)"),
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
