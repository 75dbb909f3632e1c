"""The steps of a private fit: plan, release once, then solve as often as needed."""

from privasso.fit._charge import Charge, PrivacyWarning, warn_user
from privasso.fit._choose_lambda import TimeLimitWarning, choose_lambda
from privasso.fit._classes import Classes, Name
from privasso.fit._denoised import Denoised
from privasso.fit._label_plan import plan_fit
from privasso.fit._logistic import LogisticLasso
from privasso.fit._model import CoefficientPath, ReleasedModel, both_probabilities, chosen_classes
from privasso.fit._options import METHODS, FitOptions
from privasso.fit._outcome import ONE_LAM, AfterReleaseError, KeptStatistics, Outcome, Published
from privasso.fit._plan import DECLARED, Plan, encoded_guarantee, statement
from privasso.fit._plan_for import plan_for
from privasso.fit._postprocess import Postprocess
from privasso.fit._published import interval_outlook
from privasso.fit._release_law import (
    MOST_COLUMNS,
    Posterior,
    ReleaseLaw,
    RowMoments,
    joint_noise,
    posterior,
    posterior_mean,
)
from privasso.fit._released import KeptRelease, Released

__all__ = [
    "DECLARED",
    "METHODS",
    "MOST_COLUMNS",
    "ONE_LAM",
    "AfterReleaseError",
    "Charge",
    "Classes",
    "CoefficientPath",
    "Denoised",
    "FitOptions",
    "KeptRelease",
    "KeptStatistics",
    "LogisticLasso",
    "Name",
    "Outcome",
    "Plan",
    "Posterior",
    "Postprocess",
    "PrivacyWarning",
    "Published",
    "ReleaseLaw",
    "Released",
    "ReleasedModel",
    "RowMoments",
    "TimeLimitWarning",
    "both_probabilities",
    "choose_lambda",
    "chosen_classes",
    "encoded_guarantee",
    "interval_outlook",
    "joint_noise",
    "plan_fit",
    "plan_for",
    "posterior",
    "posterior_mean",
    "statement",
    "warn_user",
]
