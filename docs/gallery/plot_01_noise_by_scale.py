"""
Which columns get the noise?
============================

Four noise designs of the same level. On the right the noise is divided by v = s², about what reaches the
coefficient: isotropic noise drowns small columns, and Gram-based noise treats all coefficients alike.
"""

import matplotlib.pyplot as plt
import numpy as np

import privasso as pv

scales = np.sort(pv.LogNormal(0.0, 1.0).draw(200, rng=0))
designs = {
    "isotropic": (pv.Isotropic(1.0), "#D55E00"),
    "γ = ½": (pv.PowerLaw(1.0, gamma=0.5), "#CC79A7"),
    "γ = 1": (pv.PowerLaw(1.0, gamma=1.0), "#009E73"),
    "Gram-based, γ = 2": (pv.Gram(1.0), "#0072B2"),
}
fig, (left, right) = plt.subplots(1, 2, figsize=(9, 3.6), layout="constrained")
for name, (design, colour) in designs.items():
    deviation = np.sqrt(design.variances(scales**2))
    left.loglog(scales, deviation, color=colour, label=name)
    right.loglog(scales, deviation / scales**2, color=colour)
left.set(xlabel="scale of the column", ylabel="noise of its entry of Fᵀy")
right.set(xlabel="scale of the column", ylabel="noise of its coefficient, about")
left.legend()
plt.show()
