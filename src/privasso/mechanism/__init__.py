"""The privacy mechanism: the one place where labels meet noise."""

from privasso.mechanism._gaussian import (
    gaussian_delta,
    gaussian_epsilon,
    log_gaussian_delta,
    sensitivity_for,
)
from privasso.mechanism._label_dp import LabelDP
from privasso.mechanism._on_average import OnAverage
from privasso.mechanism._release import Release, noise_levels, release_labels

__all__ = [
    "LabelDP",
    "OnAverage",
    "Release",
    "gaussian_delta",
    "gaussian_epsilon",
    "log_gaussian_delta",
    "noise_levels",
    "release_labels",
    "sensitivity_for",
]
