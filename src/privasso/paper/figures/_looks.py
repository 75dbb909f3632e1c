"""Laws and designs of the paper, and how all its figures name and draw them."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import privasso as pv
from privasso.figures import BLUE, GREEN, ORANGE, plain_ticks
from privasso.paper.figures._settings import ALPHA, RHO, SIGMA_XI

LAWS: dict[str, pv.ScaleLaw] = {"uniform": pv.Uniform(), "lognormal": pv.LogNormal()}
LAW_TITLES = {"uniform": "v1, uniform scales", "lognormal": "v2, log-normal scales"}
LAW_NAMES = {"uniform": "v1", "lognormal": "v2", "constant": "equal scales"}


@dataclass(frozen=True)
class Look:
    """A noise design at level 1, and how it is named and drawn."""

    noise: pv.NoiseDesign
    name: str
    colour: str
    marker: str


LOOKS = {
    "isotropic": Look(pv.Isotropic(1.0), "isotropic", ORANGE, "s"),
    "gram": Look(pv.Gram(1.0), "Gram-based", BLUE, "o"),
    "power:1": Look(pv.PowerLaw(1.0, 1.0), "power 1", GREEN, "^"),
}

#: The designs that the paper compares; the third is ours.
DESIGNS = ("isotropic", "gram")


def model(law: str) -> pv.Model:
    """Return the model of the paper's figures under a law of scales."""
    return pv.Model(alpha=ALPHA, rho=RHO, sigma_xi=SIGMA_XI, scales=LAWS[law])


def finish(axes: Any, *, x_log: bool = True, y_log: bool = True) -> None:
    """Make the axes logarithmic with plain numbers, and remove the upper and right lines."""
    if x_log:
        axes.set_xscale("log")
        plain_ticks(axes.xaxis)
    if y_log:
        axes.set_yscale("log")
        plain_ticks(axes.yaxis)
    axes.spines[["top", "right"]].set_visible(False)
    axes.tick_params(labelsize=9)


def legend(figure: Any, entries: list[tuple[str, dict[str, Any]]], *, columns: int = 0) -> None:
    """Add a legend above the figure, from names and looks, in one line or in some columns."""
    from matplotlib.lines import Line2D

    handles = [Line2D([], [], label=name, **look) for name, look in entries]
    figure.legend(
        handles=handles, frameon=False, fontsize=9, loc="outside upper left",
        ncols=columns or len(handles), handlelength=1.6, columnspacing=1.6, borderaxespad=0.2,
    )  # fmt: skip
