"""
The model in a database
=======================

A published model (here private labels, ε = 1, δ = 10⁻⁶) is a sum, which any database can compute: it becomes
a query that SQLite runs. ``privasso export`` writes the same, a function of R or an ONNX graph.
"""

import sqlite3
import tempfile
import warnings
from pathlib import Path

import matplotlib.pyplot as plt
import numpy as np
import polars as pl
from sklearn.pipeline import make_pipeline

import privasso as pv

warnings.simplefilter("ignore", pv.PrivacyWarning)
rng = np.random.default_rng(0)
ward = rng.choice(["heart", "eye", "bone"], 600)
age = rng.normal(60.0, 15.0, 600).round(1)
stay = 2.0 + 0.05 * age + 3.0 * (ward == "heart") + rng.standard_normal(600)
table = pl.DataFrame({"ward": ward, "age": [None if a > 85.0 else float(a) for a in age]})

privacy = pv.LabelDP(1.0, 1e-6, y_bounds=(0.0, 20.0))
pipeline = make_pipeline(pv.TableEncoder(missing="mean"), pv.PrivateLasso(privacy=privacy))
pipeline.fit(table, stay)
with tempfile.TemporaryDirectory() as folder:
    pv.save(pipeline, Path(folder, "model.json"))  # the file that would be published
    model = pv.load(Path(folder, "model.json"))
query = pv.exports.sql_query(model, "patients")
print("\n".join(query.splitlines()[-14:]))

with sqlite3.connect(":memory:") as base:
    base.execute("CREATE TABLE patients (ward TEXT, age REAL)")
    base.executemany("INSERT INTO patients VALUES (?, ?)", table.rows())
    found = np.array([row[-1] for row in base.execute(query)])
expected = model.predict(table)
print(f"largest difference: {np.abs(found - expected).max():.1e}")
fig, axes = plt.subplots(figsize=(5, 4.5), layout="constrained")
for name in ("heart", "eye", "bone"):
    axes.plot(expected[ward == name], found[ward == name], ".", label=name)
axes.axline((10.0, 10.0), slope=1.0, color="grey", linewidth=0.8)
axes.set(xlabel="prediction in Python", ylabel="prediction in SQLite, ε = 1")
axes.legend(title="ward")
plt.show()
