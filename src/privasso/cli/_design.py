"""`privasso design`: which λ, how much noise, and spread how, for a given amount of privacy."""

from __future__ import annotations

import json
import math
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from privasso.cli._parsing import SCALES_HELP, scale_law

if TYPE_CHECKING:
    from privasso.design import OptimalDesign, Tuned

_NAMES = {"isotropic": "isotropic noise", "gamma=1": "noise ∝ v", "gram": "Gram-based, ∝ v²"}


def design(
    max_onavekl: Annotated[
        float | None, typer.Option("--max-onavekl", help="Largest on-average KL divergence κ.")
    ] = None,
    max_error: Annotated[
        float | None, typer.Option("--max-error", help="Largest prediction error E.")
    ] = None,
    label_dp: Annotated[
        bool,
        typer.Option("--label-dp", help="Labels under (ε, δ); needs the next three options."),
    ] = False,
    epsilon: Annotated[float | None, typer.Option("--epsilon", help="ε of --label-dp.")] = None,
    delta: Annotated[float | None, typer.Option("--delta", help="δ of --label-dp.")] = None,
    y_bounds: Annotated[
        tuple[float, float] | None,
        typer.Option("--y-bounds", metavar="LOW HIGH", help="Label bounds of --label-dp."),
    ] = None,
    lam: Annotated[
        float | None, typer.Option("--lam", help="A λ to keep to; chosen if not given.")
    ] = None,
    family: Annotated[
        str, typer.Option("--family", help="Shape of the noise: power (∝ v^γ) or free.")
    ] = "power",
    alpha: Annotated[float, typer.Option("--alpha", help="Rows per column, M/N.")] = 0.5,
    rho: Annotated[float, typer.Option("--rho", help="Fraction of nonzero coefficients.")] = 0.1,
    sigma_xi: Annotated[float, typer.Option("--sigma-xi", help="Label noise.")] = 0.1,
    scales: Annotated[str, typer.Option("--scales", help=SCALES_HELP)] = "uniform",
    n_features: Annotated[
        int | None,
        typer.Option("--n-features", help="Design for this many columns, not for the limit."),
    ] = None,
    scale_error: Annotated[
        float,
        typer.Option("--scale-error", help="τ: the noise follows scales off by v·exp(τZ)."),
    ] = 0.0,
    as_json: Annotated[
        bool, typer.Option("--json", help="Print JSON; null stands for what is not finite.")
    ] = False,
    plot: Annotated[
        Path | None,
        typer.Option("--plot", help="Draw frontier and noise to this file (png, pdf, svg)."),
    ] = None,
    out: Annotated[
        Path | None, typer.Option("--out", help="Write λ and the noise to this JSON file.")
    ] = None,
) -> None:
    """Choose λ, the level of the noise and its shape for a given amount of privacy, without data.

    Example: `privasso design --scales lognormal:0,0.5 --max-onavekl 2 --out design.json`
    """
    from privasso.design import optimal_design, save_design
    from privasso.model import Model

    budget = _budget(label_dp, epsilon, delta, y_bounds)
    if plot is not None and plot.suffix.lower() not in (".png", ".pdf", ".svg"):
        raise ValueError(f"--plot needs a file ending in .png, .pdf or .svg, not {plot}")
    model = Model(alpha=alpha, rho=rho, sigma_xi=sigma_xi, scales=scale_law(scales))
    best = optimal_design(
        model,
        lam=lam,
        max_onavekl=max_onavekl,
        max_error=max_error,
        label_dp=budget,
        family=family,
        n_features=n_features,
        scale_error=scale_error,
    )
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


def _budget(
    label_dp: bool,
    epsilon: float | None,
    delta: float | None,
    y_bounds: tuple[float, float] | None,
) -> Any:
    from privasso.privacy import LabelDP

    given = [x is not None for x in (epsilon, delta, y_bounds)]
    if not label_dp:
        if any(given):
            raise ValueError("--epsilon, --delta and --y-bounds belong to --label-dp; add that")
        return None
    if not all(given):
        raise ValueError("--label-dp needs --epsilon, --delta and --y-bounds LOW HIGH")
    assert epsilon is not None
    assert delta is not None
    assert y_bounds is not None
    return LabelDP(epsilon, delta, y_bounds)


def _record(best: OptimalDesign) -> dict[str, Any]:
    from privasso.noise import noise_to_dict

    def finite(value: float) -> float | None:
        return value if math.isfinite(value) else None

    def row(other: Tuned) -> dict[str, float | None]:
        names = ("E", "lam", "sigma", "onavekl", "ratio")
        return {name: finite(getattr(other, name)) for name in names}

    return {
        "lam": best.lam,
        "noise": noise_to_dict(best.noise),
        "E": best.E,
        "rho_hat": best.rho_hat,
        "stability": best.stability,
        "onavekl": finite(best.onavekl),
        "multiplier": finite(best.multiplier),
        "null_error": best.null_error,
        "nearly_null": best.nearly_null,
        "constraint": {"kind": best.constraint.kind, "target": best.constraint.target},
        "comparison": {name: row(other) for name, other in best.comparison.items()},
    }


def _print(best: OptimalDesign, budget: Any) -> None:
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
    table.add_row("this design", *_cells(best.lam, best.noise.sigma, best.E, best.onavekl, 1.0))
    for name, other in best.comparison.items():
        numbers = (other.lam, other.sigma, other.E, other.onavekl, other.ratio)
        cells = _cells(*numbers) if math.isfinite(other.E) else ["—"] * 5
        table.add_row(_NAMES[name], *cells)
    console.print(table)
    if not all(math.isfinite(other.E) for other in best.comparison.values()):
        console.print(
            "— : cannot meet the target in the limit of many columns; "
            "--n-features asks about a given number of them."
        )
    console.print(_price(best))
    if best.nearly_null:
        console.print(
            f"Beware: releasing nothing has the error {best.null_error:.4g}. At this privacy the "
            "model is hardly worth fitting.",
            style="bold",
        )
    console.print("OnAveKL is an average under this model: no bound for any one person, not an ε.")


def _sentence(best: OptimalDesign, budget: Any) -> str:
    fp = best.point
    said = (
        f"Predicted: error {best.E:.4g} on a new record (label noise alone "
        f"{fp.model.sigma_xi**2:.4g}, releasing nothing {best.null_error:.4g}), OnAveKL "
        f"{best.onavekl:.4g}, {best.rho_hat:.1%} of the coefficients nonzero, ρ̂/α = "
        f"{best.stability:.2f}."
    )
    if budget is not None:
        said += (
            f" The level meets ε = {budget.epsilon:g}, δ = {budget.delta:g} for labels in "
            f"[{budget.y_bounds[0]:g}, {budget.y_bounds[1]:g}] on data like this; a fit computes "
            "it from its own rows."
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
        "max_onavekl": "dE/dκ = {:.3g}: what one more unit of OnAveKL would save in error",
        "max_error": "dOnAveKL/dE = {:.3g}: what one more unit of error would save in OnAveKL",
        "label_dp": "dE/dε = {:.3g}: what one more unit of ε would save in error",
    }
    return "Price of the constraint, " + what[best.constraint.kind].format(best.multiplier) + "."


def _cells(lam: float, sigma: float, E: float, leak: float, ratio: float) -> list[str]:
    return [*(f"{x:.4g}" for x in (lam, sigma, E, leak)), f"{ratio:.3f}"]
