"""The style of all figures: colours that colour-blind readers can tell apart, plain numbers."""

from __future__ import annotations

import io
import math
from pathlib import Path
from typing import TYPE_CHECKING, TypeAlias

from privasso._files import write_whole
from privasso._types import Passed

if TYPE_CHECKING:
    import matplotlib.axes
    import matplotlib.axis
    import matplotlib.figure

#: Those of matplotlib, which is not imported before something is drawn.
Axes: TypeAlias = "matplotlib.axes.Axes"
Figure: TypeAlias = "matplotlib.figure.Figure"

# Okabe and Ito's colours. Everywhere isotropic noise is orange, Gram-based noise blue, and noise
# in proportion to v, or the best power, green.
BLUE, ORANGE, GREEN, GREY = "#0072B2", "#D55E00", "#009E73", "#666666"
SKY, PINK = "#56B4E9", "#CC79A7"

#: Entries of a figure file: who made it, and no date, so that the same figure always gives the
#: same file.
_UNDATED = {
    "png": {"Software": "privasso"},
    "pdf": {"CreationDate": None, "Producer": None, "Creator": "privasso"},
    "svg": {"Date": None, "Creator": "privasso"},
}


def figure(width: float, height: float) -> Figure:
    """Return an empty figure of that size in inches, laid out without overlaps."""
    from matplotlib.figure import Figure

    return Figure(figsize=(width, height), layout="constrained")


def panels(
    width: float, height: float, columns: int = 1, **options: Passed
) -> tuple[Figure, list[Axes]]:
    """Return a figure and its panels side by side, which are open above and to the right."""
    sheet = figure(width, height)
    axes = sheet.subplots(1, columns, squeeze=False, **options)[0].tolist()
    for one in axes:
        one.spines[["top", "right"]].set_visible(False)
    return sheet, axes


def logarithmic(axes: Axes) -> None:
    """Make both axes logarithmic, with plain ticks; what they show is drawn before."""
    axes.set_xscale("log")
    axes.set_yscale("log")
    plain_ticks(axes.xaxis)
    plain_ticks(axes.yaxis)


def plain_ticks(axis: matplotlib.axis.Axis) -> None:
    """Ticks of a logarithmic axis, few enough not to overlap, written out: 0.05 for 5 × 10⁻².

    They are at 1, 2, 5 times a power of ten within two decades and at powers of ten beyond that,
    which are written as powers where there are many.
    """
    from matplotlib.ticker import FuncFormatter, LogFormatterMathtext, LogLocator, NullFormatter

    low, high = axis.get_view_interval()
    decades = math.log10(high / low) if 0.0 < low < high else 0.0
    axis.set_major_locator(LogLocator(subs=(1.0, 2.0, 5.0) if decades < 2.0 else (1.0,)))
    if decades < 5.0:
        axis.set_major_formatter(FuncFormatter(lambda value, _: f"{value:g}"))
    else:
        axis.set_major_formatter(LogFormatterMathtext())
    axis.set_minor_formatter(NullFormatter())


def save(figure: Figure, path: Path) -> None:
    """Write a figure whole or not at all, as png, pdf or svg by the ending of the name."""
    write_whole(path, render(figure, path.suffix.removeprefix(".").lower()))


def png(figure: Figure) -> bytes:
    """Return the figure as a PNG image."""
    return render(figure, "png")


def render(figure: Figure, kind: str) -> bytes:
    """Return the figure as png, pdf or svg."""
    # Text stays text in a PDF, and element names in an SVG do not change from run to run.
    from matplotlib import rc_context

    buffer = io.BytesIO()
    with rc_context({"pdf.fonttype": 42, "svg.hashsalt": "privasso"}):
        figure.savefig(buffer, format=kind, dpi=150, metadata=_UNDATED[kind])
    return buffer.getvalue()
