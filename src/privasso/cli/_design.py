"""`privasso design`: choose λ and the noise for a given amount of privacy, without data."""

from __future__ import annotations

import json
import math
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from privasso.cli._covariance import COVARIANCE_HELP
from privasso.cli._design_objective import record_budget, show
from privasso.cli._options import (
    NO_BOUND,
    Alpha,
    AsJson,
    Delta,
    Epsilon,
    Force,
    LabelDpFlag,
    NFeatures,
    Rho,
    Scales,
    SigmaXi,
    YBounds,
    check_figure_path,
    finite,
    label_budget,
    model_of,
)

if TYPE_CHECKING:
    from privasso.design import OptimalDesign, TunedDesign
    from privasso.privacy import LabelDP

_NAMES = {"isotropic": "isotropic noise", "gamma=1": "noise ∝ v", "gram": "Gram-based, ∝ v²"}


def design(
    max_onavekl: Annotated[
        float | None, typer.Option("--max-onavekl", help="Largest on-average KL divergence κ.")
    ] = None,
    max_advantage: Annotated[
        float | None,
        typer.Option("--max-advantage", help="Largest advantage of the best attack, on average."),
    ] = None,
    max_error: Annotated[
        float | None, typer.Option("--max-error", help="Largest prediction error E.")
    ] = None,
    label_dp: LabelDpFlag = False,
    record_dp: Annotated[
        bool, typer.Option("--record-dp", help="Protect whole records (mechanism: objective).")
    ] = False,
    mechanism: Annotated[
        str | None,
        typer.Option(
            "--mechanism",
            help="release: noise on Fᵀy. objective: noise in the objective of a fit that clips "
            "residuals. The default is release with --label-dp and objective with --record-dp.",
        ),
    ] = None,
    epsilon: Epsilon = None,
    delta: Delta = None,
    y_bounds: YBounds = None,
    lam: Annotated[
        float | None, typer.Option("--lam", help="Use this λ instead of choosing one.")
    ] = None,
    family: Annotated[
        str,
        typer.Option(
            "--family",
            help="Shape of the noise: power (∝ v^γ) or free; with --covariance power (∝ C^γ) or "
            "full.",
        ),
    ] = "power",
    alpha: Alpha = 0.5,
    rho: Rho = 0.1,
    sigma_xi: SigmaXi = 0.1,
    scales: Scales = "uniform",
    n_features: NFeatures = None,
    covariance: Annotated[str | None, typer.Option("--covariance", help=COVARIANCE_HELP)] = None,
    seed: Annotated[
        int | None, typer.Option("--seed", help="Seed of the draws, with --covariance.")
    ] = None,
    scale_error: Annotated[
        float,
        typer.Option("--scale-error", help="τ: the noise follows v·exp(τZ) instead of v."),
    ] = 0.0,
    as_json: AsJson = False,
    plot: Annotated[
        Path | None,
        typer.Option("--plot", help="Draw least errors and noise to this file (png, pdf, svg)."),
    ] = None,
    out: Annotated[
        Path | None,
        typer.Option("--out", help="Write λ and the noise to this file, for `fit --design`."),
    ] = None,
    force: Force = False,
) -> None:
    """Choose λ, the level of the noise and its shape for a given amount of privacy, without data.

    Give one target: --max-onavekl, --max-advantage, --max-error, --label-dp or --record-dp.

    Example: `privasso design --scales lognormal:0,0.5 --max-onavekl 2 --out design.json`

    Correlated columns: `privasso design --covariance ar:0.8 --n-features 200 --max-onavekl 2`
    """
    from privasso.cli._outputs import DESIGN, PICTURE, Outputs, files_read
    from privasso.cli._progress import working
    from privasso.design import ObjectiveDesign, optimal_design, save_design

    check_figure_path(plot)
    targets = {
        "--max-onavekl": max_onavekl is not None,
        "--max-advantage": max_advantage is not None,
        "--max-error": max_error is not None,
        "--label-dp": label_dp,
        "--record-dp": record_dp,
    }
    given = [option for option, is_given in targets.items() if is_given]
    if len(given) != 1:
        found = f"{' and '.join(given)} were given" if given else "none was given"
        raise ValueError(
            f"say what the design must meet by exactly one of {', '.join(targets)}: {found}; try "
            "privasso design --max-onavekl 2"
        )
    objective = record_dp or mechanism == "objective"
    if objective and (out is not None or plot is not None):
        raise ValueError("--out and --plot are not for mechanism objective; use --json to keep it")
    budget = None if record_dp else label_budget(label_dp, epsilon, delta, y_bounds)
    options: dict[str, Any] = {
        "lam": lam,
        "max_onavekl": max_onavekl,
        "max_advantage": max_advantage,
        "max_error": max_error,
        "label_dp": budget,
        "record_dp": record_budget(record_dp, epsilon, delta, y_bounds),
        "mechanism": mechanism,
        "family": family,
        "n_features": n_features,
        "scale_error": scale_error,
    }
    model = model_of(alpha, rho, sigma_xi, scales)
    if covariance is not None:
        from privasso.cli._design_correlated import choose

        if out is not None or plot is not None:
            raise ValueError("--out and --plot are not for --covariance; use --json to keep it")
        scales_given = scales != "uniform"
        choose(model, covariance, options, seed, scales_given=scales_given, as_json=as_json)
        return
    with Outputs(reads=files_read(scales), force=force) as outputs:
        outputs.claim("--out", out, DESIGN)
        outputs.claim("--plot", plot, PICTURE)
        with working("Searching", quiet=as_json):
            best = optimal_design(model, **options)
        if isinstance(best, ObjectiveDesign):
            show(best, as_json=as_json)
            return
        if out is not None:
            save_design(best, out)
        if as_json:
            print(json.dumps(_record(best), indent=2))
        else:
            _print(best, budget)
        if plot is not None:
            from privasso.cli._design_plot import draw

            draw(best, budget, scale_error, plot)
        if not as_json:
            for path in (out, plot):
                if path is not None:
                    print(f"wrote {path}")


