"""Results must not depend on the machine: other processors, and kernels that are not compiled."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

TESTS = Path(__file__).parent
#: What is run on each: searches to their ends, exact sums, and fits that are published bit by bit.
FILES = (
    "theory/test_state_evolution.py",
    "theory/test_range.py",
    "solvers/test_exact.py",
    "pinned/test_fits.py",
)
OPTIONS = ["-q", "-p", "no:cacheprovider", "--timeout", "1800"]


@pytest.mark.slow
@pytest.mark.timeout(3600)
@pytest.mark.parametrize(
    ("settings", "files"),
    [
        ({"NUMBA_DISABLE_JIT": "1"}, FILES[:1]),  # exact sums exist in compiled form only
        ({"NUMBA_CPU_NAME": "generic"}, FILES),
        ({"OPENBLAS_CORETYPE": "Prescott"}, FILES),
        ({"OPENBLAS_CORETYPE": "Nehalem"}, FILES),
        ({"OPENBLAS_CORETYPE": "Haswell"}, FILES),
    ],
    ids=lambda value: "-".join(value.values()) if isinstance(value, dict) else "",
)
def test_another_machine(tmp_path, settings, files):
    environment = os.environ | settings | {"NUMBA_CACHE_DIR": str(tmp_path)}
    done = subprocess.run(
        [sys.executable, "-m", "pytest", *OPTIONS, *files],
        cwd=TESTS,
        env=environment,
        capture_output=True,
        text=True,
    )
    assert done.returncode == 0, done.stdout[-3000:]
