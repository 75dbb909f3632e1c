"""
Outcomes of two classes
=======================

Breast-cancer data with private diagnoses, δ = 10⁻⁵: the area under the ROC curve on patients that the fit
has not seen.
"""

import warnings

import matplotlib.pyplot as plt
import numpy as np
from sklearn.datasets import load_breast_cancer
from sklearn.linear_model import LogisticRegression
from sklearn.metrics import roc_auc_score
from sklearn.model_selection import train_test_split
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

import privasso as pv

warnings.simplefilter("ignore", pv.PrivacyWarning)
X, y = load_breast_cancer(return_X_y=True)
epsilons = (0.1, 0.3, 1.0, 3.0)
scores, without = np.zeros((4, len(epsilons))), []
for seed, row in enumerate(scores):
    train, test, labels, truth = train_test_split(X, y, test_size=1 / 3, random_state=seed)
    for k, epsilon in enumerate(epsilons):
        privacy = pv.LabelDP(epsilon, 1e-5, y_bounds=(0.0, 1.0))
        fit = pv.PrivateLogisticLasso(privacy=privacy, random_state=seed).fit(train, labels)
        row[k] = roc_auc_score(truth, fit.predict_proba(test)[:, 1])
    plain = make_pipeline(StandardScaler(), LogisticRegression()).fit(train, labels)
    without.append(roc_auc_score(truth, plain.predict_proba(test)[:, 1]))
fig, axes = plt.subplots(figsize=(6, 4), layout="constrained")
axes.semilogx(epsilons, scores.T, "o", color="C0", alpha=0.5)
axes.semilogx(epsilons, np.median(scores, axis=0), color="C0", label="private labels, median")
axes.axhline(np.median(without), color="grey", linestyle="--", label="without privacy")
axes.set(xlabel="ε", ylabel="AUC on new patients", ylim=(0.5, 1.01))
axes.legend()
plt.show()
