"""The two panels of `privasso theory --covariance … --plot`: the columns, and the trade-off."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from privasso.figures import BLUE, GREY, ORANGE, figure, plain_ticks, save
from privasso.theory import FixedPointStatus, tradeoff

if TYPE_CHECKING:
    from privasso.theory import CorrelatedPoint, Edge


def draw(fp: CorrelatedPoint, edge: Edge, covariance: str, path: Path) -> None:
    """Write the figure to a file whose name ends in png, pdf or svg."""
    if fp.status is not FixedPointStatus.STABLE:
        raise ValueError("there is nothing to plot: no estimator exists at this noise and λ")
    sheet = figure(10.0, 4.2)
    left, right = sheet.subplots(1, 2)
    _columns(left, fp)
    _tradeoff(right, fp, edge)
    for axes in (left, right):
        axes.spines[["top", "right"]].set_visible(False)
    model = fp.model
    sheet.suptitle(
        f"λ = {fp.lam:g}, {fp.noise!r}, α = {model.alpha:g}, ρ = {model.rho:g}, {covariance}, "
        f"{model.covariance.n_columns} columns",
        fontsize=10,
    )
    save(sheet, path)


def _columns(axes: Any, fp: CorrelatedPoint) -> None:
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


def _tradeoff(axes: Any, fp: CorrelatedPoint, edge: Edge) -> None:
    axes.set_title("Trade-off, traced by the noise level σ", fontsize=10, loc="left")
    axes.set_xlabel("OnAveKL (average leakage of one replaced record)")
    axes.set_ylabel("prediction error E")
    level = getattr(fp.noise, "sigma", 0.0) or fp.lam
    high = 0.9 * fp.lam / edge.ratio if edge.ratio > 0.0 else 4.0 * level
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
    axes.set_xscale("log")
    axes.set_yscale("log")
    plain_ticks(axes.xaxis)
    plain_ticks(axes.yaxis)
    axes.legend(frameon=False, fontsize=9)
