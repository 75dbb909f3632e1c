"""The pictures of `privasso theory --plot` and `privasso design --plot`."""

from __future__ import annotations

import math
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from privasso.design import Budget, InfeasibleError, MaxLeakage, optimal_design
from privasso.figures import BLUE, GREEN, GREY, ORANGE, Axes, logarithmic, panels, plain_ticks, save
from privasso.theory import FixedPointStatus, tradeoff

if TYPE_CHECKING:
    from privasso.design import OptimalDesign
    from privasso.privacy import LabelDP
    from privasso.theory import FixedPoint


def draw_theory(
    fp: FixedPoint, edge: float, n_features: int | None, words: str, path: Path
) -> None:
    """Write the figure to a file whose name ends in png, pdf or svg; `words` are of the columns."""
    correlated = fp.model.covariance is not None
    if correlated and fp.status is not FixedPointStatus.STABLE:
        raise ValueError("there is nothing to plot: no estimator exists at this noise and λ")
    if fp.status is FixedPointStatus.INFINITE_ERROR:
        raise ValueError(
            "there is nothing to plot: the error is infinite in the limit of many columns; "
            "pass --n-features"
        )
    sheet, (left, right) = panels(10.0, 4.2, 2)
    right.set_title("Trade-off, traced by the noise level σ", fontsize=10, loc="left")
    right.set_xlabel("OnAveKL (average leakage of one replaced record)")
    right.set_ylabel("prediction error E")
    if correlated:
        _columns(left, fp)
        _simulated_tradeoff(right, fp, edge)
    else:
        _trajectory(left, fp)
        _tradeoff(right, fp, edge, n_features)
    model = fp.model
    sheet.suptitle(
        f"λ = {fp.lam:g}, {fp.noise!r}, α = {model.alpha:g}, ρ = {model.rho:g}, {words}",
        fontsize=10,
    )
    save(sheet, path)


def _trajectory(axes: Axes, fp: FixedPoint) -> None:
    rows = fp.trajectory
    settled = np.flatnonzero(np.abs(rows[:, 0] / rows[-1, 0] - 1.0) > 1e-3)
    end = min(len(rows), (settled[-1] if settled.size else 0) + 4, 60)
    rows = rows[: max(end, 2)]
    steps = np.arange(len(rows))
    alpha = fp.model.alpha
    for values, colour, name, fixed in (
        (rows[:, 0], BLUE, "E", fp.E),
        (rows[:, 1], ORANGE, "V", fp.V),
        (rows[:, 2] / alpha, GREEN, "ρ̂/α", fp.stability),
    ):
        shown = np.where(values > 0.0, values, np.nan)  # zero has no place on a log axis
        if np.isnan(shown).all():
            continue
        axes.plot(steps, shown, "o-", color=colour, markersize=3.5, linewidth=1.2)
        last = np.flatnonzero(np.isfinite(shown))[-1]
        axes.annotate(
            f" {name}", (steps[last], shown[last]), color=colour, va="center", fontsize=11
        )
        if 0.0 < fixed < math.inf:
            axes.axhline(fixed, color=colour, linewidth=0.6, linestyle=":")
    axes.set_yscale("log")
    if fp.status is FixedPointStatus.STABLE:  # the other runs over many decades
        plain_ticks(axes.yaxis)
    axes.set_xlim(-0.3, steps[-1] * 1.12 + 0.2)
    axes.set_xlabel("iteration of AMP")
    axes.set_title(f"Predicted trajectory ({fp.status.value})", fontsize=10, loc="left")


