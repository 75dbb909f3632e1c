"""The scikit-learn surface of a private fit."""

from privasso.estimator._private_lasso import PrivateLasso

__all__ = ["PrivateLasso"]
