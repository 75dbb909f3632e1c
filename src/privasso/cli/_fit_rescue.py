"""What a fit has paid for: it is kept until all files are written, and every way out says so."""

from __future__ import annotations

import contextlib
import errno
import signal
import tempfile
import threading
from pathlib import Path

from privasso._files import write_whole
from privasso._text import escaped
from privasso.artefact import model_text, release_text
from privasso.cli._fit import FitSettings
from privasso.cli._progress import screen
from privasso.fit import Outcome

#: Endings of the files that hold what was paid for while a fit goes on.
RELEASE, RESULT = ".release.json", ".rescued.json"


class Paid:
    """What a fit has paid for, as a ``with`` block around all of the fit.

    An error in it, or Ctrl-C, says that the budget is spent, on what, and where the result is.
    """

    def __init__(self, settings: FitSettings) -> None:
        self.settings = settings
        self._made: Outcome | None = None
        self._spent = ""
        self._where: Path | None = None
        self._files: tuple[Path, ...] = ()
        self._listens = False

    def __enter__(self) -> Paid:
        # A request to end is as good as Ctrl-C: it must not end a fit without a word.
        if threading.current_thread() is threading.main_thread():
            self._listens = signal.getsignal(signal.SIGTERM) is signal.SIG_DFL
        if self._listens:
            signal.signal(signal.SIGTERM, signal.default_int_handler)
        return self

    def keep(self, made: Outcome, spent: str) -> None:
        """Write the result to a file of its own; nothing can interrupt the fit before.

        `spent` says what it has cost. Without room for a file it stays in memory.
        """
        self._made, self._spent = made, spent
        with contextlib.suppress(OSError):
            self._where = self._rescued()

    def moved(self, path: Path) -> None:
        """Note that the file that was asked for holds what was kept, so that no other has to."""
        where, self._where = self._where, path
        if where is not None:
            where.unlink(missing_ok=True)

    def done(self, *files: Path) -> None:
        """Note that all files are written; what was kept beside them is no longer needed."""
        self._files = files
        where, self._where = self._where, None
        if where is not None and where not in files:
            where.unlink(missing_ok=True)

    def __exit__(self, kind: object, error: BaseException | None, trace: object) -> None:
        if self._listens:
            signal.signal(signal.SIGTERM, signal.SIG_DFL)
        made = self._made
        if error is None or made is None:
            return
        if self._listens and isinstance(error, KeyboardInterrupt):
            # Whoever presses it twice shall not miss what is said now; the end is near.
            signal.signal(signal.SIGINT, signal.SIG_IGN)
        if self._files:
            names = ", ".join(escaped(file) for file in self._files)
            error.add_note(f"The fit is done and its files are written: {names}. {self._spent}")
            return
        kept = self._kept()
        if isinstance(error, (ValueError, RuntimeError, OSError)):
            failure = made.failure(error, kept)
            failure.add_note(self._spent)
            raise failure from None
        error.add_note(f"{made.after_failure(kept)} {self._spent}")

    def _kept(self) -> str:
        """Make sure that the result is kept; say where it is and how to use it."""
        text = self.text
        if text is None:
            return ""
        if self._where is None:
            with contextlib.suppress(OSError):
                self._where = self._rescued()
        shown = "FILE" if self._where is None else escaped(self._where)
        use = "and it can be used as it is"
        if self._ending == RELEASE:
            use = f"and using it with --from-release {shown} costs no further privacy"
        if self._where is not None:
            return f"in {shown}, {use}"
        print(text, file=screen(), flush=True)
        return f"on standard output alone: save it as a file, {use}"

    @property
    def _ending(self) -> str:
        return RELEASE if self._made is None or self._made.final is None else RESULT

    @property
    def text(self) -> str | None:
        """What was paid for, or None if the guarantee covers nothing that could be kept."""
        made = self._made
        if made is None:
            return None
        if made.final is not None:
            return model_text(made.final)
        return None if made.kept is None else release_text(made.kept)

    def _rescued(self) -> Path | None:
        """Write the result beside the model, or else in the folder for temporary files."""
        text = self.text
        if text is None:
            return None
        assert self.settings.out is not None
        beside = self.settings.out.with_suffix(self._ending)
        try:
            return _written(beside, text)
        except OSError:
            return _written(Path(tempfile.gettempdir(), beside.name), text)


def _written(path: Path, text: str) -> Path:
    """Write a file under that name, or under a similar one that does not exist yet."""
    for k in range(1, 1000):
        found = path if k == 1 else path.with_name(f"{path.stem}-{k}{path.suffix}")
        try:
            write_whole(found, text, replace=False)
            return found
        except FileExistsError:
            continue
    raise FileExistsError(errno.EEXIST, "no free name for the release", str(path))
