"""
Coefficients and their uncertainty
==================================

With ``mechanism="statistics"`` a private fit publishes standard errors that include the privacy noise. Here
whole records are private with ε = 5, δ = 10⁻⁵. A bar that crosses zero says nothing about the sign.
"""

import matplotlib.pyplot as plt
import numpy as np
from sklearn.datasets import load_diabetes

import privasso as pv

data = load_diabetes(scaled=False)
X, y = data.data, data.target
bounds = np.column_stack([X.min(0), X.max(0)])  # the data are public here
privacy = pv.RecordDP(5.0, 1e-5, bounds=bounds, y_bounds=(0.0, 350.0), mechanism="statistics")
fit = pv.PrivateLasso(privacy=privacy, random_state=0).fit(X, y)
model = fit.released_model()
scale = X.std(0)
rank = np.arange(len(scale))
fig, axes = plt.subplots(figsize=(6, 4), layout="constrained")
axes.axvline(0.0, color="grey", linewidth=0.8)
error = 2.0 * np.nan_to_num(model.coef_se) * scale
axes.errorbar(model.coef * scale, rank, xerr=error, fmt="o", capsize=3)
axes.set_yticks(rank, data.feature_names)
axes.set_xlabel("change of the progression per standard deviation of the column, ± 2 s.e.; ε = 5")
plt.show()
