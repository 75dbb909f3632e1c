"""
Where does an estimator exist?
==============================

With more columns than rows, too much noise leaves the objective without a minimiser (white). Elsewhere
state evolution predicts the error. The dashed line is the edge of stability.
"""

import matplotlib.pyplot as plt
import numpy as np

import privasso as pv

model = pv.Model(alpha=0.5, rho=0.1, sigma_xi=0.1, scales=pv.Uniform())
lams, sigmas = np.geomspace(0.02, 1.0, 30), np.geomspace(0.005, 0.5, 30)
fig, axes = plt.subplots(1, 2, figsize=(9, 3.8), layout="constrained", sharey=True)
for panel, noise in zip(axes, (pv.PowerLaw(1.0, gamma=1.0), pv.Gram(1.0)), strict=True):
    table = pv.phase_diagram(model, lams, noise, sigmas)
    error = table["E"].to_numpy().reshape(lams.size, sigmas.size)
    shown = np.where(np.isfinite(error), np.minimum(error, 0.1), np.nan)
    image = panel.pcolormesh(sigmas, lams, shown, cmap="cividis")
    edge = pv.theory.critical_lambda_ratio(model, noise)
    panel.plot(sigmas, edge * sigmas, "k--")
    panel.set(
        xscale="log",
        yscale="log",
        ylim=lams[[0, -1]],
        xlabel="noise level σ",
        title=f"γ = {noise.gamma:g}",
    )
axes[0].set_ylabel("λ")
fig.colorbar(image, ax=axes, label="prediction error (at most 0.1)")
plt.show()
