"""
Several fits of the same people
===============================

Privacy losses add up. A ledger composes them exactly, and the total is much smaller than the sum of the ε
of all fits.
"""

import matplotlib.pyplot as plt
import numpy as np

from privasso.accounting import gaussian_epsilon, sensitivity_for

delta, epsilon = 1e-6, 0.5
mu = sensitivity_for(epsilon, delta)
fits = np.arange(1, 31)
exact = [gaussian_epsilon(delta, mu * np.sqrt(k)) for k in fits]
fig, axes = plt.subplots(figsize=(6, 4), layout="constrained")
axes.plot(fits, epsilon * fits, "--", color="grey", label="ε added up (and δ, too)")
axes.plot(fits, exact, label="composed exactly, at one δ")
axes.set(xlabel="fits with ε = 0.5, δ = 1e-6 each", ylabel="ε of all together")
axes.legend()
plt.show()
