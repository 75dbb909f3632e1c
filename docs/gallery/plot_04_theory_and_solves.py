"""
Prediction and experiment
=========================

State evolution predicts the error without any data. The points were measured on simulated tables of 400
columns.
"""

import matplotlib.pyplot as plt
import numpy as np

import privasso as pv

model = pv.Model(alpha=0.5, rho=0.1, sigma_xi=0.1, scales=pv.LogNormal(0.0, 0.5))
rng = np.random.default_rng(0)
lams = np.geomspace(0.08, 0.6, 9)
noise = pv.PowerLaw(0.05, gamma=1.0)
measured = np.zeros((12, lams.size))
for row in measured:
    sample = model.sample(400, rng=rng)
    eta = noise.draw(sample.v, rng=rng)
    found = pv.solve_path(sample.F, sample.y, lams, eta)
    wrong = (found.x - sample.x0[:, None]) ** 2
    row[:] = sample.v @ wrong / 400 + model.sigma_xi**2
predicted = [pv.state_evolution(model, lam, noise).E for lam in lams]
fig, axes = plt.subplots(figsize=(6, 4), layout="constrained")
axes.semilogx(lams, predicted, color="#009E73", label="predicted")
error = measured.std(0) / np.sqrt(12)
look = {"fmt": "o", "color": "#009E73", "mfc": "white", "label": "12 tables, mean ± s.e."}
axes.errorbar(lams, measured.mean(0), error, **look)
axes.set(xlabel="λ", ylabel="prediction error")
axes.legend()
plt.show()
