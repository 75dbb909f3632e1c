"""
More columns than rows
======================

Of five hundred columns five have an effect; records are private with ε = 1, δ = 10⁻⁶. With
``screen="auto"`` a part of the budget chooses columns first, and far fewer rows are enough.
"""

import warnings

import matplotlib.pyplot as plt
import numpy as np

import privasso as pv

warnings.simplefilter("ignore", pv.PrivacyWarning)  # simulated data: no budget is at stake
rng = np.random.default_rng(0)
columns, effects = 500, [1.0, -1.0, 1.0, -1.0, 1.0]
privacy = pv.RecordDP(1.0, 1e-6, bounds=[(-1.0, 1.0)] * columns, y_bounds=(-6.0, 6.0))


def table(rows):
    X = rng.uniform(-1.0, 1.0, (rows, columns))
    return X, X[:, :5] @ effects + 0.8 * rng.standard_normal(rows)


test, truth = table(1000)
rows = [500, 1000, 3000]
fig, axes = plt.subplots(figsize=(6, 4), layout="constrained")
for screen, label in (("auto", "some columns chosen first"), ("all", "all columns")):
    scores = []
    for size in rows:
        fit = pv.PrivateLasso(privacy=privacy, screen=screen, random_state=size).fit(*table(size))
        scores.append(fit.score(test, truth))
    axes.semilogx(rows, scores, "o-", label=label)
best = 1.0 - 0.8**2 / np.var(truth)
axes.axhline(best, color="grey", linestyle="--", label="the true coefficients")
axes.set(xlabel="rows", ylabel="R² on new rows, ε = 1", ylim=(-0.5, 1.0))
axes.set_xticks(rows, rows)
axes.minorticks_off()
axes.legend()
plt.show()