def _tradeoff(axes: Axes, fp: FixedPoint, edge: float, n_features: int | None) -> None:
    level = fp.noise.sigma or fp.lam
    high = 0.999 * edge if 0.0 < edge < math.inf else 10.0 * level
    sigmas = np.geomspace(min(high / 20.0, level / 2.0), high, 300)
    table = tradeoff(fp.model, fp.lam, fp.noise, sigmas, n_features=n_features)
    table = table.filter(table["status"] == FixedPointStatus.STABLE.value)
    E, sigma = table["E"].to_numpy(), table["sigma"].to_numpy()
    # Both curves turn back near the edge of stability, where E leaves every useful range.
    null = fp.model.rho * fp.model.scales.moment(1) + fp.model.sigma_xi**2
    useful = max(1.3 * null, 1.2 * fp.E if math.isfinite(fp.E) else 0.0)
    keep = np.flatnonzero((useful >= E) & (table["onavekl_paper"].to_numpy() > 1e-12))
    if keep.size == 0:
        axes.text(
            0.5, 0.5, "no leakage: every coefficient is zero",
            transform=axes.transAxes, ha="center", color=GREY,
        )  # fmt: skip
        return
    for column, colour, name, side in (
        ("onavekl_paper", ORANGE, "coefficient by\ncoefficient (paper)", "right"),
        ("onavekl", BLUE, "whole vector", "left"),
    ):
        leak = table[column].to_numpy()
        axes.plot(leak[keep], E[keep], color=colour, linewidth=1.6)
        _label(axes, leak[keep[-1]], E[keep[-1]], name, colour, side)
        best = keep[np.argmin(leak[keep])]
        axes.plot(leak[best], E[best], "o", color=colour, markersize=4)
        least = f"least at σ = {sigma[best]:.2g}"
        _label(axes, leak[best], E[best], least, colour, side)
    if fp.status is FixedPointStatus.STABLE and 1e-12 < fp.onavekl() < math.inf:
        axes.plot(fp.onavekl(), fp.E, "s", color="black", markersize=7, fillstyle="none")
        axes.annotate(
            f"σ = {fp.noise.sigma:g}", (fp.onavekl(), fp.E), xytext=(12, 2),
            textcoords="offset points", fontsize=9,
            bbox={"facecolor": "white", "edgecolor": "none", "alpha": 0.8, "pad": 1.0},
        )  # fmt: skip
    axes.set_xscale("log")
    low, high = axes.get_xlim()
    axes.set_xlim(low * (low / high) ** 0.35, high)  # room for the labels on the left
    logarithmic(axes)


def _label(axes: Axes, x: Any, y: Any, text: str, colour: str, side: str) -> None:
    axes.annotate(
        text, (x, y), xytext=(8 if side == "left" else -8, 0), textcoords="offset points",
        color=colour, fontsize=9, ha=side, va="center",
    )  # fmt: skip


def _columns(axes: Axes, fp: FixedPoint) -> None:
    """Sparsity of the columns, averaged over groups of similar scale."""
    v, found = fp.model.covariance.diagonal, fp.columns
    groups = np.array_split(np.argsort(v), min(25, v.size))
    at = [float(np.sqrt(np.mean(v[g]))) for g in groups]
    for values, colour, name in (
        (found.sparsity, BLUE, "chance to be nonzero"),
        (found.error, ORANGE, "error $C_{ii}(\\hat x_i - x^0_i)^2$"),
    ):
        means = [float(np.mean(values[g])) for g in groups]
        axes.plot(at, means, "o", color=colour, markersize=4, label=name)
    axes.set_yscale("log")
    plain_ticks(axes.yaxis)
    axes.set_xlabel("scale of the column")
    axes.set_title("Columns, in groups of similar scale", fontsize=10, loc="left")
    axes.legend(frameon=False, fontsize=9)


def _simulated_tradeoff(axes: Axes, fp: FixedPoint, edge: float) -> None:
    level = getattr(fp.noise, "sigma", 0.0) or fp.lam
    high = 0.9 * edge if math.isfinite(edge) else 4.0 * level
    sigmas = np.geomspace(min(0.25 * level, 0.1 * high), max(high, level), 9)
    table = tradeoff(fp.model, fp.lam, fp.noise, sigmas, draws=max(fp.n_draws, 2), rng=0)
    table = table.filter(table["status"] == "stable")
    for column, colour, name in (
        ("onavekl", BLUE, "whole vector"),
        ("onavekl_bound", GREY, "upper bound"),
    ):
        if table[column].null_count() == len(table):
            continue
        x, E = table[column].to_numpy(), table["E"].to_numpy()
        axes.errorbar(
            x, E, yerr=table["E_se"].to_numpy(), fmt="o-", color=colour, markersize=3.5,
            linewidth=1.2, label=name,
        )  # fmt: skip
    logarithmic(axes)
    axes.legend(frameon=False, fontsize=9)


#: Targets of the left panel, relative to that of the design.
_AROUND = np.geomspace(1.0 / 12.0, 12.0, 13)


def draw_design(
    best: OptimalDesign, budget: LabelDP | None, scale_error: float, path: Path
) -> None:
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
    axes: Axes, best: OptimalDesign, budget: LabelDP | None, scale_error: float
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


def _shapes(axes: Axes, best: OptimalDesign) -> None:
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
