"""
The best noise for a given leakage
==================================

``optimal_design`` chooses λ, level and shape of the noise for the least error at a given average leakage.
The common shapes are tuned for the same target. Here the best is close to γ = 1, and the curves coincide.
"""

import matplotlib.pyplot as plt

import privasso as pv

model = pv.Model(alpha=0.5, rho=0.1, sigma_xi=0.1, scales=pv.LogNormal(0.0, 0.7))
targets = (0.5, 1.0, 2.0, 4.0)
best = [pv.optimal_design(model, pv.MaxLeakage(target)) for target in targets]
fig, (left, right) = plt.subplots(1, 2, figsize=(9, 3.8), layout="constrained")
left.plot(
    targets, [each.E for each in best], "k-", linewidth=5, alpha=0.25, label="best power of v"
)
names = {
    "isotropic": ("isotropic, γ = 0", "#D55E00"),
    "gamma=1": ("γ = 1", "#009E73"),
    "gram": ("Gram-based, γ = 2", "#0072B2"),
}
for name in best[0].comparison:
    errors = [each.comparison[name].E for each in best]
    label, colour = names[name]
    left.plot(targets, errors, "o--", color=colour, label=label)
left.axhline(best[0].null_error, color="grey", linestyle=":", label="releasing nothing")
left.set(xlabel="allowed leakage (OnAveKL)", ylabel="prediction error")
left.legend()
right.plot(targets, [each.gamma for each in best], "ko-", label="γ")
right.plot(targets, [each.lam for each in best], "s--", color="grey", label="λ")
right.set(xlabel="allowed leakage (OnAveKL)", title="what the best design uses", ylim=(0, None))
right.legend()
plt.show()
