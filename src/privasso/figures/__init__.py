"""Figures in one style, written without a display."""

from privasso.figures._style import (
    BLUE,
    GREEN,
    GREY,
    ORANGE,
    PINK,
    SKY,
    Axes,
    Figure,
    figure,
    logarithmic,
    panels,
    plain_ticks,
    png,
    render,
    save,
)

__all__ = [
    "BLUE",
    "GREEN",
    "GREY",
    "ORANGE",
    "PINK",
    "SKY",
    "Axes",
    "Figure",
    "figure",
    "logarithmic",
    "panels",
    "plain_ticks",
    "png",
    "render",
    "save",
]
