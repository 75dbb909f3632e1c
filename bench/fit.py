"""`privasso fit` on 100,000 rows × 500 columns of Parquet against scikit-learn's Lasso."""

from __future__ import annotations

import subprocess
import sys
import tempfile
from pathlib import Path

import numpy as np
import polars as pl

TITLE = "A private fit from Parquet, 100000 rows × 500 columns"
NOTE = (
    "Each run is a new process. Reading is included for both, the import is not: ours is the whole "
    "of `privasso fit` (read, check, calibrate, release, solve, verify on all rows, write the "
    "model), scikit-learn's is `polars.read_parquet` and `Lasso.fit`. One solve each at the same "
    "λ = M·alpha; ours to a KKT violation of 1e-8 λ, scikit-learn at its default of 1e-4. "
    "Memory is the peak of the process, interpreter and libraries included; the data are 400 MB. "
    "Targets: 4 times scikit-learn's time, 1200 MB. `lam auto` solves at up to 36 values of λ."
)
ROWS, COLUMNS, LAM = 100_000, 500, 3000.0

_OURS = """
import sys, time, resource
from pathlib import Path
import polars, sklearn.linear_model, privasso.artefact, privasso.report
from privasso.cli import main
words = [
    "fit", sys.argv[1], "--target", "y", "--label-dp", "--epsilon", "1", "--delta", "1e-6",
    "--y-bounds", "-20", "20", "--lam", sys.argv[2], "--quiet",
    "--out", str(Path(sys.argv[1]).with_name("model.json")),
]
start = time.perf_counter()
assert main(words) == 0
print(time.perf_counter() - start, resource.getrusage(resource.RUSAGE_SELF).ru_maxrss)
"""
THEIRS = """
import sys, time, resource
import polars as pl
from sklearn.linear_model import Lasso
start = time.perf_counter()
frame = pl.read_parquet(sys.argv[1])
y = frame.drop_in_place("y").to_numpy()
X = frame.to_numpy()
del frame
Lasso(alpha=float(sys.argv[2]) / len(y)).fit(X, y)
print(time.perf_counter() - start, resource.getrusage(resource.RUSAGE_SELF).ru_maxrss)
"""


def run() -> pl.DataFrame:
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder, "data.parquet")
        write_data(path)
        jobs = {
            "privasso fit": (_OURS, str(LAM)),
            "privasso fit --lam auto": (_OURS, "auto"),
            "scikit-learn": (THEIRS, str(LAM)),
        }
        return compared(path, jobs)


def compared(path: Path, jobs: dict[str, tuple[str, str]]) -> pl.DataFrame:
    """Best times and largest memory of three runs of each job, in turns."""
    best: dict[str, tuple[float, float]] = {}
    for _ in range(3):
        for name, (code, argument) in jobs.items():
            seconds, memory = measure(code, path, argument)
            before = best.get(name, (np.inf, 0.0))
            best[name] = min(before[0], seconds), max(before[1], memory)
    theirs = best["scikit-learn"][0]
    return pl.DataFrame(
        [
            {
                "what": name,
                "s": seconds,
                "peak, MB": memory,
                "time / scikit-learn": seconds / theirs,
            }
            for name, (seconds, memory) in best.items()
        ]
    )


def measure(code: str, path: Path, lam: str) -> tuple[float, float]:
    """Seconds and peak megabytes of one run in a process of its own."""
    words = subprocess.check_output([sys.executable, "-c", code, str(path), lam]).split()
    return float(words[0]), float(words[1]) / 1024


def write_data(path: Path) -> None:
    """Columns of scales over orders of magnitude, one in ten of them with a coefficient."""
    rng = np.random.default_rng(0)
    scales = np.exp(rng.normal(0.0, 2.0, COLUMNS))
    x0 = np.where(rng.random(COLUMNS) < 0.1, rng.standard_normal(COLUMNS) / scales, 0.0)
    frame, y = {}, rng.standard_normal(ROWS)
    for k in range(COLUMNS):
        column = scales[k] * (1.0 + rng.standard_normal(ROWS))
        y += x0[k] * (column - scales[k])
        frame[f"c{k}"] = column
    pl.DataFrame({**frame, "y": y}).write_parquet(path)
