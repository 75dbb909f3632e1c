"""`privasso design --covariance`: the best noise for correlated columns."""

from __future__ import annotations

import json
from contextlib import nullcontext
from typing import TYPE_CHECKING, Any

from privasso.cli._covariance import with_covariance
from privasso.cli._options import NO_BOUND, finite

if TYPE_CHECKING:
    import polars as pl

    from privasso.design import CorrelatedDesign, CorrelatedObjectiveDesign
    from privasso.model import Model

#: Columns of a correlation that is for any number of them, unless --n-features says otherwise.
_COLUMNS = 200


def choose(
    model: Model,
    covariance: str,
    options: dict[str, Any],
    seed: int | None,
    *,
    scales_given: bool,
    as_json: bool,
) -> None:
    """Choose the design, compare it with common ones, and print both."""
    from rich.console import Console

    from privasso.design import CorrelatedObjectiveDesign, optimal_design

    model = with_covariance(model, covariance, scales_given)
    if options["n_features"] is None and model.covariance.n_columns is None:
        options = {**options, "n_features": _COLUMNS}
    console = Console(soft_wrap=True, highlight=False)
    waiting = console.is_terminal and not as_json
    with console.status("Searching") if waiting else nullcontext():
        best: Any = optimal_design(model, **options, rng=seed)
        table = best.comparison()
    if as_json:
        print(json.dumps({**_record(best), "comparison": _rows(table)}, indent=2))
        return
    said = _objective(best) if isinstance(best, CorrelatedObjectiveDesign) else _release(best)
    for k, line in enumerate(said):
        console.print(line, style="bold" if k == 0 else None)
    _show(console, table)
    if not isinstance(best, CorrelatedObjectiveDesign):
        console.print(NO_BOUND)


def _record(best: CorrelatedDesign | CorrelatedObjectiveDesign) -> dict[str, Any]:
    from privasso.design import CorrelatedObjectiveDesign

    fp = best.point
    shared = {
        "lam": best.lam, "sigma": _level(best), "noise": _shape(best), "E": fp.E,
        "E_standard_error": fp.standard_errors.E, "rho_hat": fp.rho_hat,
        "n_features": fp.model.covariance.n_columns,
    }  # fmt: skip
    if isinstance(best, CorrelatedObjectiveDesign):
        return {
            "mechanism": "objective", "covers": best.covers, "epsilon": best.epsilon,
            "delta": best.delta, "kappa": best.kappa, "t": best.t, "radius": best.radius, **shared,
            "null_error": best.null_error, "nearly_null": best.nearly_null,
        }  # fmt: skip
    return {
        **shared, "stability": fp.stability, "onavekl": finite(best.onavekl()),
        "onavekl_standard_error": finite(best.point.onavekl_error), "weight": best.weight,
        "certificate": best.certificate,
        "constraint": {"kind": best.constraint.kind, "target": best.constraint.target},
    }  # fmt: skip


def _rows(table: pl.DataFrame) -> list[dict[str, Any]]:
    return [
        {name: finite(value) if isinstance(value, float) else value for name, value in row.items()}
        for row in table.iter_rows(named=True)
    ]


def _level(best: CorrelatedDesign | CorrelatedObjectiveDesign) -> float:
    from privasso.noise import Covariance

    noise = best.noise
    if isinstance(noise, Covariance):
        return (noise.trace() / noise.size) ** 0.5
    return noise.sigma


def _shape(best: CorrelatedDesign | CorrelatedObjectiveDesign) -> str:
    """The shape in words: a power of C, or the weight whose best shape it is."""
    from privasso.noise import MatrixPower, PowerLaw

    noise = best.noise
    if isinstance(noise, MatrixPower):
        return f"C^{noise.gamma:.3g}"
    if isinstance(noise, PowerLaw):
        return f"diagonal, v^{noise.gamma:g}"
    return f"full, W = {getattr(best, 'weight', None)}"


def _release(best: CorrelatedDesign) -> list[str]:
    fp = best.point
    said = [
        f"Use λ = {best.lam:.4g} and noise of mean standard deviation {_level(best):.4g}; "
        f"covariance of the noise: {_shape(best)}.",
        f"Predicted: error {fp.E:.4g} ± {fp.standard_errors.E:.2g} on a new record (label noise "
        f"alone {fp.model.sigma_xi**2:.4g}), OnAveKL {best.onavekl():.4g}, {fp.rho_hat:.1%} of the "
        f"coefficients nonzero, ρ̂/α = {fp.stability:.2f}.",
    ]
    if best.certificate is not None:
        said.append(
            "No noise of the same sensitivity has a smaller tr(WΣ), to a relative accuracy of "
            f"{max(best.certificate, 0.0):.0e}; W is the best of three that were tried."
        )
    return said


def _objective(best: CorrelatedObjectiveDesign) -> list[str]:
    from privasso.privacy import rounded_up

    return [
        f"Clip residuals at κ = {best.kappa:.4g}; use λ = {best.lam:.4g}, σ = {best.sigma:.4g} and "
        f"t = {best.t:.4g}; covariance of the noise, and ridge: {_shape(best)}.",
        f"Predicted: error {best.E:.4g} ± {best.point.standard_errors.E:.2g} on a new record "
        f"(label noise alone {best.model.sigma_xi**2:.4g}, releasing nothing "
        f"{best.null_error:.4g}), {best.rho_hat:.1%} of the coefficients nonzero.",
        f"The noise meets ε = {rounded_up(best.epsilon)}, δ = {rounded_up(best.delta)} for "
        f"{best.covers} where ‖f‖ ≤ {best.radius:.4g} for all rows in units of the noise shape, "
        "and the covariance C is public.",
    ]


def _show(console: Any, table: pl.DataFrame) -> None:
    from rich.table import Table

    shown = Table(box=None, padding=(0, 3, 0, 0))
    names = {"noise": "each tuned for the target", "kappa": "κ", "lam": "λ", "sigma": "σ"}
    names |= {"E": "error E", "E_se": "±", "rho_hat": "ρ̂", "onavekl": "OnAveKL"}
    for name in table.columns:
        shown.add_column(names.get(name, name), justify="left" if name == "noise" else "right")
    for row in table.iter_rows():
        shown.add_row(*("—" if x is None else x if isinstance(x, str) else f"{x:.4g}" for x in row))
    console.print(shown)
