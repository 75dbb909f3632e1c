"""Where compiled kernels are kept if neither the installation nor the user's folder can be written.

numba keeps them beside the source or in the user's folder for caches, and without both it refuses
to compile at all. Then they go to a new folder that no one else can write to, because loading them
runs code, and which is removed at the end: the next run compiles again.
"""

from __future__ import annotations

import os
import sys
from pathlib import Path

_VARIABLE = "NUMBA_CACHE_DIR"
_MARK = "privasso-kernels-"


def prepare() -> None:
    """Name a folder for numba, before it is asked to compile, if it would find none."""
    here = Path(__file__).parent
    own = here / "__pycache__" if (here / "__pycache__").exists() else here
    if os.access(own, os.W_OK | os.X_OK) or os.environ.get(_VARIABLE):
        return
    import atexit
    import tempfile

    users = Path(os.environ.get("XDG_CACHE_HOME") or Path("~").expanduser())
    while not users.exists() and users != users.parent:
        users = users.parent
    try:
        tempfile.TemporaryFile(dir=users).close()
    except OSError:
        folder = tempfile.mkdtemp(prefix=_MARK)
        atexit.register(_remove, folder, os.getpid())
        os.environ[_VARIABLE] = folder
        if "numba" in sys.modules:
            sys.modules["numba"].config.reload_config()


def is_temporary() -> bool:
    """Whether kernels are kept until the end of the process only."""
    return Path(os.environ.get(_VARIABLE, "")).name.startswith(_MARK)


def _remove(folder: str, process: int) -> None:
    import shutil

    if os.getpid() == process:  # not in a process that was forked
        shutil.rmtree(folder, ignore_errors=True)
