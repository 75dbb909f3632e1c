"""Noise in symmetric matrices."""

import numpy as np


def symmetric(rng, deviations):
    """A symmetric matrix of normal numbers with these deviations."""
    drawn = np.triu(rng.standard_normal(deviations.shape) * deviations)
    return drawn + np.triu(drawn, 1).T
