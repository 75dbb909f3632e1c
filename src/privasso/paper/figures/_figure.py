"""What a figure of the reproduction consists of."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from privasso.paper.experiments import Experiment
from privasso.paper.figures._settings import Settings

if TYPE_CHECKING:
    import polars as pl

Tables = Mapping[str, "pl.DataFrame"]


@dataclass(frozen=True)
class PaperFigure:
    """One figure: its simulations, its tables, the drawing, and the caption.

    Attributes
    ----------
    name : str
        The name by which it is chosen on the command line.
    title : str
        Heading of its section on the page.
    experiments : callable
        From the settings to the simulations it needs, by the name of their table.
    tables : callable
        From the settings and the tables of the simulations to all tables of the figure.
    draw : callable
        From the tables to a matplotlib figure.
    caption : callable
        From the tables to the caption, which states the result in numbers.
    """

    name: str
    title: str
    experiments: Callable[[Settings], dict[str, Experiment]]
    tables: Callable[[Settings, Tables], dict[str, pl.DataFrame]]
    draw: Callable[[Tables], Any]
    caption: Callable[[Tables], str]


def no_experiments(settings: Settings) -> dict[str, Experiment]:
    """Return no simulations: the figure is computed from theory."""
    return {}
