"""A table, and the same table in files."""

import os
import signal

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import privasso as pv

N = 6
BOUNDS = [(0.0, 1.0)] * N
PRIVACY = pv.RecordDP(1.0, 1e-6, bounds=BOUNDS, y_bounds=(0.0, 1.0))


def table(m=4000, seed=0):
    """Covariates that float32 holds exactly, and labels."""
    rng = np.random.default_rng(seed)
    X = (rng.uniform(0.0, 1.1, (m, N)) ** 2).astype(np.float32).astype(np.float64)
    y = 0.2 + 0.5 * X[:, 0] - 0.3 * X[:, 3] + 0.1 * rng.standard_normal(m)
    return X, y


def model(X, y=None, privacy=PRIVACY, **options):
    """Everything that a fit publishes, as bytes."""
    est = pv.PrivateLasso(privacy=privacy, random_state=3, **options).fit(X, y)
    return np.append(est.coef_, est.intercept_).tobytes()


def write(folder, X, y, *, parts=7, seed=1):
    """The rows in any order in several files, some of them with columns of single precision."""
    order = np.random.default_rng(seed).permutation(len(y))
    paths = []
    for k, rows in enumerate(np.array_split(order, parts)):
        kind = np.float32 if k % 2 else np.float64
        columns = {f"x{j}": X[rows, j].astype(kind) for j in range(N)}
        if k == 2:  # another order of the columns
            columns = dict(reversed(columns.items()))
        found = pa.table({**columns, "y": y[rows]})
        path = folder / (f"{k}.arrow" if k == 3 else f"{k}.parquet")
        if k == 3:
            with pa.ipc.new_file(path, found.schema) as file:
                file.write_table(found, max_chunksize=300)
        else:
            pq.write_table(found, path, row_group_size=400 + 10 * k)
        paths.append(path)
    return paths


class Flaky:
    """A task that fails where a file says so, or is done twice, and otherwise does its work."""

    def __init__(self, task, folder):
        self.task, self.folder = task, folder

    def __call__(self, chunks, state):
        for kind in ("kill", "twice"):
            try:
                (self.folder / kind).unlink()
            except FileNotFoundError:
                continue
            if kind == "kill":
                os.kill(os.getpid(), signal.SIGKILL)
            chunks = list(chunks)
            self.task(iter(chunks), state)
        return self.task(chunks, state)


def local_cluster(n_workers):
    """Processes on this machine, without a web page."""
    distributed = pytest.importorskip("distributed")
    return distributed.LocalCluster(
        n_workers=n_workers, threads_per_worker=1, processes=True, dashboard_address="127.0.0.1:0"
    )
