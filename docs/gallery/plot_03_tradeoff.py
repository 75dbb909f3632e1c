"""
Error against leakage
=====================

Along each curve the noise grows. At first leakage falls at little cost in error; beyond a point both grow.
OnAveKL is an average under the model, not an ε.
"""

import matplotlib.pyplot as plt
import numpy as np

import privasso as pv

fig, axes = plt.subplots(1, 2, figsize=(9, 3.8), layout="constrained")
laws = {"uniform scales": pv.Uniform(), "log-normal scales": pv.LogNormal(0.0, 0.5)}
for panel, (title, law) in zip(axes, laws.items(), strict=True):
    model = pv.Model(alpha=0.5, rho=0.1, sigma_xi=0.1, scales=law)
    for gamma, colour in ((0.5, "#CC79A7"), (1.0, "#009E73"), (2.0, "#0072B2")):
        noise = pv.PowerLaw(1.0, gamma)
        edge = pv.critical_noise(model, 0.2, noise)
        table = pv.tradeoff(model, 0.2, noise, np.geomspace(0.02 * edge, 0.95 * edge, 40))
        panel.loglog(table["onavekl"], table["E"], color=colour, label=f"γ = {gamma:g}")
    null = model.rho * law.moment(1) + model.sigma_xi**2
    panel.axhline(null, color="grey", linestyle=":", label="releasing nothing")
    panel.set(
        title=title,
        xlabel="average leakage (OnAveKL)",
        ylabel="prediction error",
        ylim=(None, 2 * null),
    )
axes[0].legend()
plt.show()
