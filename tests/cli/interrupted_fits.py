"""Fits that are stopped at random moments; a program that prints one line of JSON for each.

    python interrupted_fits.py FOLDER MECHANISM SIGNAL COUNT SEED

All is imported and compiled once, and each fit runs in a fork, so that the moments fall into the
fit itself.
"""

import contextlib
import faulthandler
import io
import json
import os
import random
import signal
import sys
import time
from pathlib import Path

import numpy as np

from privasso.cli import main
from privasso.ledger import Book, Ledger

WORDS = {
    "release": "--label-dp --mechanism release --y-bounds -4 4",
    "label-objective": "--label-dp --mechanism objective --y-bounds -4 4",
    "objective": "--record-dp --mechanism objective --y-bounds -4 4 --bounds bounds.csv",
    "statistics": "--record-dp --mechanism statistics --y-bounds -4 4 --bounds bounds.csv "
    "--keep-release kept.json",
    "screened": "--label-dp --screen 2 --y-bounds -4 4",
    "report": "--label-dp --mechanism release --y-bounds -4 4 --report report.html",
}


def words(mechanism):
    data = "fit table.npz --epsilon 3 --delta 1e-6 --out model.json --ledger book.json --json"
    return [*data.split(), *WORDS[mechanism].split()]


def prepare(folder):
    folder.mkdir(parents=True)
    os.chdir(folder)
    rng = np.random.default_rng(0)
    X = rng.standard_normal((200, 8))
    np.savez("table.npz", X=X, y=np.clip(X[:, 0] + 0.1 * rng.standard_normal(200), -4, 4))
    Path("bounds.csv").write_text("name,low,high\n" + "".join(f"x{k},-4,4\n" for k in range(8)))
    Ledger.create("book.json", 30.0, 1e-4)


def run(mechanism, delay, number):
    """Fit in a fork, which gets a signal after some time; the exit code and the seconds taken."""
    start = time.monotonic()
    for name in ("stdout", "stderr"):
        Path(name).touch()
    held = {signal.SIGINT, signal.SIGTERM}  # until the fit begins
    signal.pthread_sigmask(signal.SIG_BLOCK, held)
    child = os.fork()
    if child == 0:
        signal.signal(signal.SIGINT, signal.default_int_handler)
        for stream, name in ((1, "stdout"), (2, "stderr")):
            os.dup2(os.open(name, os.O_WRONLY), stream)
        faulthandler.enable()
        code = 99
        try:
            signal.pthread_sigmask(signal.SIG_UNBLOCK, held)
            code = main(words(mechanism))
        finally:
            os._exit(code)
    signal.pthread_sigmask(signal.SIG_UNBLOCK, held)
    if delay is not None:
        time.sleep(delay)
        os.kill(child, number)
    status = os.waitpid(child, 0)[1]
    return os.waitstatus_to_exitcode(status), time.monotonic() - start


if __name__ == "__main__":
    # What is spent and left in all takes seconds to compute, and is tested elsewhere.
    Book.spent = Book.left = lambda *_: 1.0  # pyright: ignore[reportAttributeAccessIssue]
    top, mechanism, number, count, seed = sys.argv[1:]
    top, number = Path(top).absolute(), signal.Signals[number]
    draw = random.Random(int(seed))
    prepare(top / "here")
    with contextlib.redirect_stdout(io.StringIO()):
        assert main(words(mechanism)) == 0
    prepare(top / "whole")
    code, seconds = run(mechanism, None, None)
    assert code == 0, Path("stderr").read_text()
    for k in range(int(count)):
        prepare(top / str(k))
        delay = draw.uniform(0.0, 1.1 * seconds)
        code, _ = run(mechanism, delay, number)
        found = {
            "code": code,
            "delay": delay,
            "charged": len(Ledger.open("book.json").entries),
            "files": sorted(file.name for file in Path().glob("*.json")),
            "out": Path("stdout").read_text(),
            "err": Path("stderr").read_text(),
        }
        print(json.dumps(found), flush=True)
