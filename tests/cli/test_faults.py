"""Plain failures of the world around a command: one sentence, and no traceback."""

import json
import os
import random
import shutil
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

import privasso

pytestmark = pytest.mark.skipif(os.name == "nt", reason="needs signals and a shell")
SOURCE = Path(privasso.__file__).parent
#: Says when the command line begins, which imports the rest itself.
PROGRAM = """
import os, privasso.cli
os.write(1, b"begins\\n")
raise SystemExit(privasso.cli.main())
"""
THEORY = ["theory", "--json"]


def interrupted(delay, words):
    """Run a command, press Ctrl-C after some time; exit code, stderr, seconds, if it was done."""
    pipes = {"stdout": subprocess.PIPE, "stderr": subprocess.PIPE, "text": True}
    with subprocess.Popen([sys.executable, "-c", PROGRAM, *words], **pipes) as run:
        assert run.stdout is not None
        assert run.stdout.readline() == "begins\n"
        start = time.monotonic()
        if delay is not None:
            time.sleep(delay)
            run.send_signal(signal.SIGINT)
        output, error = run.communicate()
    return run.returncode, error, time.monotonic() - start, output.endswith("}\n")


def check_interrupted(count, seed):
    # The first run may compile.
    draw, seconds = random.Random(seed), min(interrupted(None, THEORY)[2] for _ in range(3))
    codes, delays = set(), [0.05, *(draw.uniform(0.0, 0.8 * seconds) for _ in range(count - 1))]
    for delay in delays:
        code, error, _, done = interrupted(delay, THEORY)
        assert "Traceback" not in error
        if done:  # Ctrl-C may come while Python itself ends
            assert code in (0, 130, -signal.SIGINT), error
            continue
        assert code == 130
        assert error == "privasso: interrupted.\n"
        codes.add(code)
    assert 130 in codes


def test_ctrl_c_while_modules_are_imported():
    check_interrupted(2, seed=0)


@pytest.mark.slow
def test_ctrl_c_while_modules_are_imported_at_many_moments():
    check_interrupted(60, seed=1)


def shell(line, **options):
    line = line.replace("PRIVASSO", f"{sys.executable} -m privasso")
    return subprocess.run(line, shell=True, capture_output=True, text=True, check=False, **options)


@pytest.mark.parametrize(
    "closed",
    [
        pytest.param(">&-", marks=pytest.mark.slow),
        pytest.param("2>&-", marks=pytest.mark.slow),
        "<&- >&- 2>&-",
    ],
)
def test_streams_that_are_closed(tmp_path, closed):
    """A file that is opened must not take the place of a stream, and get what is printed."""
    done = shell(f"PRIVASSO ledger create b.json --epsilon 1 --delta 1e-6 {closed}", cwd=tmp_path)
    assert done.returncode == 0
    assert "Traceback" not in done.stderr
    assert json.loads((tmp_path / "b.json").read_text())["epsilon"] == 1.0


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="there is no /dev/full")
def test_a_full_disk_under_standard_output(tmp_path):
    done = shell("PRIVASSO ledger --help > /dev/full", cwd=tmp_path)
    assert done.returncode == 2
    assert "No space left on device" in done.stderr
    assert done.stderr.count("\n") == 1


def read_only(words, home):
    """Run Python where neither the package nor the home can be written."""
    mount = f"mount --bind {SOURCE} {SOURCE} && mount -o remount,ro,bind {SOURCE}"
    keep = {name: value for name, value in os.environ.items() if not name.startswith("XDG")}
    environment = {**keep, "HOME": home, "PYTHONDONTWRITEBYTECODE": "1"}
    environment.pop("NUMBA_CACHE_DIR", None)
    return subprocess.run(
        ["unshare", "-m", "sh", "-c", f'{mount} && exec "$@"', "sh", sys.executable, *words],
        capture_output=True, text=True, check=False, env=environment,
    )  # fmt: skip


def check_mounting():
    if shutil.which("unshare") is None or read_only(["-c", ""], "/proc").returncode != 0:
        pytest.skip("only root may make a folder read-only for itself")


IMPORT = """
import json, os
import privasso.operators, privasso.fit._gibbs
folder = os.environ.get("NUMBA_CACHE_DIR", "")
mode = os.stat(folder).st_mode & 0o777
print(json.dumps([folder, mode]))
"""


def test_a_read_only_installation_and_home():
    check_mounting()
    done = read_only(["-c", IMPORT], "/proc")
    assert done.returncode == 0, done.stderr
    folder, mode = json.loads(done.stdout)
    assert mode == 0o700  # loading a kernel runs code
    assert not os.path.exists(folder)
    # A home that can be written needs no such folder.
    done = read_only(["-c", "import os, privasso; print('NUMBA_CACHE_DIR' in os.environ)"], "/tmp")
    assert done.stdout == "False\n"


@pytest.mark.slow
def test_a_command_in_a_read_only_installation():
    check_mounting()
    done = read_only(["-m", "privasso", "theory", "--covariance", "ar:0.5"], "/proc")
    assert done.returncode == 0, done.stderr
    assert done.stderr.count("NUMBA_CACHE_DIR") == 1
