"""Files that a command writes together: all of them or none, and no other run at the same time."""

from __future__ import annotations

import contextlib
import os
import tempfile
from collections.abc import Mapping
from pathlib import Path

from privasso._files import check_regular, check_writable, write_whole
from privasso._text import escaped

try:
    import fcntl
except ImportError:  # Windows, where an open file can be made to vanish with its process
    fcntl = None


class Outputs:
    """The files that a command will write, claimed before the work begins.

    A claim is an empty, hidden file ``.NAME.lock`` beside the output that is locked for as long as
    the process lives; a second run that asks for the same output meanwhile is refused, before
    it spends anything. Leaving the ``with`` block removes the claims. After a crash the file may
    stay, but its lock does not, and the next run takes it over.

    Examples
    --------
    >>> import tempfile
    >>> with tempfile.TemporaryDirectory() as folder, Outputs() as outputs:
    ...     outputs.claim("--out", Path(folder, "model.json"))
    ...     outputs.write({"--out": "content"})
    ...     Path(folder, "model.json").read_text()
    'content'
    """

    def __init__(self) -> None:
        self.paths: dict[str, Path] = {}
        self._claims = contextlib.ExitStack()

    def __enter__(self) -> Outputs:
        return self

    def __exit__(self, *_: object) -> None:
        self._claims.close()

    def claim(
        self, option: str, path: Path | None, *, inputs: tuple[Path, ...] = (), new: bool = False
    ) -> None:
        """Refuse a place that cannot be written, is an input, or is taken by another output.

        With `new` a file that exists is refused too.
        """
        if path is None:
            return
        shown = escaped(path)
        if path.is_dir():
            raise ValueError(f"{option} {shown} is a folder; name a file in it")
        for other, taken in [*self.paths.items(), *(("the input", file) for file in inputs)]:
            if path.resolve() == taken.resolve():
                raise ValueError(f"{option} and {other} are the same file, {shown}")
        try:
            if os.path.lexists(path) and path.exists():
                check_regular(path)
                check_writable(path)
            handle, name = tempfile.mkstemp(dir=path.parent, prefix=f".{path.name}.")
            os.close(handle)
            Path(name).unlink()
            taken = not self._lock(path.parent / f".{path.name}.lock")
        except OSError as error:
            raise ValueError(f"{option} {shown} cannot be written: {error.strerror}") from None
        if taken:
            raise ValueError(f"another run is about to write {option} {shown}; wait for its end")
        if new and os.path.lexists(path):  # asked while nobody else can write it
            raise ValueError(
                f"{option} {shown} exists already, and a release is never overwritten, because its "
                "budget is spent; name another file"
            )
        self.paths[option] = path

    def write(self, contents: Mapping[str, str | bytes], *, new: bool = False) -> None:
        """Write the files in the order given; if one fails, leave none of the new ones.

        The last file is written only after all others. With `new` nothing is replaced.
        """
        before: dict[Path, bytes | None] = {}
        try:
            for option, content in contents.items():
                path = self.paths[option]
                if new:
                    write_whole(path, content, replace=False)
                    before[path] = None
                else:
                    before[path] = path.read_bytes() if path.exists() else None
                    write_whole(path, content)
        except BaseException:
            for path, content in before.items():
                with contextlib.suppress(OSError):
                    if content is None:
                        path.unlink(missing_ok=True)
                    else:
                        write_whole(path, content)
            raise

    def _lock(self, path: Path) -> bool:
        """Make a file that no other process holds, until the claims end; False if one does."""
        if fcntl is None:
            flags = os.O_CREAT | os.O_EXCL | os.O_RDWR | getattr(os, "O_TEMPORARY", 0)
            try:
                handle = os.open(path, flags)
            except FileExistsError:
                return False
            self._claims.callback(os.close, handle)
            return True
        while True:
            handle = os.open(path, os.O_CREAT | os.O_RDWR | os.O_NOFOLLOW | os.O_NONBLOCK, 0o600)
            try:
                fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except BlockingIOError:
                os.close(handle)
                return False
            except BaseException:
                os.close(handle)
                raise
            # Between opening and locking, the run before may have removed the name.
            with contextlib.suppress(FileNotFoundError):
                if os.path.samestat(os.fstat(handle), path.stat()):
                    self._claims.callback(_unlock, path, handle)
                    return True
            os.close(handle)


def _unlock(path: Path, handle: int) -> None:
    with contextlib.suppress(OSError):
        path.unlink()  # while it is still locked, so that nobody else's is removed
    os.close(handle)
