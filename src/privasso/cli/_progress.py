"""Where a command prints, and what it shows while it takes long."""

from __future__ import annotations

import contextlib
import functools
import os
import sys
from collections.abc import Callable, Iterator
from contextvars import ContextVar
from typing import TYPE_CHECKING, TextIO

if TYPE_CHECKING:
    from rich.progress import Progress, ProgressColumn


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

    def __getattr__(self, name: str) -> object:
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
    with _bar(what, quiet=quiet):
        yield


@contextlib.contextmanager
def counting(
    what: str, *, quiet: bool = False, lines: bool = False
) -> Iterator[Callable[[int, int, str], None]]:
    """Yield a function of (done, total, what is done), which shows a bar with the time left.

    Without a terminal nothing is shown, or with `lines` one line per stage; a stage is the part
    of the description before a colon.
    """
    seen: set[str] = set()
    with _bar(what, "{task.completed:,.0f} of {task.total:,.0f}", "left:", quiet=quiet) as bar:

        def show(done: int, total: int, description: str = what) -> None:
            stage = description.partition(":")[0]
            if bar is not None:
                bar.update(bar.task_ids[0], completed=done, total=total, description=description)
            elif lines and not quiet and _silent.get() is None and stage not in seen:
                print(f"{stage} ({done} of {total})", file=sys.stderr)
            seen.add(stage)

        yield show


@contextlib.contextmanager
def _bar(what: str, *words: str, quiet: bool) -> Iterator[Progress | None]:
    """A bar, or a spinner without words, on the screen for errors; None if that is no terminal."""
    from rich.console import Console
    from rich.progress import BarColumn, Progress, SpinnerColumn, TextColumn
    from rich.progress import TimeElapsedColumn as Elapsed
    from rich.progress import TimeRemainingColumn as Remaining

    quiet = quiet or _silent.get() is not None
    if not quiet:
        _announce_compiling()
    console = Console(stderr=True, highlight=False)
    if quiet or not console.is_terminal:
        yield None
        return
    columns: list[ProgressColumn] = [SpinnerColumn(), TextColumn("{task.description}"), Elapsed()]
    if words:
        columns = [columns[1], BarColumn(), TextColumn(words[0]), Elapsed()]
        columns += [TextColumn(words[1]), Remaining()]
    with Progress(*columns, console=console, transient=True) as bar:
        bar.add_task(what, total=1 if words else None)
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
