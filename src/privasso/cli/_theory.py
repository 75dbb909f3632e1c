"""`privasso theory`: predict error, sparsity, stability and privacy without data."""

from __future__ import annotations

import json
import math
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from privasso.cli._covariance import COVARIANCE_HELP
from privasso.cli._options import (
    NO_BOUND,
    Alpha,
    AsJson,
    Force,
    NFeatures,
    Rho,
    Scales,
    SigmaXi,
    check_figure_path,
    finite,
    model_of,
)

if TYPE_CHECKING:
    from privasso.theory import FixedPoint

MEANING = {
    "stable": "the estimator exists",
    "unstable": "no estimator exists: use less noise or a larger --lam",
    "infinite error": "the error grows with the number of columns: pass --n-features, "
    "or noise that vanishes with the scale, such as --noise power:1",
}


def theory(
    lam: Annotated[float, typer.Option("--lam", help="Regularisation λ.")] = 0.2,
    sigma: Annotated[float, typer.Option("--sigma", help="Noise level σ_η.")] = 0.1,
    noise: Annotated[
        str,
        typer.Option(
            "--noise",
            help="Shape of the noise: isotropic, gram or power:GAMMA; with --covariance also "
            "matrix:GAMMA, a power of the covariance matrix.",
        ),
    ] = "gram",
    alpha: Alpha = 0.5,
    rho: Rho = 0.1,
    sigma_xi: SigmaXi = 0.1,
    scales: Scales = "uniform",
    n_features: NFeatures = None,
    covariance: Annotated[str | None, typer.Option("--covariance", help=COVARIANCE_HELP)] = None,
    draws: Annotated[
        int, typer.Option("--draws", help="Draws to average over, with --covariance.")
    ] = 8,
    seed: Annotated[
        int | None, typer.Option("--seed", help="Seed of the draws, with --covariance.")
    ] = None,
    as_json: AsJson = False,
    plot: Annotated[
        Path | None,
        typer.Option("--plot", help="Draw trajectory and trade-off to this file (png, pdf, svg)."),
    ] = None,
    force: Force = False,
) -> None:
    """Predict error, sparsity, stability and average privacy at one point, without data.

    Example: `privasso theory --scales lognormal:0,0.5 --lam 0.2 --noise power:1 --sigma 0.1`

    Correlated columns: `privasso theory --covariance ar:0.8 --n-features 500 --noise matrix:1`
    """
    from privasso.cli._outputs import PICTURE, Outputs, files_read
    from privasso.noise import noise_from_name
    from privasso.theory import critical_noise, state_evolution

    check_figure_path(plot)
    with Outputs(reads=files_read(scales, covariance), force=force) as outputs:
        outputs.claim("--plot", plot, PICTURE)
        model = model_of(alpha, rho, sigma_xi, scales)
        if covariance is not None:
            from privasso.cli._theory_correlated import predict

            predict(
                model, covariance, lam, noise, sigma, n_features, draws, seed,
                scales_given=scales != "uniform", as_json=as_json, plot=plot,
            )  # fmt: skip
            return
        shape = noise_from_name("--noise", noise, sigma)
        fp = state_evolution(model, lam, shape, n_features=n_features)
        edge = critical_noise(model, lam, shape, n_features=n_features)
        if as_json:
            print(json.dumps(_record(fp, edge), indent=2))
        else:
            _print_table(fp, edge)
        if plot is not None:
            from privasso.cli._theory_plot import draw

            draw(fp, edge, n_features, plot)
            if not as_json:
                print(f"wrote {plot}")


def _record(fp: FixedPoint, edge: float) -> dict[str, Any]:
    numbers = {
        "E": fp.E,
        "V": fp.V,
        "rho_hat": fp.rho_hat,
        "stability": fp.stability,
        "onavekl": fp.onavekl(),
        "onavekl_paper": fp.onavekl(kind="paper"),
        "critical_noise": edge,
        **_attack(fp),
    }
    model = fp.model
    asked = {
        "alpha": model.alpha,
        "rho": model.rho,
        "sigma_xi": model.sigma_xi,
        "scales": repr(model.scales),
        "lam": fp.lam,
        "noise": repr(fp.noise),
    }
    known = {name: finite(value) for name, value in numbers.items()}
    return {"status": fp.status.value, **known, "input": asked}


def _attack(fp: FixedPoint) -> dict[str, float]:
    """AUC and advantage of the predicted attack; NaN where there is no estimate to attack."""
    if fp.status.value != "stable":
        return {"attack_auc": math.nan, "attack_advantage": math.nan}
    attack = fp.attack()
    return {"attack_auc": attack.auc, "attack_advantage": attack.advantage}


def _print_table(fp: FixedPoint, edge: float) -> None:
    from rich.console import Console
    from rich.table import Table

    attack = _attack(fp)
    rows = [
        ("status", fp.status.value, MEANING[fp.status.value]),
        ("E", _shown(fp.E), "prediction error on a new record, label noise included"),
        ("ρ̂", _shown(fp.rho_hat), "fraction of nonzero coefficients"),
        ("ρ̂/α", _shown(fp.stability), "stability: the estimator exists below 1"),
        ("V", _shown(fp.V), "response of the other coefficients"),
        ("OnAveKL", _shown(fp.onavekl()), "one record replaced, whole released vector (average)"),
        ("  paper", _shown(fp.onavekl("paper")), "the same, coefficient by coefficient"),
        ("attack", _shown(attack["attack_auc"]), "AUC of the best membership attack (average)"),
        ("  gain", _shown(attack["attack_advantage"]), "its true- minus false-positive rate"),
        ("critical σ", _shown(edge), "noise level at which the estimator ceases to exist"),
    ]
    model = fp.model
    table = Table(
        title=f"λ = {fp.lam:g}, {fp.noise!r}, α = {model.alpha:g}, ρ = {model.rho:g}, "
        f"σ_ξ = {model.sigma_xi:g}, {model.scales!r}",
        title_justify="left",
        title_style="",
        show_header=False,
        box=None,
        padding=(0, 2, 0, 0),
    )
    for row in rows:
        table.add_row(*row)
    Console(soft_wrap=True, highlight=False).print(table)
    print(NO_BOUND)


def _shown(value: float) -> str:
    return "—" if math.isnan(value) else f"{value:.6g}"
