"""Kinds of privacy, the mechanism that adds noise, and what may be claimed about it."""

from privasso.privacy._calibration import calibrate_objective, check_room
from privasso.privacy._component_settings import MOST_COMPONENTS
from privasso.privacy._guarantee import (
    Guarantee,
    check_same_neighbours,
    compose,
    formal_loss,
)
from privasso.privacy._kind import (
    Calibration,
    Privacy,
    ReleasesProducts,
    Scales,
    Terms,
    check_kind,
    check_products,
)
from privasso.privacy._label_dp import LabelDP
from privasso.privacy._label_level import Level, direct_level
from privasso.privacy._label_screening import Peeled, check_size
from privasso.privacy._meaning import meaning
from privasso.privacy._mechanism import calibrate, release_labels
from privasso.privacy._numbers import exactly, rounded_down, rounded_up
from privasso.privacy._on_average import OnAverage
from privasso.privacy._record_budget import RecordBudget
from privasso.privacy._record_dp import RecordDP
from privasso.privacy._record_fit import RecordFit, sandwich_errors
from privasso.privacy._record_logistic import PerturbedLogistic
from privasso.privacy._record_prior import RecordSettings, record_settings
from privasso.privacy._record_rows import PerturbedObjective
from privasso.privacy._record_statistics import RecordStatistics, StatisticsMechanism
from privasso.privacy._release import Release
from privasso.privacy._residuals import full_residuals
from privasso.privacy._screen import check_screen
from privasso.privacy._screened_labels import ScreenedLabels
from privasso.privacy._screened_objective import ScreenedObjective
from privasso.privacy._screening import Screening
from privasso.privacy._screening_forecast import ScreeningPrior, choice_chances
from privasso.privacy._screening_outlook import ScreeningOutlook
from privasso.privacy._screening_settings import ScreeningSettings, direct_r2, usual_screening
from privasso.privacy._second_moments import SecondMoments
from privasso.privacy._shaped_objective import ShapedObjective
from privasso.queries import UncertifiedError

__all__ = [
    "MOST_COMPONENTS",
    "Calibration",
    "Guarantee",
    "LabelDP",
    "Level",
    "OnAverage",
    "Peeled",
    "PerturbedLogistic",
    "PerturbedObjective",
    "Privacy",
    "RecordBudget",
    "RecordDP",
    "RecordFit",
    "RecordSettings",
    "RecordStatistics",
    "Release",
    "ReleasesProducts",
    "Scales",
    "ScreenedLabels",
    "ScreenedObjective",
    "Screening",
    "ScreeningOutlook",
    "ScreeningPrior",
    "ScreeningSettings",
    "SecondMoments",
    "ShapedObjective",
    "StatisticsMechanism",
    "Terms",
    "UncertifiedError",
    "calibrate",
    "calibrate_objective",
    "check_kind",
    "check_products",
    "check_room",
    "check_same_neighbours",
    "check_screen",
    "check_size",
    "choice_chances",
    "compose",
    "direct_level",
    "direct_r2",
    "exactly",
    "formal_loss",
    "full_residuals",
    "meaning",
    "record_settings",
    "release_labels",
    "rounded_down",
    "rounded_up",
    "sandwich_errors",
    "usual_screening",
]
