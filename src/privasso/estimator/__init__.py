"""The scikit-learn surface: fit once under privacy, solve from the release as often as needed."""

from privasso.estimator._choose import choose_lambda
from privasso.estimator._postprocess import CoefficientPath, Postprocess
from privasso.estimator._private_lasso import PrivateLasso

__all__ = ["CoefficientPath", "Postprocess", "PrivateLasso", "choose_lambda"]
