"""
The best membership attack
==========================

Somebody who knows all records but one asks whether that one was among the data. State evolution
predicts the curve of the strongest test: more noise (a larger σ) brings it closer to guessing. These are
averages under a model, not guarantees. The dashed line is a record that is more exposed than 99 % of
the others.
"""

import matplotlib.pyplot as plt
import numpy as np

import privasso as pv

model = pv.Model(alpha=0.5, rho=0.1, sigma_xi=0.1, scales=pv.Uniform())
false = np.geomspace(1e-4, 1.0, 25)
fig, axes = plt.subplots(figsize=(6, 4.2), layout="constrained")
for sigma in (0.01, 0.03, 0.1):
    attack = pv.state_evolution(model, 0.2, pv.Gram(sigma)).attack()
    axes.loglog(false, attack.tpr(false), label=f"σ = {sigma:g}, AUC {attack.auc:.2f}")
exposed = attack.of_quantile(0.99)
axes.loglog(
    false,
    exposed.tpr(false),
    "--",
    color="C2",
    label=f"the same, an exposed record, AUC {exposed.auc:.2f}",
)
axes.loglog(false, false, ":", color="grey", label="guessing")
axes.set(xlabel="false-positive rate", ylabel="true-positive rate")
axes.legend()
plt.show()
