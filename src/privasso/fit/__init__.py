"""The steps of a private fit: plan, release once, then solve as often as needed."""

from privasso.fit._choose_lambda import choose_lambda
from privasso.fit._encoded import encoded_guarantee
from privasso.fit._kept import KeptRelease
from privasso.fit._model import ReleasedModel
from privasso.fit._options import METHODS, FitOptions
from privasso.fit._plan import Plan, plan_fit
from privasso.fit._posterior import posterior_mean
from privasso.fit._postprocess import CoefficientPath, Postprocess
from privasso.fit._released import AfterReleaseError, Released
from privasso.fit._uses import PrivacyWarning, warn_user

__all__ = [
    "METHODS",
    "AfterReleaseError",
    "CoefficientPath",
    "FitOptions",
    "KeptRelease",
    "Plan",
    "Postprocess",
    "PrivacyWarning",
    "Released",
    "ReleasedModel",
    "choose_lambda",
    "encoded_guarantee",
    "plan_fit",
    "posterior_mean",
    "warn_user",
]
