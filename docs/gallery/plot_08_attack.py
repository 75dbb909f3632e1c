"""
The best membership attack
==========================

Somebody who knows all records but one asks whether that one was among the data. State evolution predicts
the strongest test, on average under a model: no ε is claimed. Dashed: a record that is more exposed than
99 % of the others.
"""

import matplotlib.pyplot as plt
import numpy as np

import privasso as pv

model = pv.Model(alpha=0.5, rho=0.1, sigma_xi=0.1, scales=pv.Uniform())
false = np.geomspace(1e-4, 1.0, 25)
fig, axes = plt.subplots(figsize=(6, 4.2), layout="constrained")
for sigma, colour in ((0.01, "#9ecae1"), (0.03, "#4292c6"), (0.1, "#0072B2")):
    attack = pv.state_evolution(model, 0.2, pv.Gram(sigma)).attack()
    label = f"σ = {sigma:g}, AUC {attack.auc:.2f}"
    axes.loglog(false, attack.tpr(false), color=colour, label=label)
exposed = attack.of_quantile(0.99)
axes.loglog(
    false,
    exposed.tpr(false),
    "--",
    color="#0072B2",
    label=f"the same, an exposed record, AUC {exposed.auc:.2f}",
)
axes.loglog(false, false, ":", color="grey", label="guessing")
axes.set(xlabel="false-positive rate", ylabel="true-positive rate")
axes.legend()
plt.show()
