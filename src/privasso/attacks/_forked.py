"""A program that is imported once and then run many times, each time in a process of its own.

This file is the server, too: ``python _forked.py MODULE`` reads requests from its input, one JSON
object per line. For each it forks; the child runs the module as ``python -m MODULE`` would, with
its own output files. Only imports are shared between runs, so that a run takes a fraction of the
time of a new interpreter. The first child says which modules the program has imported.
"""

from __future__ import annotations

import contextlib
import importlib
import json
import os
import runpy
import subprocess
import sys
import traceback
from collections.abc import Sequence
from pathlib import Path


class Forked:
    """A server that forks for each run; use it as a context.

    Parameters
    ----------
    module : str
        What is run, as by ``python -m``.
    """

    def __init__(self, module: str) -> None:
        # Threads do not survive a fork.
        environment = {**os.environ, "OMP_NUM_THREADS": "1", "OPENBLAS_NUM_THREADS": "1"}
        self._server = subprocess.Popen(
            [sys.executable, str(Path(__file__)), module],
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


def _serve(module: str) -> None:
    known = False
    for line in sys.stdin:
        request = json.loads(line)
        read, write = os.pipe()
        child = os.fork()
        if child == 0:
            os.close(read)
            _child(module, request, write)
        os.close(write)
        with os.fdopen(read) as names:
            used = names.read().split()
        code = os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
        if not known:
            for name in used:
                with contextlib.suppress(Exception):
                    importlib.import_module(name)
            known = True
        print(code, flush=True)


def _child(module: str, request: dict[str, object], write: int) -> None:
    """Run the program, report its modules, and end without returning to the server."""
    code = 1
    try:
        for number, name in ((1, "stdout"), (2, "stderr")):
            made = os.open(str(request[name]), os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600)
            os.dup2(made, number)
        os.dup2(os.open(os.devnull, os.O_RDONLY), 0)
        arguments = request["arguments"]
        assert isinstance(arguments, list)
        sys.argv = [module, *map(str, arguments)]
        try:
            runpy.run_module(module, run_name="__main__", alter_sys=True)
            code = 0
        except SystemExit as end:
            code = end.code if isinstance(end.code, int) else int(end.code is not None)
    except BaseException:
        traceback.print_exc()
    finally:
        sys.stdout.flush()
        sys.stderr.flush()
        names = [name for name in sys.modules if name not in ("__main__", module)]
        os.write(write, " ".join(names).encode()[:60_000])
        os._exit(code)


if __name__ == "__main__":
    sys.path[0] = os.getcwd()  # as for python -m
    _serve(sys.argv[1])
