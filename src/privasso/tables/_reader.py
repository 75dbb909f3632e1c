"""The process that reads data files with polars, seen from the one that uses the numbers."""

from __future__ import annotations

import contextlib
import json
import os
import subprocess
import sys
import weakref
from typing import IO, Any

import numpy as np

#: Bytes that may wait in the pipe between the processes, where the system allows a choice.
_PIPE = 1 << 20
_PROGRAM = "from privasso.tables._child import main; main()"
#: Longest line of an answer: the names of all columns.
_LONGEST = 1 << 30


class ReadFailedError(Exception):
    """The file could not be read, or the process that read it died of it."""


class Reader:
    """A process that reads data files; what it dies of leaves the caller alive.

    It ends by itself when the reader is no longer used.
    """

    def __init__(self) -> None:
        # The process finds its modules where this one does, and nothing of its own in this folder.
        self._process = subprocess.Popen(
            [sys.executable, "-P", "-c", _PROGRAM],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            env={**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)},
            pipesize=_PIPE,
        )
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        self._requests: IO[bytes] = self._process.stdin
        self._answers: IO[bytes] = self._process.stdout
        self._ready = False
        self._coming = 0  # columns of the answer that have not been taken yet
        self.close = weakref.finalize(self, _end, self._process)

    @property
    def alive(self) -> bool:
        """Whether it can answer."""
        return self.close.alive

    def ask(self, **request: object) -> dict[str, Any]:
        """Send a request and return the first line of the answer."""
        if not self._ready:
            self._ready = bool(self._answers.readline(_LONGEST))
            if not self._ready:
                self.close()
                raise OSError("the process that reads tables did not start; is polars installed?")
        self._coming = len(columns) if isinstance(columns := request.get("columns"), list) else 0
        try:
            self._requests.write(json.dumps(request).encode("utf-8") + b"\n")
            self._requests.flush()
        except OSError:
            raise self._failed() from None
        return self.next()

    def next(self) -> dict[str, Any]:
        """Return the next line of the answer."""
        line = self._answers.readline(_LONGEST)
        if not line.endswith(b"\n"):
            raise self._failed()
        answer = json.loads(line)
        if "failed" in answer:
            self._coming = 0  # nothing follows
        elif "wrong" in answer:
            self._coming -= 1  # nothing of this column follows
        if "failed" not in answer:
            return answer
        raise ReadFailedError if answer["failed"] == "file" else self._failed()

    def numbers(self, target: np.ndarray) -> None:
        """Fill a contiguous vector with the numbers that follow in the answer."""
        left = memoryview(target).cast("B")  # pyright: ignore[reportArgumentType]
        while left:
            count = self._answers.readinto(left)  # pyright: ignore[reportAttributeAccessIssue]
            if not count:
                raise self._failed()
            left = left[count:]
        self._coming -= 1

    def forget(self) -> None:
        """Do without the rest of the answer, which would be taken for the next one."""
        if self._coming:
            self.close()

    def _failed(self) -> ReadFailedError:
        self.close()
        return ReadFailedError()


def _end(process: subprocess.Popen[bytes]) -> None:
    """End a process whose answers are no longer wanted."""
    process.kill()
    for pipe in (process.stdin, process.stdout):
        if pipe is not None:
            with contextlib.suppress(OSError):  # a request that it did not live to read
                pipe.close()
    process.wait()
