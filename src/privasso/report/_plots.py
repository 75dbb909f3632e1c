"""The figures of a report."""

from __future__ import annotations

import numpy as np

from privasso._text import escaped
from privasso.figures import BLUE, GREEN, GREY, ORANGE, PINK, SKY, Figure, panels, plain_ticks
from privasso.report._facts import FitFacts

#: Coefficients shown by name in a figure.
MOST = 24
_LONGEST_NAME = 26


def noise_figure(facts: FitFacts) -> Figure:
    """Noise of each column and its share of the sensitivity, by the names of the columns.

    Of many columns those with the largest share are shown, or with the largest noise in units of
    their scale where shares cannot be told.
    """
    columns = facts.columns
    assert columns is not None
    live = np.flatnonzero((columns.scale > 0.0) & (columns.sigma > 0.0))
    # Noise in a subspace, as with more columns than rows, does not hide a column alone: no shares.
    shares = 100.0 * columns.share
    known = bool(shares[live].any())
    size = shares if known else columns.sigma / np.where(columns.scale > 0.0, columns.scale, np.inf)
    shown = live[np.argsort(-size[live], kind="stable")][:MOST]
    fig, (left, *others) = panels(7.6, 1.3 + 0.25 * shown.size, 2 if known else 1, sharey=True)
    rank = np.arange(shown.size)
    left.semilogx(columns.sigma[shown], rank, "o", color=BLUE, markersize=5)
    left.set_yticks(rank, [_short(facts.names[k]) for k in shown], fontsize=9)
    left.set_ylim(shown.size - 0.5, -0.5)
    left.set_xlabel("standard deviation of the noise")
    low, high = left.get_xlim()
    left.set_xlim(low / 1.5, high * 1.5)  # room for points that are all at one level
    plain_ticks(left.xaxis)
    for right in others:
        right.barh(rank, shares[shown], color=BLUE, height=0.6)
        right.set_xlabel("share of the sensitivity, %")
    for axes in (left, *others):
        axes.grid(axis="y", color="#DDDDDD", linewidth=0.6)
        axes.set_axisbelow(True)
    return fig


def coefficient_figure(facts: FitFacts) -> Figure:
    """The largest coefficients in label units, with their intervals.

    Without intervals the bars are two standard deviations of their noise, where that is known.
    """
    units, noise, intervals = facts.units, facts.coef_noise, facts.model.intervals
    assert units is not None
    shown = facts.shown[:MOST]
    effect, error = facts.model.coef[shown] * units[shown], None
    if intervals is not None:
        unit = units[shown]
        middle = intervals.estimates()[shown] * unit
        ends = facts.model.confint()[shown] * unit[:, None]
        effect = np.where(np.isnan(middle), effect, middle)
        error = np.nan_to_num(np.abs(ends - effect[:, None])).T
    elif noise is not None:
        error = 2.0 * noise[shown] * units[shown]
    fig, (axes,) = panels(7.2, 1.1 + 0.27 * shown.size)
    rank = np.arange(shown.size)
    axes.axvline(0.0, color=GREY, linewidth=0.8)
    axes.errorbar(
        effect, rank, xerr=error, fmt="o", color=BLUE, markersize=5, linewidth=1.1, capsize=2,
        ecolor=BLUE,
    )  # fmt: skip
    axes.set_yticks(rank, [_short(facts.names[k]) for k in shown], fontsize=9)
    axes.invert_yaxis()
    axes.set_xlabel(f"change of {_short(facts.target)} when the column rises by its {facts.rise}")
    return fig


def forecast_figure(facts: FitFacts) -> Figure:
    """Median and middle 80 % of the simulated R², for the fit as planned and for changes of it."""
    forecast = facts.forecast
    assert forecast is not None
    named = [("as planned", forecast.outcome), *((x.words, x.outcome) for x in forecast.changes)]
    fig, (axes,) = panels(7.2, 1.0 + 0.32 * len(named))
    for rank, (_, found) in enumerate(named):
        low, high = (max(-1.0, end) for end in found.interval)
        colour = BLUE if rank == 0 else GREY
        axes.plot([low, high], [rank, rank], color=colour, linewidth=3.0, alpha=0.6)
        axes.plot(max(-1.0, found.median), rank, "o", color=colour, markersize=6)
    axes.set_yticks(range(len(named)), [words for words, _ in named], fontsize=9)
    axes.axvline(0.0, color=GREY, linewidth=0.8)
    axes.set_xlim(None, 1.0)
    axes.invert_yaxis()
    axes.set_xlabel("R² on new rows")
    return fig


def path_figure(facts: FitFacts) -> Figure:
    """Coefficients in label units along λ."""
    path, units = facts.path, facts.units
    assert path is not None
    assert units is not None
    order = np.argsort(path.lams)
    lams = path.lams[order]
    effect = path.coef[:, order] * units[:, None]
    found = np.isfinite(effect).all(axis=0)
    fig, (axes,) = panels(7.2, 4.0)
    size = np.abs(np.where(found, effect, 0.0)).max(axis=1, initial=0.0)
    named = np.argsort(-size, kind="stable")[:6]
    named = named[size[named] > 0.0]
    for k in np.argsort(size, kind="stable"):
        if size[k] > 0.0 and k not in named:
            axes.plot(lams, effect[k], color=GREY, linewidth=0.8, alpha=0.5)
    colours = BLUE, GREEN, PINK, SKY, "black", "#999999"
    for k, colour in zip(named.tolist(), colours, strict=False):
        axes.plot(lams, effect[k], color=colour, linewidth=1.6, label=_short(facts.names[k], 18))
    axes.set_xscale("log")
    axes.axvline(facts.model.lam, color=ORANGE, linestyle="--", label="λ of the model")
    # Effects beyond the range of the labels are noise; showing them would compress the others.
    reach = float(size.max(initial=0.0))
    if facts.label_width is not None:
        reach = min(reach, facts.label_width)
    axes.set_ylim(-1.1 * reach, 1.1 * reach)
    axes.legend(frameon=False, fontsize=8)
    axes.axhline(0.0, color=GREY, linewidth=0.8)
    plain_ticks(axes.xaxis)
    axes.set_xlabel("λ")
    axes.set_ylabel(f"coefficient × {facts.rise} of its column")
    return fig


def _short(name: str, longest: int = _LONGEST_NAME) -> str:
    # A dollar sign would start a formula.
    name = escaped(name)
    text = name if len(name) <= longest else f"{name[: longest - 1]}…"
    return text.replace("$", r"\$")
