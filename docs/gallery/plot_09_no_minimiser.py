"""
When no minimiser exists
========================

With noise there is a minimiser only if λ is large enough. ``critical_lambda`` computes that limit for a
table, and state evolution predicts it. Noise that follows the scales (a larger γ) permits a smaller λ.
"""

import matplotlib.pyplot as plt
import numpy as np

import privasso as pv

model = pv.Model(alpha=0.5, scales=pv.LogNormal(0.0, 0.5))
rng = np.random.default_rng(0)
gammas = (0.0, 0.5, 1.0, 1.5, 2.0)
found = []
for gamma in gammas:
    noise = pv.PowerLaw(1.0, gamma)
    samples = [model.sample(120, rng=rng) for _ in range(8)]
    found.append([pv.critical_lambda(s.F, noise.draw(s.v, rng=rng)) for s in samples])
predicted = [pv.theory.critical_lambda_ratio(model, pv.PowerLaw(1.0, g)) for g in gammas]
fig, axes = plt.subplots(figsize=(6, 4), layout="constrained")
axes.plot(gammas, predicted, "k-", label="predicted, many columns")
axes.plot(gammas, found, "o", color="C0", alpha=0.5)
axes.plot([], [], "o", color="C0", label="60 rows, 120 columns")
axes.set(
    xlabel="shape of the noise, γ", ylabel="smallest λ with a minimiser, over σ", ylim=(0, None)
)
axes.legend()
plt.show()
