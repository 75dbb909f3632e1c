"""`privasso design` for a fit by objective perturbation."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from privasso.design import ObjectiveDesign
    from privasso.privacy import RecordBudget


def record_budget(
    record_dp: bool,
    epsilon: float | None,
    delta: float | None,
    y_bounds: tuple[float, float] | None,
) -> RecordBudget | None:
    """Return the budget that the options describe, or None without --record-dp.

    Examples
    --------
    >>> record_budget(True, 1.0, 1e-6, None)
    RecordBudget(epsilon=1.0, delta=1e-06)
    """
    from privasso.privacy import RecordBudget

    if not record_dp:
        return None
    if epsilon is None or delta is None:
        raise ValueError("--record-dp needs --epsilon and --delta")
    if y_bounds is not None:
        raise ValueError(
            "--y-bounds plays no part with --record-dp, where residuals are clipped; leave it out"
        )
    return RecordBudget(epsilon, delta)


def show(best: ObjectiveDesign, *, as_json: bool) -> None:
    """Print the settings and what is predicted for them."""
    if as_json:
        print(json.dumps(_record(best), indent=2))
        return
    from rich.console import Console

    console = Console(soft_wrap=True, highlight=False)
    for k, line in enumerate(_sentences(best)):
        console.print(line, style="bold" if k == 0 else None)


def _record(best: ObjectiveDesign) -> dict[str, Any]:
    from privasso.noise import noise_to_dict

    return {
        "mechanism": "objective",
        "covers": best.covers,
        "epsilon": best.epsilon,
        "delta": best.delta,
        "kappa": best.kappa,
        "t": best.t,
        "lam": best.lam,
        "sigma": best.sigma,
        "gamma": best.gamma,
        "radius": best.radius,
        "noise": noise_to_dict(best.noise),
        "ridge": noise_to_dict(best.ridge),
        "E": best.E,
        "rho_hat": best.rho_hat,
        "explained": best.explained,
        "null_error": best.null_error,
        "nearly_null": best.nearly_null,
    }


def _sentences(best: ObjectiveDesign) -> list[str]:
    from privasso.privacy import rounded_up

    shape = "the same on all columns" if best.gamma == 0.0 else f"∝ v^{best.gamma:.2f}"
    said = [
        f"Clip residuals at κ = {best.kappa:.4g}; use λ = {best.lam:.4g}, σ = {best.sigma:.4g} and "
        f"t = {best.t:.4g}, that is a ridge of mean {best.ridge.mean_power:.4g}; noise variance "
        f"and ridge {shape}.",
        f"Predicted: error {best.E:.4g} on a new record (label noise alone "
        f"{best.model.sigma_xi**2:.4g}, releasing nothing {best.null_error:.4g}), "
        f"{best.explained:.1%} of the signal explained, {best.rho_hat:.1%} of the coefficients "
        "nonzero.",
        f"The noise meets ε = {rounded_up(best.epsilon)}, δ = {rounded_up(best.delta)} for "
        f"{best.covers} where ‖f‖ ≤ {best.radius:.4g} for all rows in units of the noise shape, "
        "and scales of columns are public. The prediction is for independent columns and normal "
        "label noise.",
    ]
    if best.nearly_null:
        said.append(
            "Warning: releasing nothing is about as accurate. At this privacy the model is hardly "
            "worth fitting; more rows per column would help."
        )
    return said
