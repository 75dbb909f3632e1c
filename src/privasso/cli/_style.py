"""One look for every figure: colours all readers can tell apart, plain numbers on the axes."""

from __future__ import annotations

from pathlib import Path
from typing import Any

# Okabe and Ito's colours.
BLUE, ORANGE, GREEN, GREY = "#0072B2", "#D55E00", "#009E73", "#666666"


def plain_ticks(axis: Any) -> None:
    """Ticks at 1, 2, 5 times a power of ten, written out: 0.05 instead of 5 × 10⁻²."""
    from matplotlib.ticker import FuncFormatter, LogLocator, NullFormatter

    axis.set_major_locator(LogLocator(subs=(1.0, 2.0, 5.0)))
    axis.set_major_formatter(FuncFormatter(lambda value, _: f"{value:g}"))
    axis.set_minor_formatter(NullFormatter())


def save(figure: Any, path: Path) -> None:
    """Write a figure that was made without pyplot, so no display is needed."""
    from matplotlib.backends.backend_agg import FigureCanvasAgg

    FigureCanvasAgg(figure)
    figure.savefig(path, dpi=150)
