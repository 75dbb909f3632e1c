"""Losses that a kind of privacy does not have are refused, and never taken for another."""

import numpy as np
import pytest

import privasso as pv

LABELS = pv.LabelDP(1.0, 1e-6, (0, 1))


@pytest.mark.parametrize(
    ("privacy", "options", "said"),
    [
        (LABELS, {"loss": pv.Quantile(0.9), "screen": 2}, "screen and sample_weight"),
        (LABELS, {"loss": pv.Quantile(0.9), "screen": "auto"}, "screen and sample_weight"),
        (LABELS, {"loss": pv.Huber(0.2)}, "kappa of a Huber loss"),
        (pv.OnAverage(0.1), {"loss": pv.Quantile(0.9), "lam": 1.0}, "needs LabelDP or RecordDP"),
        (pv.OnAverage(0.1), {"loss": pv.Huber(0.2), "lam": 1.0}, "kappa of a Huber loss"),
        (LABELS, {"loss": "median"}, "not an object of type str"),
    ],
)
def test_a_loss_is_refused_where_it_is_not_fitted(privacy, options, said):
    X = np.random.default_rng(0).random((40, 30))
    with pytest.raises(ValueError, match=said):
        pv.PrivateLasso(privacy=privacy, random_state=0, **options).fit(X, X[:, 0])
