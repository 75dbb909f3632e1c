"""
Which columns get the noise?
============================

A noise design distributes noise over columns of different scales. All designs here have the same
level; they differ in how the variance grows with the squared scale v = s². On the right the noise is
divided by v, which is about what reaches the coefficient: noise of one size for all columns (isotropic)
drowns the coefficients of small columns, and Gram-based noise treats all coefficients alike.
"""

import matplotlib.pyplot as plt
import numpy as np

import privasso as pv

scales = np.sort(pv.LogNormal(0.0, 1.0).draw(200, rng=0))
designs = {
    "isotropic": pv.Isotropic(1.0),
    "γ = ½": pv.PowerLaw(1.0, gamma=0.5),
    "γ = 1": pv.PowerLaw(1.0, gamma=1.0),
    "Gram-based, γ = 2": pv.Gram(1.0),
}
fig, (left, right) = plt.subplots(1, 2, figsize=(9, 3.6), layout="constrained")
for name, design in designs.items():
    deviation = np.sqrt(design.variances(scales**2))
    left.loglog(scales, deviation, label=name)
    right.loglog(scales, deviation / scales**2, label=name)
left.set(xlabel="scale of the column", ylabel="noise of its entry of Fᵀy")
right.set(xlabel="scale of the column", ylabel="noise of its coefficient, about")
left.legend()
plt.show()
