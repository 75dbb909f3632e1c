"""A server that runs a Python module as a program again and again, each time in a new process.

``python _fork_server.py MODULE`` reads requests from its input, one JSON object per line. For each
it forks; the child runs the module as ``python -m MODULE`` would, with its own output files. Only
imports are shared between runs, so that a run takes a fraction of the time of a new interpreter.
The first child says which modules the program has imported.
"""

from __future__ import annotations

import contextlib
import importlib
import json
import os
import runpy
import sys
import traceback


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
