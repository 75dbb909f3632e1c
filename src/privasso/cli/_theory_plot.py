"""The two panels of `privasso theory --plot`: the trajectory of AMP, and the trade-off."""

from __future__ import annotations

import math
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from privasso.figures import BLUE, GREEN, GREY, ORANGE, figure, plain_ticks, save
from privasso.theory import FixedPointStatus, tradeoff

if TYPE_CHECKING:
    from privasso.theory import FixedPoint


def draw(fp: FixedPoint, edge: float, n_features: int | None, path: Path) -> None:
    """Write the figure to a file whose name ends in png, pdf or svg."""
    if fp.status is FixedPointStatus.INFINITE_ERROR:
        raise ValueError(
            "there is nothing to plot: the error is infinite in the limit of many columns; "
            "pass --n-features"
        )
    sheet = figure(10.0, 4.2)
    left, right = sheet.subplots(1, 2)
    _trajectory(left, fp)
    _tradeoff(right, fp, edge, n_features)
    for axes in (left, right):
        axes.spines[["top", "right"]].set_visible(False)
    model = fp.model
    sheet.suptitle(
        f"λ = {fp.lam:g}, {fp.noise!r}, α = {model.alpha:g}, ρ = {model.rho:g}, {model.scales!r}",
        fontsize=10,
    )
    save(sheet, path)


def _trajectory(axes: Any, fp: FixedPoint) -> None:
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


def _tradeoff(axes: Any, fp: FixedPoint, edge: float, n_features: int | None) -> None:
    axes.set_title("Trade-off, traced by the noise level σ", fontsize=10, loc="left")
    axes.set_xlabel("OnAveKL (average leakage of one replaced record)")
    axes.set_ylabel("prediction error E")
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
    axes.set_yscale("log")
    low, high = axes.get_xlim()
    axes.set_xlim(low * (low / high) ** 0.35, high)  # room for the labels on the left
    plain_ticks(axes.xaxis)
    plain_ticks(axes.yaxis)


def _label(axes: Any, x: Any, y: Any, text: str, colour: str, side: str) -> None:
    axes.annotate(
        text, (x, y), xytext=(8 if side == "left" else -8, 0), textcoords="offset points",
        color=colour, fontsize=9, ha=side, va="center",
    )  # fmt: skip
