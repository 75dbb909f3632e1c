"""Fits over blocks of rows: memory, time against reading, and overhead of Dask.

    python -m bench.blocks --folder /somewhere/with/room [--rows 1000000] [--columns 500]
        [--engines local dask dask-ml]

writes Parquet files there, measures, and removes them. Every fit and every reading is a process of
its own, so that its peak of resident memory is its own.
"""

from __future__ import annotations

import argparse
import json
import resource
import shutil
import subprocess
import sys
import time
from pathlib import Path

import numpy as np

from bench.page import extend

ROWS_PER_GROUP = 8192


def generate(folder: Path, rows: int, columns: int, files: int) -> list[str]:
    """Skewed covariates in [0, 1], of which ten matter, in files of equal size."""
    import pyarrow as pa
    import pyarrow.parquet as pq

    folder.mkdir(parents=True, exist_ok=True)
    names = [f"x{j}" for j in range(columns)]
    beta = np.zeros(columns)
    beta[:: max(1, columns // 10)] = 0.1
    paths = []
    for k in range(files):
        path = folder / f"part-{k:03d}.parquet"
        rng = np.random.default_rng(k)
        fields = [(name, pa.float64()) for name in [*names, "y"]]
        with pq.ParquetWriter(
            path, pa.schema(fields), use_dictionary=False, compression="none"
        ) as out:
            left = rows // files
            while left:
                m = min(ROWS_PER_GROUP, left)
                X = rng.random((columns, m))
                y = np.clip(beta @ X + 0.1 * rng.standard_normal(m), 0.0, 1.0)
                out.write_table(pa.table([*X, y], names=[*names, "y"]), row_group_size=m)
                left -= m
        paths.append(str(path))
    return paths


def fit(paths: list[str], columns: int, engine: str, jobs: int) -> dict[str, float]:
    """One fit, with the number of its passes."""
    import privasso as pv
    from privasso.blocks import on_dask, open_files

    blocks = open_files(paths, "y", jobs=jobs)
    passes: list[int] = []
    privacy = pv.RecordDP(1.0, 1e-8, bounds=[(0.0, 1.0)] * columns, y_bounds=(0.0, 1.0))

    def run(blocks) -> float:
        start = time.perf_counter()
        shown = blocks.reporting_to(lambda progress: passes.append(progress.passes))
        pv.PrivateLasso(privacy=privacy, random_state=0).fit(shown)
        return time.perf_counter() - start

    warm_up(columns)
    if engine == "local":
        seconds = run(blocks)
    else:
        from distributed import Client, LocalCluster

        with (
            LocalCluster(
                n_workers=jobs, threads_per_worker=1, dashboard_address="127.0.0.1:0"
            ) as cluster,
            Client(cluster) as client,
        ):
            client.run(warm_up, columns)
            seconds = run(on_dask(blocks, client))
    peak = own_peak()
    if engine == "dask":
        peak = max(peak, resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss)
    return {"seconds": seconds, "passes": max(passes) + 1, "peak_mb": peak / 1024}


def peer(paths: list[str], jobs: int) -> dict[str, float]:
    """A LASSO of dask-ml, without privacy, as it comes: ADMM on chunks of 4096 rows."""
    from dask import dataframe
    from dask_ml.linear_model import LinearRegression
    from distributed import Client, LocalCluster

    with (
        LocalCluster(
            n_workers=jobs, threads_per_worker=1, dashboard_address="127.0.0.1:0"
        ) as cluster,
        Client(cluster),
    ):
        table = dataframe.read_parquet(paths).to_dask_array(lengths=True).rechunk((4096, -1))
        start = time.perf_counter()
        LinearRegression(penalty="l1").fit(table[:, :-1], table[:, -1])
        seconds = time.perf_counter() - start
    peak = resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss
    return {"seconds": seconds, "passes": 0, "peak_mb": peak / 1024}


def warm_up(columns: int) -> None:
    """Compile, or load what was compiled."""
    import privasso as pv

    rng = np.random.default_rng(0)
    X, y = np.asfortranarray(rng.random((200, 3))), rng.random(200)
    privacy = pv.RecordDP(1.0, 1e-6, bounds=[(0.0, 1.0)] * 3, y_bounds=(0.0, 1.0))
    pv.PrivateLasso(privacy=privacy, random_state=0).fit(X, y)


def read(paths: list[str], jobs: int) -> dict[str, float]:
    """Read all numbers into arrays once, and do nothing with them."""
    from privasso.blocks import open_files

    open_files(paths[:1], "y", jobs=1).sum(_length, None)  # imports what it needs
    blocks = open_files(paths, "y", jobs=jobs)
    start = time.perf_counter()
    blocks.sum(_length, None)
    seconds = time.perf_counter() - start
    return {
        "seconds": seconds,
        "peak_mb": own_peak() / 1024,
    }


def own_peak() -> int:
    """Peak of resident memory in kilobytes, without that of the process that started this one.

    Linux counts the latter in `ru_maxrss`.
    """
    return int(Path("/proc/self/status").read_text("utf-8").split("VmHWM:")[1].split()[0])


def _length(chunks, state):
    return {"rows": np.array([sum(len(y) for _, y in chunks)])}


def alone(what: str, paths: list[str], columns: int, jobs: int) -> dict[str, float]:
    """A measurement in a process of its own."""
    words = [sys.executable, "-m", "bench.blocks", "--only", what, "--columns", str(columns)]
    done = subprocess.run(
        [*words, "--jobs", str(jobs), "--paths", *paths], capture_output=True, text=True, check=True
    )
    return json.loads(done.stdout.splitlines()[-1])


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--folder", type=Path)
    parser.add_argument("--rows", type=int, default=1_000_000)
    parser.add_argument("--columns", type=int, default=500)
    parser.add_argument("--files", type=int, default=16)
    parser.add_argument("--jobs", type=int, default=2)
    parser.add_argument("--engines", nargs="*", default=["local", "dask"])
    parser.add_argument("--shares", nargs="*", type=int, default=[16, 4, 1])
    parser.add_argument("--write", action="store_true", help="renew docs/data/scale-blocks.csv")
    parser.add_argument("--only")
    parser.add_argument("--paths", nargs="*")
    asked = parser.parse_args()
    if asked.only is not None:
        if asked.only == "read":
            found = read(asked.paths, asked.jobs)
        elif asked.only == "dask-ml":
            found = peer(asked.paths, asked.jobs)
        else:
            found = fit(asked.paths, asked.columns, asked.only, asked.jobs)
        print(json.dumps(found))
        return
    folder = asked.folder / "privasso-bench-blocks"
    try:
        paths = generate(folder, asked.rows, asked.columns, asked.files)
        lines: list[dict[str, str]] = []
        # By default a sixteenth, a quarter and all of the rows: memory should not grow.
        for count in sorted({max(1, asked.files // share) for share in asked.shares}):
            part = paths[:count]
            size = sum(Path(path).stat().st_size for path in part) / 1e9
            once = alone("read", part, asked.columns, asked.jobs)
            for engine in asked.engines:
                if engine != "local" and count != asked.files:
                    continue
                got = alone(engine, part, asked.columns, asked.jobs)
                reading = once["seconds"] * max(1, got["passes"])
                rows = asked.rows // asked.files * count
                line = {
                    "rows × columns": f"{rows:,} × {asked.columns}",
                    "on disk": f"{size:.2f} GB",
                    "engine": engine,
                    "passes": f"{got['passes']:.0f}" if got["passes"] else "",
                    "time": f"{got['seconds']:.1f} s",
                    "reading × passes": f"{reading:.1f} s" if got["passes"] else "",
                    "ratio": f"{got['seconds'] / reading:.2f}" if got["passes"] else "",
                    "peak": f"{got['peak_mb']:.0f} MB",
                }
                print(line, flush=True)
                lines.append(line)
        if asked.write:
            size = f"--rows {asked.rows} --columns {asked.columns}"
            command = f"python -m bench.blocks --folder FOLDER {size} --write"
            extend("scale-blocks", lines, ["rows × columns", "engine"], command)
    finally:
        shutil.rmtree(folder, ignore_errors=True)


if __name__ == "__main__":
    main()
