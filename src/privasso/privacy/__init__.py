"""Kinds of privacy, the mechanism that adds noise, and what may be claimed about it."""

from privasso.privacy._gaussian import (
    gaussian_delta,
    gaussian_epsilon,
    log_gaussian_delta,
    sensitivity_for,
)
from privasso.privacy._guarantee import Claim, Guarantee
from privasso.privacy._kind import Calibration, Privacy, Scales, Terms
from privasso.privacy._label_dp import LabelDP
from privasso.privacy._mechanism import calibrate, release_labels
from privasso.privacy._on_average import OnAverage
from privasso.privacy._release import Release

__all__ = [
    "Calibration",
    "Claim",
    "Guarantee",
    "LabelDP",
    "OnAverage",
    "Privacy",
    "Release",
    "Scales",
    "Terms",
    "calibrate",
    "gaussian_delta",
    "gaussian_epsilon",
    "log_gaussian_delta",
    "release_labels",
    "sensitivity_for",
]
