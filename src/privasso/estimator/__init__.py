"""The scikit-learn surface: fit once under privacy, solve from the release as often as needed."""

from privasso.estimator._choose import choose_lambda
from privasso.estimator._options import design_from, regularisation
from privasso.estimator._postprocess import CoefficientPath, Postprocess
from privasso.estimator._private_lasso import PrivateLasso
from privasso.estimator._steps import automatic_lambda, noise_level, released, statement

__all__ = [
    "CoefficientPath",
    "Postprocess",
    "PrivateLasso",
    "automatic_lambda",
    "choose_lambda",
    "design_from",
    "noise_level",
    "regularisation",
    "released",
    "statement",
]
