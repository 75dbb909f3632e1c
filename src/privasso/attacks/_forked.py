"""A program that is imported once and then run many times, each time in a process of its own."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path


class Forked:
    """A server that forks for each run, see `_fork_server.py`; use it as a context.

    Parameters
    ----------
    module : str
        What is run, as by ``python -m``.
    """

    def __init__(self, module: str) -> None:
        # Threads do not survive a fork.
        environment = {**os.environ, "OMP_NUM_THREADS": "1", "OPENBLAS_NUM_THREADS": "1"}
        self._server = subprocess.Popen(
            [sys.executable, str(Path(__file__).with_name("_fork_server.py")), module],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
            env=environment,
        )

    def __enter__(self) -> Forked:
        return self

    def __exit__(self, *_: object) -> None:
        assert self._server.stdin is not None
        assert self._server.stdout is not None
        self._server.stdin.close()
        self._server.wait()
        self._server.stdout.close()

    def run(self, arguments: Sequence[str], stdout: Path, stderr: Path) -> int:
        """Run the program with its output in these files, and return its exit code."""
        assert self._server.stdin is not None
        assert self._server.stdout is not None
        request = {"arguments": list(arguments), "stdout": str(stdout), "stderr": str(stderr)}
        self._server.stdin.write(json.dumps(request) + "\n")
        self._server.stdin.flush()
        answer = self._server.stdout.readline()
        if not answer:
            raise RuntimeError("the server that starts the program has ended")
        return int(answer)
