"""Drawing figures, in a process of its own while the next tables are computed."""

from __future__ import annotations

import signal
from collections.abc import Callable, Iterator
from concurrent.futures import Future, ProcessPoolExecutor
from contextlib import contextmanager
from multiprocessing import get_context
from typing import NamedTuple

from privasso.figures import render
from privasso.paper.figures import FIGURES, PaperFigure, Tables


class Pictures(NamedTuple):
    """The drawing of a figure as a PDF and as a PNG image."""

    pdf: bytes
    png: bytes


class Drawn(NamedTuple):
    """A figure with its picture (PNG) and its caption."""

    figure: PaperFigure
    picture: bytes
    caption: str


def pictures(name: str, tables: Tables) -> Pictures:
    """Draw a figure, given its tables."""
    drawing = FIGURES[name].draw(tables)
    pdf = render(drawing, "pdf")
    drawing.set_layout_engine("none")  # the PDF has fixed the layout; a second pass is slow
    return Pictures(pdf, render(drawing, "png"))


@contextmanager
def drawing(jobs: int) -> Iterator[Callable[[str, Tables], Future[Pictures]]]:
    """A function that begins to draw a figure; with one job it returns when the figure is drawn."""
    if jobs == 1:
        yield _now
        return
    # The parent gets Ctrl-C too, and ends the process.
    pool = ProcessPoolExecutor(
        1, get_context("spawn"), initializer=signal.signal, initargs=(signal.SIGINT, signal.SIG_IGN)
    )
    try:
        yield lambda name, tables: pool.submit(pictures, name, tables)
    finally:
        pool.shutdown(cancel_futures=True)


def _now(name: str, tables: Tables) -> Future[Pictures]:
    done: Future[Pictures] = Future()
    done.set_result(pictures(name, tables))
    return done
