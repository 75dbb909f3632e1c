"""
A table on disk, block by block
===============================

A fit of whole records (here ε = 0.5, δ = 10⁻⁷) reads the table in blocks of rows. All sums are exact, so
that coefficients from the disk and from memory are the same to the last bit.
"""

import tempfile
import warnings
from pathlib import Path

import matplotlib.pyplot as plt
import numpy as np

import privasso as pv

warnings.simplefilter("ignore", pv.PrivacyWarning)  # simulated data: no budget is at stake
rng = np.random.default_rng(0)
true = np.array([0.3, -0.2, 0.1, 0.0, 0.0, 0.0])
privacy = pv.RecordDP(0.5, 1e-7, bounds=[(0.0, 1.0)] * 6, y_bounds=(0.0, 1.0))
sizes = [2000, 10_000, 50_000]
fig, axes = plt.subplots(figsize=(6, 4), layout="constrained")
axes.plot(true, "k_", markersize=22, label="truth")
for place, rows in enumerate(sizes):
    X = rng.random((rows, 6))
    y = 0.4 + X @ true + 0.1 * rng.standard_normal(rows)
    with tempfile.TemporaryDirectory() as folder:
        np.save(Path(folder, "table.npy"), X)
        on_disk = np.load(Path(folder, "table.npy"), mmap_mode="r")
        blocks = pv.PrivateLasso(privacy=privacy, random_state=1).fit(on_disk, y)
        del on_disk
    whole = pv.PrivateLasso(privacy=privacy, random_state=1).fit(X, y)
    assert blocks.coef_.tobytes() == whole.coef_.tobytes()
    axes.plot(np.arange(6) + 0.15 * (place - 1), blocks.coef_, "o", label=f"{rows:,} rows")
axes.axhline(0.0, color="grey", linewidth=0.8)
axes.set(xlabel="column", ylabel="coefficient, ε = 0.5")
axes.legend()
plt.show()
