"""The pictures of `privasso theory --plot` and `privasso design --plot`."""

from __future__ import annotations

import math
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from privasso._types import Passed
from privasso.design import Budget, InfeasibleError, MaxLeakage, Target, optimal_design
from privasso.figures import BLUE, GREEN, GREY, ORANGE, Axes, logarithmic, panels, save
from privasso.noise import Gram, Isotropic
from privasso.theory import FixedPointStatus, tradeoff

if TYPE_CHECKING:
    from privasso.design import OptimalDesign
    from privasso.privacy import LabelDP
    from privasso.theory import FixedPoint

_LEAKAGE = "OnAveKL (average leakage of one replaced record)"
#: Targets of a picture, relative to that of the design.
_AROUND = np.geomspace(1.0 / 12.0, 12.0, 13)


def draw_theory(
    fp: FixedPoint, edge: float, n_features: int | None, words: str, path: Path
) -> None:
    """Write error against leakage, traced by the level of the noise, as png, pdf or svg."""
    model, stable = fp.model, fp.status is FixedPointStatus.STABLE
    correlated = model.covariance is not None
    if fp.status is FixedPointStatus.INFINITE_ERROR or (correlated and not stable):
        raise ValueError(
            f"there is nothing to plot, because the status is {fp.status.value}: try less noise, a "
            "larger --lam or --n-features"
        )
    level = fp.noise.sigma or fp.lam
    high = (0.9 if correlated else 0.999) * edge if 0.0 < edge < math.inf else 10.0 * level
    sigmas = np.geomspace(min(high / 20.0, level / 2.0), high, 300)
    if correlated:
        sigmas = np.linspace(0.1 * high, max(high, level), 12)
    other, useful = ("onavekl_paper", "coefficient by coefficient (paper)"), math.inf
    sampling: dict[str, Passed] = {"n_features": n_features}
    if correlated:
        other, sampling = ("onavekl_bound", "upper bound"), {"draws": max(fp.n_draws, 2), "rng": 0}
    else:  # curves turn back near the edge of stability, where E leaves every useful range
        null = model.rho * model.scales.moment(1) + model.sigma_xi**2
        useful = max(1.3 * null, 1.2 * fp.E if stable else 0.0)
    table = tradeoff(model, fp.lam, fp.noise, sigmas, **sampling)
    table = table.filter((table["status"] == "stable") & (table["E"] <= useful))
    sheet, (axes,) = panels(6.4, 4.4)
    for (column, name), colour in ((other, ORANGE), (("onavekl", "whole vector"), BLUE)):
        shown = table.filter(table[column].fill_null(0.0) > 1e-12)
        axes.plot(shown[column], shown["E"], color=colour, label=name)
    if stable and 1e-12 < fp.onavekl() < math.inf:
        _mark(axes, fp.onavekl(), fp.E, f"σ = {fp.noise.sigma:g}")
    _finish(axes, "Trade-off, traced by the noise level σ", _LEAKAGE, "prediction error E")
    title = f"λ = {fp.lam:g}, {fp.noise!r}, α = {model.alpha:g}, ρ = {model.rho:g}"
    sheet.suptitle(f"{title}\n{words}", fontsize=10)
    save(sheet, path)


def draw_design(
    best: OptimalDesign, budget: LabelDP | None, scale_error: float, path: Path
) -> None:
    """Write least errors around the target, and the noise over the columns."""
    sheet, (left, right) = panels(10.0, 4.4, 2)
    name, here = _LEAKAGE, best.onavekl()
    targets = min(max(here, 0.02), 200.0) * _AROUND
    asks: list[Target] = [MaxLeakage(x) for x in targets.tolist()]
    if budget is not None:
        name, here = f"ε at δ = {budget.delta:g} (privacy of the labels)", budget.epsilon
        targets = here * _AROUND
        asks = [Budget(replace(budget, epsilon=x)) for x in targets.tolist()]
    model, n = best.model, best.n_features
    v = model.scales.quantiles(n or 100) ** 2
    common = ("isotropic", Isotropic(1.0), 0.0, ORANGE), ("gram", Gram(1.0), 2.0, BLUE)
    for label, unit, gamma, colour in (*common, ("best power", None, None, GREEN)):
        errors = [_least(best, ask, gamma, scale_error) for ask in asks]
        left.plot(targets, errors, color=colour, label=label)
        sigma = 0.0 if unit is None else best.comparison[label].sigma
        if math.isfinite(sigma):
            noise = best.noise if unit is None else unit.with_sigma(sigma)
            shown = "this design" if unit is None else label
            right.plot(v, noise.variances(v), ".-", markersize=2, color=colour, label=shown)
    left.axhline(best.null_error, color=GREY, linestyle=":", label="releasing nothing")
    left.set_ylim(None, 1.15 * best.null_error)
    if here >= targets[0]:
        _mark(left, here, best.E, "this design")
    _finish(left, "Least error for each target, λ and σ tuned", name, "prediction error E")
    _finish(right, "Noise, tuned for the target", "squared scale v of a column", "variance σ_η²(v)")
    words = f"α = {model.alpha:g}, ρ = {model.rho:g}, σ_ξ = {model.sigma_xi:g}, {model.scales!r}"
    sheet.suptitle(words + ("" if n is None else f", N = {n}"), fontsize=10)
    save(sheet, path)


def _least(best: OptimalDesign, ask: Target, gamma: float | None, scale_error: float) -> float:
    """The least error that a power of v reaches, NaN if it cannot meet the target."""
    more: dict[str, Passed] = {"n_features": best.n_features, "scale_error": scale_error}
    try:
        return optimal_design(best.model, ask, gamma=gamma, **more).E
    except InfeasibleError:
        return math.nan


def _mark(axes: Axes, x: float, y: float, words: str) -> None:
    axes.plot(x, y, "s", color="black", fillstyle="none")
    axes.annotate(words, (x, y), xytext=(8, -10), textcoords="offset points", fontsize=9)


def _finish(axes: Axes, title: str, x: str, y: str) -> None:
    axes.set_title(title, fontsize=10, loc="left")
    axes.set_xlabel(x)
    axes.set_ylabel(y)
    logarithmic(axes)
    axes.legend(frameon=False, fontsize=9)
