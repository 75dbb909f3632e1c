"""A lock that processes and threads share, on the file that it protects."""

from __future__ import annotations

import contextlib
import os
import sys
import time
from collections.abc import Iterator
from pathlib import Path

#: Seconds after which somebody else's lock is given up on.
PATIENCE = 60.0
_PAUSE = 0.02


@contextlib.contextmanager
def locked(path: Path) -> Iterator[None]:
    """Hold the lock of a file; it ends with the process, however that ends.

    The lock is on the file itself, so that there is nothing beside it that could be removed. It
    follows no symbolic link. Whoever holds it may replace the file; those who waited then see that
    the name has another file by now, and begin again.
    """
    end = time.monotonic() + PATIENCE
    while True:
        handle = _open(path)
        try:
            if _try(handle):
                try:
                    if _is_current(handle, path):
                        yield
                        return
                finally:
                    _release(handle)
            elif time.monotonic() > end:
                raise TimeoutError(
                    f"another process has held the lock of {path} for {PATIENCE:g} s; nothing was "
                    "charged"
                )
            else:
                time.sleep(_PAUSE)
        finally:
            os.close(handle)


if sys.platform == "win32":
    import msvcrt

    def _open(path: Path) -> int:
        # A file that is open can be neither replaced nor removed there, so another one is locked.
        return os.open(path.with_name(path.name + ".lock"), os.O_RDWR | os.O_CREAT, 0o666)

    def _is_current(handle: int, path: Path) -> bool:
        return True

    def _try(handle: int) -> bool:
        try:
            msvcrt.locking(handle, msvcrt.LK_NBLCK, 1)
        except OSError:
            return False
        return True

    def _release(handle: int) -> None:
        os.lseek(handle, 0, os.SEEK_SET)
        msvcrt.locking(handle, msvcrt.LK_UNLCK, 1)

else:
    import fcntl

    def _open(path: Path) -> int:
        # Some network file systems lock only what is open for writing.
        flags = os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC
        try:
            return os.open(path, os.O_RDWR | flags)
        except PermissionError:
            return os.open(path, os.O_RDONLY | flags)

    def _is_current(handle: int, path: Path) -> bool:
        with contextlib.suppress(FileNotFoundError):
            return os.path.samestat(os.fstat(handle), os.lstat(path))
        return False

    def _try(handle: int) -> bool:
        try:
            fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            return False
        return True

    def _release(handle: int) -> None:
        # Closing is not enough where a process that was forked meanwhile has the file open too.
        fcntl.flock(handle, fcntl.LOCK_UN)
