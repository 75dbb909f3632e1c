"""
What does ε cost on real data?
==============================

The diabetes data of scikit-learn with private labels, δ = 10⁻⁵: R² on a third of the patients that the fit
has not seen.
"""

import warnings

import matplotlib.pyplot as plt
import numpy as np
from sklearn.datasets import load_diabetes
from sklearn.linear_model import LassoCV
from sklearn.model_selection import train_test_split

import privasso as pv

# The same public data are fitted many times: no budget is at stake.
warnings.simplefilter("ignore", pv.PrivacyWarning)
X, y = load_diabetes(return_X_y=True, scaled=False)
epsilons, seeds = (0.5, 1.0, 3.0, 10.0), range(4)
scores = np.zeros((len(seeds), len(epsilons)))
without = np.zeros(len(seeds))
for row, seed in enumerate(seeds):
    train, test, labels, truth = train_test_split(X, y, test_size=1 / 3, random_state=seed)
    for column, epsilon in enumerate(epsilons):
        privacy = pv.LabelDP(epsilon, 1e-5, y_bounds=(0.0, 350.0))
        fit = pv.PrivateLasso(privacy=privacy, random_state=seed).fit(train, labels)
        scores[row, column] = fit.score(test, truth)
    without[row] = LassoCV().fit(train, labels).score(test, truth)
fig, axes = plt.subplots(figsize=(6, 4), layout="constrained")
axes.semilogx(epsilons, scores.T, "o", color="C0", alpha=0.5)
axes.semilogx(epsilons, np.median(scores, axis=0), color="C0", label="private labels, median")
axes.axhline(np.median(without), color="grey", linestyle="--", label="without privacy")
axes.set(xlabel="ε", ylabel="R² on new patients")
axes.legend()
plt.show()
