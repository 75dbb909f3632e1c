"""
What does the objective mechanism claim?
========================================

One mechanism has a whole curve of guarantees: δ for every ε. t is the squared length of a row divided by
the ridge; for t → 0 the curve is that of the Gaussian mechanism.
"""

import matplotlib.pyplot as plt
import numpy as np

import privasso as pv
from privasso.accounting import gaussian_delta

epsilons = np.linspace(0.2, 2.0, 25)
c = 0.25
fig, axes = plt.subplots(figsize=(6, 4), layout="constrained")
for t in (0.1, 0.3, 1.0):
    deltas = [pv.objective_delta(epsilon, c, t, neighbours="records") for epsilon in epsilons]
    axes.semilogy(epsilons, deltas, label=f"t = {t:g}")
axes.semilogy(epsilons, [gaussian_delta(e, c) for e in epsilons], "k:", label="Gaussian mechanism")
axes.set(
    xlabel="ε", ylabel="δ", ylim=(1e-14, 1.0), title="one record moves the gradient by c = 0.25 σ"
)
axes.legend()
plt.show()
