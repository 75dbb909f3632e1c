"""A private fit as a scikit-learn estimator."""

from privasso.estimator._private_lasso import PrivateLasso

__all__ = ["PrivateLasso"]
