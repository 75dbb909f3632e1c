"""A program that is imported once and then run many times, each time in a process of its own.

``python forked.py MODULE`` reads a line for each run: a JSON list of two files for what is
printed, and the arguments. It forks; the child runs the module as ``python -m MODULE`` would. Only
imports are shared between runs: the first child says which modules the program has imported.
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
        read, write = os.pipe()
        child = os.fork()
        if child == 0:
            os.close(read)
            code = _run(module, *json.loads(line))
            names = [name for name in sys.modules if name not in ("__main__", module)]
            os.write(write, " ".join(names).encode()[:60_000])
            os._exit(code)
        os.close(write)
        with os.fdopen(read) as names:
            used = names.read().split()
        code = os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
        for name in [] if known else used:
            with contextlib.suppress(Exception):
                importlib.import_module(name)
        known = True
        print(code, flush=True)


def _run(module: str, stdout: str, stderr: str, *arguments: str) -> int:
    """Run the program in this process, with files for what it prints, and return its exit code."""
    code = 0
    try:
        for number, name in ((1, stdout), (2, stderr)):
            os.dup2(os.open(name, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600), number)
        os.dup2(os.open(os.devnull, os.O_RDONLY), 0)
        sys.argv = [module, *arguments]
        runpy.run_module(module, run_name="__main__", alter_sys=True)
    except SystemExit as end:
        code = end.code if isinstance(end.code, int) else int(end.code is not None)
    except BaseException:
        code = 1
        traceback.print_exc()
    finally:
        sys.stdout.flush()
        sys.stderr.flush()
    return code


if __name__ == "__main__":
    sys.path[0] = os.getcwd()  # as for python -m
    _serve(sys.argv[1])
