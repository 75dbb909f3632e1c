"""What a figure of the reproduction is made of."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from privasso.reproduction._settings import Settings

if TYPE_CHECKING:
    import polars as pl

Tables = Mapping[str, "pl.DataFrame"]


@dataclass(frozen=True)
class Study:
    """One figure: what it computes, its tables, its picture, and the sentence under it.

    Attributes
    ----------
    name : str
        By which it is chosen on the command line.
    title : str
        Heading of its section on the page.
    experiments : callable
        Settings to the simulations it needs, by the name of their table.
    tables : callable
        Settings and the tables of the simulations to all tables of the figure.
    draw : callable
        Tables to a matplotlib figure.
    caption : callable
        Tables to the finding, with its numbers.
    """

    name: str
    title: str
    experiments: Callable[[Settings], dict[str, Any]]
    tables: Callable[[Settings, Tables], dict[str, pl.DataFrame]]
    draw: Callable[[Tables], Any]
    caption: Callable[[Tables], str]


def no_experiments(settings: Settings) -> dict[str, Any]:
    """Nothing to simulate: the figure is computed from theory."""
    return {}
