"""Where a book lives: in memory, or in a file that several processes share under a lock."""

from __future__ import annotations

import contextlib
import os
import sys
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import TypeAlias

from privasso._documents import DocumentError, json_text, read_json
from privasso._files import check_regular, read_bounded, write_whole
from privasso.ledger._book import Book

#: Bytes beyond which a file is refused unread.
MAX_BYTES = 256 * 1024 * 1024


class Memory:
    """A book in the memory of one process."""

    path = None

    def __init__(self, book: Book) -> None:
        self._book = book
        self._lock = threading.Lock()
        self._process = os.getpid()

    def read(self) -> Book:
        """Return the book; a copy in another process would count on its own and is refused."""
        if os.getpid() != self._process:
            raise ValueError(
                "a ledger in memory belongs to the process that made it; use "
                "Ledger.create(path, epsilon, delta), a file that processes share"
            )
        return self._book

    def update(self, change: Callable[[Book], Book]) -> None:
        """Replace the book; what takes long is done outside of the lock."""
        while True:
            before = self.read()
            after = change(before)
            with self._lock:
                if self._book is before:
                    self._book = after
                    return


class File:
    """A book in a file, which is replaced whole under a lock and flushed to the disk."""

    def __init__(self, path: Path) -> None:
        # Charging replaces the file, which would cut a link to it.
        self.path = path.resolve()
        self._seen: tuple[int, str] | None = None

    def read(self) -> Book:
        """Return the book; one that does not continue what was seen before is refused."""
        check_regular(self.path)
        if self.path.stat().st_nlink > 1:
            raise DocumentError(
                "the ledger is a file with several names (hard links), of which charging would "
                "change only one; keep one name"
            )
        seen = self._seen  # before reading: another thread may charge meanwhile
        book = Book.from_document(read_json(self.path, most_bytes=MAX_BYTES))
        chain = book.hashes()
        if seen is not None:
            count, mark = seen
            if len(chain) <= count or chain[count] != mark:
                raise DocumentError(
                    "the ledger was replaced by another or by an older copy while it was in use"
                )
        self._remember(chain)
        return book

    def create(self, book: Book) -> None:
        """Write a new file; one that exists is not overwritten."""
        if not self.path.parent.is_dir():
            raise ValueError(f"{self.path.parent} is no folder; make it first")
        try:
            write_whole(self.path, json_text(book.to_document()), replace=False)
        except FileExistsError:
            message = f"{self.path} exists already, and a ledger is not overwritten"
            raise ValueError(message) from None
        self.read()

    def update(self, change: Callable[[Book], Book]) -> None:
        """Replace the book; when this returns, the new one is on the disk.

        What takes long is done outside of the lock. Under it, the file is replaced only if it still
        is the one that was read.
        """
        while True:
            content = read_bounded(self.path, MAX_BYTES)
            book = change(self.read())
            with locked(self.path):
                if read_bounded(self.path, MAX_BYTES) == content:
                    write_whole(self.path, json_text(book.to_document()))
                    self._remember(book.hashes())
                    return

    def _remember(self, chain: list[str]) -> None:
        """Keep the newest hash that was seen, and how many entries it covers."""
        if self._seen is None or len(chain) - 1 > self._seen[0]:
            self._seen = len(chain) - 1, chain[-1]


#: A place for a book.
Store: TypeAlias = Memory | File

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
