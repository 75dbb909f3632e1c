"""
Private records need rows
=========================

With whole records private, what counts is the number of rows per column. Ten columns with public bounds,
four of them with an effect, at three values of ε and δ = 10⁻⁶.
"""

import warnings

import matplotlib.pyplot as plt
import numpy as np

import privasso as pv

warnings.simplefilter("ignore", pv.PrivacyWarning)
rng = np.random.default_rng(0)
true = np.array([0.5, -0.4, 0.3, 0.2, 0, 0, 0, 0, 0, 0])
bounds = np.tile([-1.0, 1.0], (10, 1))


def table(rows):
    X = rng.uniform(-1.0, 1.0, (rows, 10))
    return X, X @ true + 0.2 * rng.standard_normal(rows)


test, truth = table(5000)
rows = [200, 500, 1000, 3000, 10_000]
fig, axes = plt.subplots(figsize=(6, 4), layout="constrained")
for epsilon in (0.3, 1.0, 3.0):
    scores = []
    for size in rows:
        X, y = table(size)
        privacy = pv.RecordDP(epsilon, 1e-6, bounds=bounds, y_bounds=(-2.0, 2.0))
        fits = [pv.PrivateLasso(privacy=privacy, random_state=k).fit(X, y) for k in range(3)]
        scores.append(np.median([fit.score(test, truth) for fit in fits]))
    axes.semilogx(rows, scores, "o-", label=f"ε = {epsilon:g}")
best = 1.0 - 0.2**2 / np.var(truth)
axes.axhline(best, color="grey", linestyle="--", label="the true coefficients")
axes.set(xlabel="rows", ylabel="R² on new rows", ylim=(-0.1, 1.0))
axes.legend()
plt.show()
