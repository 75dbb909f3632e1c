"""Ledgers in memory and in files, and what is charged to them, for tests."""

import numpy as np

import privasso as pv
from privasso.accounting import GaussianLoss
from privasso.privacy import Terms

DELTA = 1e-6
PRIVACY = pv.LabelDP(1.0, DELTA, (0.0, 1.0), mechanism="release")


def statement(epsilon=1.0, delta=DELTA, bounds=(0.0, 1.0), seeded=False):
    terms = Terms(fit_intercept=True, seeded=seeded, n_rows=1000)
    return pv.LabelDP(epsilon, delta, bounds).guarantee(terms)


def mu_of(guarantee):
    """The sensitivity of a guarantee of Gaussian mechanisms."""
    assert isinstance(guarantee.loss, GaussianLoss)
    return guarantee.loss.mu


def data(m=200):
    rng = np.random.default_rng(0)
    return rng.standard_normal((m, 3)), rng.random(m)
