"""Processes that read files with other libraries, apart from the one that uses the numbers.

A damaged file can make a library abort the process it runs in, exhaust its memory or never end, and
the messages of libraries quote cells. Such a process takes requests, one line of JSON each, which
name a function of ours. It answers with numbers and facts that others put into words; nothing that
a library says leaves it.
"""

from __future__ import annotations

import contextlib
import io
import json
import mmap
import os
import subprocess
import sys
import weakref
from collections.abc import Callable, Iterator
from importlib import import_module
from typing import IO, BinaryIO, TypeAlias, cast

import numpy as np

from privasso._files import unreadable
from privasso._types import Json

#: A line of JSON that one process writes and the other reads.
Message: TypeAlias = dict[str, Json]
#: A function of a module that answers a request in the process.
Answer: TypeAlias = Callable[[Message, BinaryIO], None]
#: Bytes that may wait in the pipe between the processes, where the system allows a choice.
_PIPE = 1 << 20
#: Longest line of an answer: the names of all columns.
_LONGEST = 1 << 30
_NOT_STARTED = "the process that reads files did not start; is all that privasso needs installed?"
_ENVIRONMENT = {
    "ARROW_DEFAULT_MEMORY_POOL": "system",  # others ask for far more memory than they use
    "HDF5_PLUGIN_PRELOAD": "::",  # no code that a file names
    "OPENBLAS_NUM_THREADS": "1",
}


class ReadFailedError(Exception):
    """The file could not be read, or the process that read it died of it."""


class Reader:
    """A process that reads files; what it dies of leaves the caller alive.

    It ends by itself when the reader is no longer used.
    """

    def __init__(self) -> None:
        #: A file in memory that both processes map, where the system has such files.
        self.memory = os.memfd_create("privasso") if hasattr(os, "memfd_create") else None
        self._spans: list[tuple[int, mmap.mmap]] = []
        # The process finds its modules where this one does, and nothing of its own in this folder.
        self._process = subprocess.Popen(
            [sys.executable, "-P", "-c", "from privasso._apart import main; main()"],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            env={**os.environ, **_ENVIRONMENT, "PYTHONPATH": os.pathsep.join(sys.path)},
            pipesize=_PIPE,
            # Ctrl-C is for the caller, who may have to finish what was paid for.
            process_group=0 if os.name == "posix" else None,
            pass_fds=() if self.memory is None else (self.memory,),
        )
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        self._requests: IO[bytes] = self._process.stdin
        self._answers = cast(io.BufferedReader, self._process.stdout)
        self._ready = False
        self.close = weakref.finalize(self, _end, self._process, self.memory)

    @property
    def runs(self) -> bool:
        """Whether the process has not ended."""
        return self.close.alive and self._process.poll() is None

    def ask(self, does: Answer, path: str | os.PathLike[str], **request: object) -> Message:
        """Call a function in the process, and return the first line of its answer."""
        if not self._ready:
            self._ready = bool(self._answers.readline(_LONGEST))
            if not self._ready:
                self.close()
                raise OSError(_NOT_STARTED)
        what = {"does": [does.__module__, does.__name__], "path": os.path.abspath(path)}
        try:
            self._requests.write(json.dumps(request | what).encode("utf-8") + b"\n")
            self._requests.flush()
        except OSError:
            raise self._failed() from None
        return self.next()

    def next(self) -> Message:
        """Return the next line of the answer."""
        line = self._answers.readline(_LONGEST)
        if not line.endswith(b"\n"):
            raise self._failed()
        answer = json.loads(line)
        if "failed" not in answer:
            return answer
        if answer["failed"] == "libraries":
            raise OSError(_NOT_STARTED)
        raise ReadFailedError if answer["failed"] == "file" else self._failed()

    def numbers(self, target: np.ndarray) -> None:
        """Fill a contiguous vector with the numbers that follow in the answer."""
        left = target.data.cast("B")
        while left:
            count = self._answers.readinto(left)
            if not count:
                raise self._failed()
            left = left[count:]

    def room(self, size: int) -> tuple[int, mmap.mmap]:
        """Shared memory that nobody uses any more, and where the other process finds it."""
        assert self.memory is not None
        for k, (start, span) in enumerate(self._spans):
            if len(span) < size:
                continue
            length = len(span)
            try:
                span.close()
            except BufferError:  # an array holds it
                continue
            self._spans[k] = start, mmap.mmap(self.memory, length, offset=start)
            return self._spans[k]
        start, unit = os.fstat(self.memory).st_size, mmap.ALLOCATIONGRANULARITY
        length = -(-max(size, 1) // unit) * unit
        os.ftruncate(self.memory, start + length)
        self._spans.append((start, mmap.mmap(self.memory, length, offset=start)))
        return self._spans[-1]

    def _failed(self) -> ReadFailedError:
        self.close()
        return ReadFailedError()


def _end(process: subprocess.Popen[bytes], memory: int | None) -> None:
    """End a process whose answers are no longer wanted."""
    process.kill()
    if memory is not None:
        os.close(memory)  # arrays that are in use keep their part of it
    for pipe in (process.stdin, process.stdout):
        if pipe is not None:
            with contextlib.suppress(OSError):  # a request that it did not live to read
                pipe.close()
    process.wait()


#: Processes that have nothing to do, by the process that started them: a fork must not use them.
_IDLE: dict[int, list[Reader]] = {}


@contextlib.contextmanager
def reading(path: str | os.PathLike[str]) -> Iterator[Reader]:
    """A process to ask about a file, all of whose answers are taken; one sentence if it fails."""
    idle, reader = _IDLE.setdefault(os.getpid(), []), None
    with contextlib.suppress(IndexError):
        while reader is None or not reader.runs:  # one may have been interrupted with its caller
            reader = idle.pop()
    if reader is None or not reader.runs:
        reader = Reader()
    try:
        yield reader
    except ReadFailedError:
        raise unreadable(path) from None
    except BaseException:
        reader.close()  # what is left of the answer would be taken for the next one
        raise
    finally:
        if reader.close.alive:
            idle.append(reader)


def say(answers: BinaryIO, **facts: object) -> None:
    """Write a line of an answer."""
    answers.write(json.dumps(facts).encode("utf-8") + b"\n")


def serve(requests: BinaryIO, answers: BinaryIO) -> None:
    """Answer requests until there are no more, or one fails in a way that may not be survived."""
    for line in requests:
        try:
            request = json.loads(line)
            module, name = request.pop("does")
            getattr(import_module(module), name)(request, answers)
            answers.flush()
        except (KeyboardInterrupt, BrokenPipeError):
            return
        except Exception as error:
            say(answers, failed="libraries" if isinstance(error, ImportError) else "file")
            answers.flush()
        except BaseException:  # a panic of a library, after which it may no longer be sound
            say(answers, failed="process")
            answers.flush()
            return


def main() -> None:
    """Answer requests from standard input on standard output, after a word of readiness."""
    say(sys.stdout.buffer, ready=True)
    sys.stdout.buffer.flush()
    serve(sys.stdin.buffer, sys.stdout.buffer)


def limit_memory(size: int) -> None:
    """Let a file that asks for more memory than this end the process and no other."""
    with contextlib.suppress(ImportError, AttributeError, ValueError, OSError):
        import resource

        _, most = resource.getrlimit(resource.RLIMIT_AS)
        resource.setrlimit(resource.RLIMIT_AS, (size, most))
