"""`privasso fit --record-dp` on 100,000 × 500 of Parquet against scikit-learn's Lasso."""

from __future__ import annotations

import tempfile
from pathlib import Path

import numpy as np
import polars as pl

from bench.fit import COLUMNS, LAM, THEIRS, compared, write_data

TITLE = "A private fit of whole records from Parquet, 100000 rows × 500 columns"
NOTE = (
    "Measured as the fit for labels. Ours is the whole of `privasso fit --record-dp` with the "
    "default λ (read, scale and shrink rows, solve with a certificate, write the model); the "
    "bounds reach four deviations to both sides. Target: 6 times scikit-learn's time, 1200 MB."
)

_OURS = """
import sys, time, resource
from pathlib import Path
import polars, sklearn.linear_model, privasso.artefact, privasso.report
from privasso.cli import main
data = Path(sys.argv[1])
words = [
    "fit", sys.argv[1], "--target", "y", "--record-dp", "--epsilon", "1", "--delta", "1e-6",
    "--y-bounds", "-20", "20", "--bounds", str(data.with_name("bounds.csv")),
    "--mechanism", sys.argv[2], "--out", str(data.with_name("model.json")), "--quiet",
]
start = time.perf_counter()
assert main(words) == 0
print(time.perf_counter() - start, resource.getrusage(resource.RUSAGE_SELF).ru_maxrss)
"""


def run() -> pl.DataFrame:
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder, "data.parquet")
        write_data(path)
        write_bounds(path.with_name("bounds.csv"))
        jobs = {
            "privasso fit --record-dp": (_OURS, "objective"),
            "privasso fit --record-dp --mechanism statistics": (_OURS, "statistics"),
            "scikit-learn": (THEIRS, str(LAM)),
        }
        return compared(path, jobs)


def write_bounds(path: Path) -> None:
    """Bounds of the columns of `write_data`: their mean is their scale, and so is their spread."""
    scales = np.exp(np.random.default_rng(0).normal(0.0, 2.0, COLUMNS)).tolist()
    lines = [f"c{k},{-3.0 * scale!r},{5.0 * scale!r}" for k, scale in enumerate(scales)]
    path.write_text("\n".join(["name,low,high", *lines]) + "\n", encoding="utf-8")
