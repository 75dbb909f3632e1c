"""
Paths of coefficients
=====================

The same data with and without noise, along λ. Noise makes some coefficients nonzero that should be zero
(grey); with a larger λ these vanish first.
"""

import matplotlib.pyplot as plt
import numpy as np

import privasso as pv

model = pv.Model(alpha=1.5, rho=0.1, sigma_xi=0.05, scales=pv.Uniform(0.5, 1.5))
sample = model.sample(60, rng=3)
eta = pv.PowerLaw(0.15, gamma=1.0).draw(sample.v, rng=0)
lams = np.geomspace(0.01, 2.0, 60)
fig, axes = plt.subplots(1, 2, figsize=(9, 3.8), layout="constrained", sharey=True)
for panel, noise, title in zip(axes, (None, eta), ("without noise", "with noise"), strict=True):
    path = pv.solve_path(sample.F, sample.y, lams, noise)
    for coefficients, truth in zip(path.x, sample.x0, strict=True):
        panel.semilogx(
            lams, coefficients, color="C0" if truth else "silver", linewidth=1.2 if truth else 0.7
        )
    panel.set(title=title, xlabel="λ")
axes[0].set_ylabel("coefficient (blue: truly not zero)")
plt.show()
