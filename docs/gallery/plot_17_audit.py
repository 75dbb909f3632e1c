"""
An audit of a release
=====================

``pv.audit`` runs a private fit hundreds of times with each of two values of one label, and lets the strongest
possible attacker tell the two apart. The claim, ε = 2 and δ = 10⁻⁵, rules out the grey region.
"""

import matplotlib.pyplot as plt
import numpy as np

import privasso as pv

rng = np.random.default_rng(0)
X = rng.standard_normal((200, 5)) * [0.1, 1.0, 1.0, 10.0, 100.0]
y = np.clip(X @ [5.0, 1.0, 0.0, 0.0, 0.0] + rng.standard_normal(200), -5.0, 5.0)
epsilon, delta = 2.0, 1e-5
privacy = pv.LabelDP(epsilon, delta, y_bounds=(-5.0, 5.0), mechanism="release")
found = pv.audit(privacy, X, y, releases=400, rng=0)
print(found)
rate = np.linspace(0.0, 1.0, 201)
bound = np.minimum(np.exp(epsilon) * rate + delta, 1.0 - np.exp(-epsilon) * (1.0 - rate - delta))
fig, axes = plt.subplots(figsize=(5.5, 5), layout="constrained")
axes.fill_between(
    rate, np.minimum(bound, 1.0), 1.0, color="0.9", label=f"ruled out by ε = {epsilon:g}"
)
for one in found.findings:
    axes.plot(*one.evidence.curve(), linewidth=1.2, label=f"{one.name}, AUC {one.auc:.2f}")
axes.plot(rate, rate, ":", color="grey", label="guessing")
axes.set(xlabel="false-positive rate", ylabel="true-positive rate", xlim=(0, 1), ylim=(0, 1))
axes.legend(loc="lower right", fontsize=8)
plt.show()
