"""What a new process pays: the import, and compilation (nothing, once the kernels are cached)."""

from __future__ import annotations

import subprocess
import sys

import polars as pl

TITLE = "A new process"
NOTE = "Target: less than 1 s of import beyond numpy, scipy and scikit-learn; no compilation."

PEERS = "import numpy, scipy.optimize, scipy.sparse, sklearn.linear_model"
CODE = {
    "import numpy, scipy, scikit-learn": PEERS,
    "and import privasso": f"{PEERS}\nimport privasso",
    "and the first solve (N = 500)": f"""{PEERS}
import privasso as pv
s = pv.Model().sample(500, rng=0)
pv.solve(s.F, s.y, 0.1)""",
}


def run() -> pl.DataFrame:
    rows = []
    for label, code in CODE.items():
        timed = f"import time\nt = time.perf_counter()\n{code}\nprint(time.perf_counter() - t)"
        runs = [
            float(subprocess.check_output([sys.executable, "-W", "ignore", "-c", timed]))
            for _ in range(4)
        ]
        rows.append({"what": label, "s": min(runs[1:])})
    return pl.DataFrame(rows)
