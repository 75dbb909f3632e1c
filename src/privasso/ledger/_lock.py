"""A lock that processes and threads share, on a file beside the one that it protects."""

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

    The lock is on ``NAME.lock`` in the same folder, because the file itself is replaced. That
    file is empty and stays.

    Examples
    --------
    >>> import tempfile
    >>> with tempfile.TemporaryDirectory() as folder, locked(Path(folder, "budget.json")):
    ...     [file.name for file in Path(folder).iterdir()]
    ['budget.json.lock']
    """
    handle = os.open(path.with_name(path.name + ".lock"), os.O_RDWR | os.O_CREAT, 0o666)
    try:
        end = time.monotonic() + PATIENCE
        while not _try(handle):
            if time.monotonic() > end:
                raise TimeoutError(
                    f"another process has held the lock of {path} for {PATIENCE:g} s; nothing was "
                    "charged"
                )
            time.sleep(_PAUSE)
        try:
            yield
        finally:
            _release(handle)
    finally:
        os.close(handle)


if sys.platform == "win32":
    import msvcrt

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

    def _try(handle: int) -> bool:
        try:
            fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            return False
        return True

    def _release(handle: int) -> None:
        # Closing is not enough where a process that was forked meanwhile has the file open too.
        fcntl.flock(handle, fcntl.LOCK_UN)
