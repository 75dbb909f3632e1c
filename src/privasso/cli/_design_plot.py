"""The two panels of `privasso design --plot`: least errors, and the noise over the columns."""

from __future__ import annotations

import math
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from privasso.design import Budget, InfeasibleError, MaxLeakage, optimal_design
from privasso.figures import BLUE, GREEN, GREY, ORANGE, logarithmic, panels, save

if TYPE_CHECKING:
    from privasso.design import OptimalDesign
    from privasso.privacy import LabelDP

#: Targets of the left panel, relative to that of the design.
_AROUND = np.geomspace(1.0 / 12.0, 12.0, 13)


def draw(best: OptimalDesign, budget: LabelDP | None, scale_error: float, path: Path) -> None:
    """Write the figure to a file."""
    sheet, (left, right) = panels(10.0, 4.4, 2)
    _least_errors(left, best, budget, scale_error)
    _shapes(right, best)
    model = best.model
    sheet.suptitle(
        f"α = {model.alpha:g}, ρ = {model.rho:g}, σ_ξ = {model.sigma_xi:g}, {model.scales!r}"
        + ("" if best.n_features is None else f", N = {best.n_features}"),
        fontsize=10,
    )
    save(sheet, path)


def _least_errors(
    axes: Any, best: OptimalDesign, budget: LabelDP | None, scale_error: float
) -> None:
    """Least error against OnAveKL, or ε under a label budget, λ and σ tuned at each point."""
    asks: list[Any]
    if budget is None:
        here, name = best.onavekl(), "OnAveKL (average leakage of one replaced record)"
        targets = min(max(here, 0.02), 200.0) * _AROUND
        asks = [MaxLeakage(kappa) for kappa in targets.tolist()]
    else:
        here, name = budget.epsilon, f"ε at δ = {budget.delta:g} (privacy of the labels)"
        targets = here * _AROUND
        asks = [Budget(replace(budget, epsilon=epsilon)) for epsilon in targets.tolist()]
    lowest = best.E
    for label, gamma, colour, line in (
        ("isotropic noise", 0.0, ORANGE, "--"),
        ("Gram-based", 2.0, BLUE, "-."),
        ("best power", None, GREEN, "-"),
    ):
        E = np.full(targets.size, np.nan)
        for k, ask in enumerate(asks):
            try:
                E[k] = optimal_design(
                    best.model, ask, gamma=gamma, n_features=best.n_features,
                    scale_error=scale_error,
                ).E  # fmt: skip
            except InfeasibleError:
                continue
        if np.isnan(E).all():
            axes.plot([], [], line, color=colour, label=f"{label}: infinite in the limit")
        else:
            axes.plot(targets, E, line, color=colour, linewidth=1.6, label=label)
            lowest = min(lowest, float(np.nanmin(E)))
    axes.axhline(best.null_error, color=GREY, linewidth=0.8, linestyle=":")
    axes.text(
        targets[-1], best.null_error, "releasing nothing", color=GREY, ha="right", va="bottom",
        fontsize=9,
    )  # fmt: skip
    if here >= targets[0]:
        axes.plot(here, best.E, "o", color="black", markersize=6, fillstyle="none")
        axes.annotate(
            "this design ", (here, best.E), xytext=(-4, -12), textcoords="offset points",
            fontsize=9, ha="right",
        )  # fmt: skip
    axes.set_yscale("log")
    axes.set_ylim(0.9 * lowest, 1.15 * best.null_error)
    logarithmic(axes)
    axes.set_xlabel(name)
    axes.set_ylabel("prediction error E")
    axes.set_title("Least error for each target, λ and σ tuned", fontsize=10, loc="left")
    axes.legend(frameon=False, fontsize=9, loc="upper right", bbox_to_anchor=(1.0, 0.9))


def _shapes(axes: Any, best: OptimalDesign) -> None:
    """σ_η²(v) of the design, with the two common shapes tuned for the same target."""
    from privasso.noise import Gram, Isotropic

    s = best.model.scales.quantile([0.01, 0.99])
    v = np.geomspace(s[0] ** 2, s[1] ** 2, 200) if s[1] > s[0] else s[:1] ** 2 * np.ones(2)
    law, weights = _all_columns(best)
    shapes = [("this design", best.noise, GREEN, "-")]
    for name, unit, colour, line in (
        ("isotropic", Isotropic(1.0), ORANGE, "--"),
        ("gram", Gram(1.0), BLUE, "-."),
    ):
        sigma = best.comparison[name].sigma
        if math.isfinite(sigma):
            label = "isotropic noise" if name == "isotropic" else "Gram-based"
            shapes.append((label, unit.with_sigma(sigma), colour, line))
    for label, noise, colour, line in shapes:
        # The factor of the profile follows from its mean over the columns.
        scale = noise.variances(law, weights)[:1] / np.exp(noise.log_profile(law[:1]))
        axes.plot(v, scale * np.exp(noise.log_profile(v)), line, color=colour, label=label)
    axes.set_xscale("log")
    axes.set_yscale("log")
    axes.set_xlabel("squared scale v of a column (1 % to 99 % of the columns)")
    axes.set_ylabel("noise variance σ_η²(v)")
    axes.set_title("Noise over the columns, each tuned for the target", fontsize=10, loc="left")
    axes.legend(frameon=False, fontsize=9, loc="upper left")


def _all_columns(best: OptimalDesign) -> tuple[np.ndarray, np.ndarray]:
    """Columns over which the mean variance is σ², largest first."""
    if best.n_features is not None:
        v = best.model.scales.quantiles(best.n_features)[::-1] ** 2
        return v, np.ones(v.size)
    v, w = best.model.scales.quadrature(400)
    order = np.argsort(-v)
    return v[order], w[order]
