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
#: Integers wrap around in exact sums, of which NumPy warns where kernels are not compiled.
OPTIONS += ["-W", "ignore:overflow encountered in scalar:RuntimeWarning"]


@pytest.mark.slow
@pytest.mark.timeout(3600)
@pytest.mark.parametrize(
    "settings",
    [
        {"NUMBA_DISABLE_JIT": "1"},
        {"NUMBA_CPU_NAME": "generic"},
        {"OPENBLAS_CORETYPE": "Prescott"},
        {"OPENBLAS_CORETYPE": "Nehalem"},
        {"OPENBLAS_CORETYPE": "Haswell"},
    ],
    ids=lambda value: "-".join(value.values()),
)
def test_another_machine(tmp_path, settings):
    environment = os.environ | settings | {"NUMBA_CACHE_DIR": str(tmp_path)}
    done = subprocess.run(
        [sys.executable, "-m", "pytest", *OPTIONS, *FILES],
        cwd=TESTS,
        env=environment,
        capture_output=True,
        text=True,
    )
    assert done.returncode == 0, done.stdout[-3000:]