def _record(best: OptimalDesign) -> dict[str, Any]:
    from privasso.noise import noise_to_dict

    def row(other: TunedDesign) -> dict[str, float | None]:
        return {
            "E": finite(other.E),
            "lam": finite(other.lam),
            "sigma": finite(other.sigma),
            "onavekl": finite(other.onavekl()),
            "ratio": finite(other.ratio),
        }

    return {
        "lam": best.lam,
        "noise": noise_to_dict(best.noise),
        "E": best.E,
        "rho_hat": best.rho_hat,
        "stability": best.stability,
        "onavekl": finite(best.onavekl()),
        "multiplier": finite(best.multiplier),
        "null_error": best.null_error,
        "nearly_null": best.nearly_null,
        "constraint": {"kind": best.constraint.kind, "target": best.constraint.target},
        "comparison": {name: row(other) for name, other in best.comparison.items()},
    }


def _print(best: OptimalDesign, budget: LabelDP | None) -> None:
    from rich.console import Console
    from rich.table import Table

    console = Console(soft_wrap=True, highlight=False)
    shape = "∝ a free function of v" if best.gamma is None else f"∝ v^{best.gamma:.2f}"
    console.print(
        f"Use λ = {best.lam:.4g}, σ_η = {best.noise.sigma:.4g}, noise variance {shape}.",
        style="bold",
    )
    console.print(_sentence(best, budget))
    table = Table(title_justify="left", box=None, padding=(0, 3, 0, 0))
    for name in ("tuned for the same target", "λ", "σ_η", "error E", "OnAveKL", "ratio"):
        table.add_column(name, justify="left" if name.startswith("tuned") else "right")
    table.add_row("this design", *_cells(best.lam, best.noise.sigma, best.E, best.onavekl(), 1.0))
    for name, other in best.comparison.items():
        numbers = (other.lam, other.sigma, other.E, other.onavekl(), other.ratio)
        cells = _cells(*numbers) if math.isfinite(other.E) else ["—"] * 5
        table.add_row(_NAMES[name], *cells)
    console.print(table)
    if not all(math.isfinite(other.E) for other in best.comparison.values()):
        console.print(
            "— : cannot meet the target in the limit of many columns; "
            "--n-features predicts for a given number of them."
        )
    console.print(_price(best))
    if best.nearly_null:
        console.print(
            f"Warning: releasing nothing has the error {best.null_error:.4g}. At this privacy the "
            "model is hardly worth fitting.",
            style="bold",
        )
    console.print(NO_BOUND)


def _sentence(best: OptimalDesign, budget: LabelDP | None) -> str:
    from privasso.privacy import exactly, rounded_up

    fp = best.point
    said = (
        f"Predicted: error {best.E:.4g} on a new record (label noise alone "
        f"{fp.model.sigma_xi**2:.4g}, releasing nothing {best.null_error:.4g}), OnAveKL "
        f"{best.onavekl():.4g}, {best.rho_hat:.1%} of the coefficients nonzero, ρ̂/α = "
        f"{best.stability:.2f}."
    )
    if budget is not None:
        said += (
            f" The level meets ε = {rounded_up(budget.epsilon)}, δ = {rounded_up(budget.delta)} "
            f"for labels in [{exactly(budget.y_bounds[0])}, {exactly(budget.y_bounds[1])}] on data "
            "of this model; a fit computes the level again from its own rows."
        )
    equal = best.comparison["isotropic"]
    if not math.isfinite(equal.ratio):
        return said + " Isotropic noise on all columns cannot meet the target."
    less = 1.0 - 1.0 / equal.ratio
    if best.constraint.kind == "max_error":
        return said + f" OnAveKL is {less:.0%} lower than with isotropic noise at the same error."
    return said + f" The error is {less:.0%} lower than with isotropic noise at the same privacy."


def _price(best: OptimalDesign) -> str:
    what = {
        "max_advantage": "dE/da = {:.3g}: change of the error per unit of advantage allowed",
        "max_onavekl": "dE/dκ = {:.3g}: change of the error per unit of OnAveKL allowed",
        "max_error": "dOnAveKL/dE = {:.3g}: change of the OnAveKL per unit of error allowed",
        "label_dp": "dE/dε = {:.3g}: change of the error per unit of ε allowed",
    }
    return "Price of the constraint, " + what[best.constraint.kind].format(best.multiplier) + "."


def _cells(lam: float, sigma: float, E: float, leak: float, ratio: float) -> list[str]:
    return [*(f"{x:.4g}" for x in (lam, sigma, E, leak)), f"{ratio:.3f}"]
