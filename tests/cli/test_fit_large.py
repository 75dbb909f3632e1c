"""A fit on 100,000 rows × 500 columns stays within three times the memory of its data."""

import subprocess
import sys

import numpy as np
import polars as pl
import pytest

import privasso as pv

CODE = """
import resource, sys
from privasso.cli import main
code = main(sys.argv[1:])
print(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss)
sys.exit(code)
"""


@pytest.mark.slow
@pytest.mark.skipif(sys.platform != "linux", reason="ru_maxrss is in kilobytes on Linux")
def test_memory_of_a_large_fit(tmp_path):
    m, n = 100_000, 500
    rng = np.random.default_rng(0)
    scales = np.exp(rng.normal(0.0, 2.0, n))
    columns = {f"c{k}": scales[k] * rng.standard_normal(m) for k in range(n)}
    y = columns["c3"] / scales[3] + 0.1 * rng.standard_normal(m)
    path = tmp_path / "data.parquet"
    pl.DataFrame({**columns, "y": y}).write_parquet(path)
    del columns
    options = "--target y --label-dp --epsilon 1 --delta 1e-7 --y-bounds -4 4"
    words = ["fit", str(path), *options.split(), "--out", str(tmp_path / "model.json")]
    run = subprocess.run([sys.executable, "-c", CODE, *words], capture_output=True, text=True)
    assert run.returncode == 0, run.stderr
    peak = 1024 * int(run.stdout.split()[-1])
    assert peak < 3 * 8 * m * n
    model = pv.load(tmp_path / "model.json")
    assert np.argmax(np.abs(model.coef) * scales) == 3
