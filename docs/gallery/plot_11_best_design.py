"""
The best noise for a given leakage
==================================

`optimal_design` chooses λ, the level of the noise and its shape, and compares the result with
isotropic and Gram-based noise that are tuned for the same target.
"""

import matplotlib.pyplot as plt

import privasso as pv

model = pv.Model(alpha=0.5, rho=0.1, sigma_xi=0.1, scales=pv.LogNormal(0.0, 0.7))
targets = (0.5, 1.0, 2.0, 4.0)
best = [pv.optimal_design(model, max_onavekl=target) for target in targets]
fig, (left, right) = plt.subplots(1, 2, figsize=(9, 3.8), layout="constrained")
left.plot(targets, [each.E for each in best], "o-", label="best power of v")
for name in best[0].comparison:
    left.plot(targets, [each.comparison[name].E for each in best], "o--", label=name)
left.axhline(best[0].null_error, color="grey", linestyle=":", label="releasing nothing")
left.set(xlabel="allowed leakage (OnAveKL)", ylabel="prediction error")
left.legend()
right.plot(targets, [each.gamma for each in best], "o-", label="γ")
right.plot(targets, [each.lam for each in best], "s-", label="λ")
right.set(xlabel="allowed leakage (OnAveKL)", title="what the best design uses", ylim=(0, None))
right.legend()
plt.show()
