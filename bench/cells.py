"""A private fit of a sparse table with a million columns, from an .h5ad file: time and memory.

    python -m bench.cells --folder /somewhere/with/room [--rows 20000] [--columns 1000000]

writes the file there, reads and fits it in a process of its own, and removes the file. Nothing is
subtracted from the peak of resident memory.
"""

from __future__ import annotations

import argparse
import json
import resource
import subprocess
import sys
import time
from pathlib import Path

import numpy as np

from bench.page import extend

PER_ROW = 1000


def generate(path: Path, rows: int, columns: int) -> None:
    """Counts of which a thousand per row are not zero; ten columns matter."""
    import h5py

    rng = np.random.default_rng(0)
    matter = np.arange(10)
    with h5py.File(path, "w") as file:
        X = file.create_group("X")
        X.attrs.update({"encoding-type": "csr_matrix", "encoding-version": "0.1.0"})
        X.attrs["shape"] = [rows, columns]
        size = rows * PER_ROW
        data = X.create_dataset("data", (size,), "f4")
        indices = X.create_dataset("indices", (size,), "i4")
        X["indptr"] = np.arange(rows + 1, dtype=np.int64) * PER_ROW
        y = np.empty(rows)
        edges = np.linspace(10, columns, PER_ROW - 9).astype(np.int64)
        for i in range(rows):
            at = rng.integers(edges[:-1], edges[1:])  # one in each interval: sorted, no repeats
            value = rng.integers(1, 5, PER_ROW).astype(np.float32)
            part = slice(i * PER_ROW, (i + 1) * PER_ROW)
            value[:10] = rng.integers(0, 5, 10)
            indices[part], data[part] = np.concatenate([matter, at]), value
            y[i] = value[:10].sum() / 40 + 0.1 * rng.standard_normal()
        obs, var = file.create_group("obs"), file.create_group("var")
        obs.attrs["_index"] = var.attrs["_index"] = "_index"
        obs["y"] = np.clip(y, 0.0, 1.0)
        var["_index"] = [f"g{j}" for j in range(columns)]


def fit(path: Path) -> dict[str, float]:
    """Read the file, and fit it with screening."""
    import privasso as pv
    from privasso.blocks import read_sparse

    start = time.process_time()
    table = read_sparse(path, "y")
    read = time.process_time() - start
    held = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    n = table.X.shape[1]
    privacy = pv.RecordDP(3.0, 1e-6, bounds=np.tile([0.0, 4.0], (n, 1)), y_bounds=(0, 1))
    start = time.process_time()
    estimator = pv.PrivateLasso(privacy=privacy, screen=10, random_state=0)
    estimator.fit(table.X, table.y)
    return {
        "read": read,
        "fit": time.process_time() - start,
        "found": int(np.sum(estimator.screened_ < 10)),
        "r2": estimator.score(table.X, table.y),
        "matrix_gb": (table.X.data.nbytes + table.X.indices.nbytes) / 1e9,
        "read_gb": held * 1024 / 1e9,
        "peak_gb": resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024 / 1e9,
    }


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m bench.cells", description=__doc__)
    parser.add_argument("--folder", type=Path, required=True)
    parser.add_argument("--rows", type=int, default=20_000)
    parser.add_argument("--columns", type=int, default=1_000_000)
    parser.add_argument("--only", action="store_true", help=argparse.SUPPRESS)
    parser.add_argument("--write", action="store_true", help="renew docs/data/scale-cells.csv")
    given = parser.parse_args()
    path = given.folder / f"cells-{given.rows}-{given.columns}.h5ad"
    if given.only:
        print(json.dumps(fit(path)))
        return
    given.folder.mkdir(parents=True, exist_ok=True)
    generate(path, given.rows, given.columns)
    try:
        words = [sys.executable, "-m", "bench.cells", "--only", *sys.argv[1:]]
        found = json.loads(subprocess.run(words, check=True, capture_output=True).stdout)
    finally:
        path.unlink()
    if given.write:
        line = {
            "rows × columns": f"{given.rows:,} × {given.columns:,}",
            "entries": f"{found['matrix_gb']:.2f} GB",
            "reading": f"{found['read']:.1f} s",
            "peak after reading": f"{found['read_gb']:.2f} GB",
            "fit": f"{found['fit']:.1f} s",
            "peak": f"{found['peak_gb']:.2f} GB",
        }
        command = "python -m bench.cells --folder FOLDER --write"
        extend("scale-cells", [line], ["rows × columns"], command)
    print(
        f"{given.rows:,} × {given.columns:,}, {found['matrix_gb']:.2f} GB of entries: read in "
        f"{found['read']:.1f} s of processor time (peak {found['read_gb']:.2f} GB), fitted in "
        f"{found['fit']:.1f} s (peak {found['peak_gb']:.2f} GB); {found['found']} of 10 columns "
        f"found, R² {found['r2']:.2f}"
    )


if __name__ == "__main__":
    main()
