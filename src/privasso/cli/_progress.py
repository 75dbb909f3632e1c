"""Where a command prints, and what it shows while it takes long."""

from __future__ import annotations

import contextlib
import functools
import os
import sys
from collections.abc import Callable, Iterator
from contextvars import ContextVar
from typing import Any, TextIO


class Pipe:
    """A text stream whose reader may go away: the rest of the output is dropped, the work goes on.

    Any other failure is an error, after which the rest is dropped too.
    """

    def __init__(self, stream: TextIO) -> None:
        self._stream = stream

    def write(self, text: str) -> int:
        """Write the text, or drop it when nobody reads."""
        try:
            return self._stream.write(text)
        except OSError as error:
            self._drop()
            if not isinstance(error, BrokenPipeError):
                raise
            return len(text)

    def flush(self) -> None:
        """Pass on what was written, or drop it when nobody reads."""
        try:
            self._stream.flush()
        except OSError as error:
            self._drop()
            if not isinstance(error, BrokenPipeError):
                raise

    def _drop(self) -> None:
        # What is still in a buffer, and all that follows, goes where writing always succeeds.
        nowhere = os.open(os.devnull, os.O_WRONLY)
        os.dup2(nowhere, self._stream.fileno())
        os.close(nowhere)

    def __getattr__(self, name: str) -> Any:
        return getattr(self._stream, name)


#: The standard output while nothing is printed to it.
_silent: ContextVar[TextIO | None] = ContextVar("silent", default=None)


@contextlib.contextmanager
def silence() -> Iterator[None]:
    """Print nothing to the standard output, and show no progress."""
    before = _silent.set(sys.stdout)
    try:
        with open(os.devnull, "w", encoding="utf-8") as away, contextlib.redirect_stdout(away):
            yield
    finally:
        _silent.reset(before)


def screen() -> TextIO:
    """The standard output, also where nothing is to be printed to it."""
    return _silent.get() or sys.stdout


@contextlib.contextmanager
def working(what: str, *, quiet: bool = False) -> Iterator[None]:
    """Show what is being done and the time since it began, on a terminal only."""
    from rich.progress import SpinnerColumn, TextColumn, TimeElapsedColumn

    columns = SpinnerColumn(), TextColumn("{task.description}"), TimeElapsedColumn()
    with _bar(*columns, quiet=quiet) as bar:
        if bar is not None:
            bar.add_task(what, total=None)
        yield


@contextlib.contextmanager
def counting(
    what: str, *, quiet: bool = False, lines: bool = False
) -> Iterator[Callable[[int, int, str], None]]:
    """Yield a function of (done, total, what is done), which shows a bar with the time left.

    Without a terminal nothing is shown, or with `lines` one line per stage; a stage is the part
    of the description before a colon.
    """
    from rich.console import Console
    from rich.progress import BarColumn, MofNCompleteColumn, TextColumn
    from rich.progress import TimeElapsedColumn as Elapsed
    from rich.progress import TimeRemainingColumn as Remaining

    console = Console(stderr=True, highlight=False)
    seen: set[str] = set()

    def line(done: int, total: int, description: str = what) -> None:
        stage = description.partition(":")[0]
        if lines and not quiet and _silent.get() is None and stage not in seen:
            console.print(f"{stage} ({done} of {total})", soft_wrap=True)
        seen.add(stage)

    columns = (
        TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn(), Elapsed(),
        TextColumn("left:"), Remaining(),
    )  # fmt: skip
    with _bar(*columns, quiet=quiet) as bar:
        if bar is None:
            yield line
            return
        task = bar.add_task(what, total=None)

        def show(done: int, total: int, description: str = what) -> None:
            bar.update(task, completed=done, total=total, description=description)

        yield show


@contextlib.contextmanager
def passes(n_rows: int, *, quiet: bool = False) -> Iterator[Callable[[Any], None] | None]:
    """Show rows read of a table in blocks, the number of the pass and the time left in it.

    It yields a function that takes the `Progress` of the blocks, or None where nothing is shown.
    """
    from rich.progress import BarColumn, TextColumn, TimeElapsedColumn, TimeRemainingColumn

    columns = (
        TextColumn("Pass {task.fields[number]}"), BarColumn(),
        TextColumn("{task.completed:,.0f} of {task.total:,.0f} rows"), TimeElapsedColumn(),
        TextColumn("left in this pass:"), TimeRemainingColumn(),
    )  # fmt: skip
    with _bar(*columns, quiet=quiet) as bar:
        if bar is None:
            yield None
            return
        task = bar.add_task("", total=n_rows, number=1)

        def show(progress: Any) -> None:
            bar.update(task, completed=progress.rows, number=progress.passes + 1)

        yield show


@contextlib.contextmanager
def _bar(*columns: Any, quiet: bool) -> Iterator[Any]:
    """A bar of these columns on the screen for errors, or None if that is no terminal."""
    from rich.console import Console
    from rich.progress import Progress

    quiet = quiet or _silent.get() is not None
    if not quiet:
        _announce_compiling()
    console = Console(stderr=True, highlight=False)
    if quiet or not console.is_terminal:
        yield None
        return
    with Progress(*columns, console=console, transient=True) as bar:
        yield bar


@functools.cache
def _announce_compiling() -> None:
    """Say so, once, if kernels have to be compiled, as in the first run after an installation."""
    from numba.core import event

    from privasso._threads import kernels_are_temporary

    often = "the first time that a command needs them"
    if kernels_are_temporary():
        often = (
            "each time, because neither the folder of privasso nor yours for caches can be "
            "written; the variable NUMBA_CACHE_DIR may name one"
        )

    class Announcement(event.Listener):
        said = False

        def on_start(self, event: object) -> None:
            if not self.said:
                self.said = True
                print(
                    "privasso: compiling its kernels for this machine; this takes up to a minute, "
                    f"{often}",
                    file=sys.stderr,
                )

        def on_end(self, event: object) -> None:
            pass

    event.register("numba:compile", Announcement())
