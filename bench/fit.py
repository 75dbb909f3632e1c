"""Private fits of 100,000 rows × 500 columns of Parquet against scikit-learn's Lasso."""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
from pathlib import Path

import numpy as np
import polars as pl

TITLE = "A private fit from Parquet, 100000 rows × 500 columns"
NOTE = (
    "Each run is a new process. Reading is included for all, the import is not: ours is the whole "
    "of `privasso fit` (read, check, calibrate, release, solve, verify, write the model), "
    "scikit-learn's is `polars.read_parquet` and `Lasso.fit`. Processor time on one thread of "
    "arithmetic, children included, the best of three runs in turns."
)
ROWS, COLUMNS, LAM = 100_000, 500, 3000.0

#: What both print: processor time of the process and its children since `start`, and peak memory.
_TIMES = """
import resource
def used():
    both = map(resource.getrusage, (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN))
    return sum(one.ru_utime + one.ru_stime for one in both)
start = used()
"""
_PRINT = """
print(used() - start, resource.getrusage(resource.RUSAGE_SELF).ru_maxrss)
"""
_OURS = f"""
import sys
from pathlib import Path
import polars, sklearn.linear_model, privasso.artefact, privasso.report
from privasso.cli import main
data = Path(sys.argv[1])
words = [
    "fit", sys.argv[1], "--target", "y", "--epsilon", "1", "--delta", "1e-6",
    "--y-bounds", "-20", "20", "--quiet", "--out", str(data.with_name("model.json")),
    *sys.argv[2].split(),
]
words = [str(data.with_name(word)) if word == "bounds.csv" else word for word in words]
{_TIMES}
assert main(words) == 0
{_PRINT}
"""
THEIRS = f"""
import sys
import polars as pl
from sklearn.linear_model import Lasso
{_TIMES}
frame = pl.read_parquet(sys.argv[1])
y = frame.drop_in_place("y").to_numpy()
X = frame.to_numpy()
del frame
Lasso(alpha=float(sys.argv[2]) / len(y)).fit(X, y)
{_PRINT}
"""


def run() -> pl.DataFrame:
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder, "data.parquet")
        write_data(path)
        write_bounds(path.with_name("bounds.csv"))
        records = "--record-dp --bounds bounds.csv --mechanism"
        jobs = {
            f"`privasso fit --label-dp --lam {LAM:g}`": (_OURS, f"--label-dp --lam {LAM:g}"),
            "`privasso fit --label-dp --lam auto`": (_OURS, "--label-dp --lam auto"),
            "`privasso fit --record-dp`": (_OURS, f"{records} objective"),
            "`privasso fit --record-dp --mechanism statistics`": (_OURS, f"{records} statistics"),
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
    words = subprocess.check_output(
        [sys.executable, "-c", code, str(path), lam], env={**os.environ, "OMP_NUM_THREADS": "1"}
    ).split()
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


def write_bounds(path: Path) -> None:
    """Bounds of the columns of `write_data`: their mean is their scale, and so is their spread."""
    scales = np.exp(np.random.default_rng(0).normal(0.0, 2.0, COLUMNS)).tolist()
    lines = [f"c{k},{-3.0 * scale!r},{5.0 * scale!r}" for k, scale in enumerate(scales)]
    path.write_text("\n".join(["name,low,high", *lines]) + "\n", encoding="utf-8")
