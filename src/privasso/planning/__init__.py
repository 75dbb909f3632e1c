"""Planning: which program fits a table, and with which settings, from public facts alone."""

from privasso.planning._clipped_rows import clipped_law, clipped_settings, whitened_moments
from privasso.planning._component_settings import PrincipalComponents, standardised
from privasso.planning._label_products import best_shrink
from privasso.planning._mechanism import (
    LabelRelease,
    calibrate,
    labels_at_one_lam,
    release_labels,
    release_mechanism,
)
from privasso.planning._objective_noise import (
    AIMS,
    Aim,
    aimed_lam,
    calibrate_objective,
    check_room,
    label_sensitivity,
    objective_noise,
    select_threshold,
)
from privasso.planning._records import RecordProgram, RecordTable
from privasso.planning._release_shape import release_shape
from privasso.planning._screened_labels import ScreenedLabels, screened_labels
from privasso.planning._screening_forecast import ScreeningPrior
from privasso.planning._screening_outlook import ScreeningOutlook
from privasso.planning._screening_settings import (
    Screen,
    ScreeningSettings,
    check_screen,
    direct_r2,
    usual_screening,
)
from privasso.planning._settings import divided, interval_sensitivity
from privasso.planning._shape import OptimalShape, optimal_shape

__all__ = [
    "AIMS",
    "Aim",
    "LabelRelease",
    "OptimalShape",
    "PrincipalComponents",
    "RecordProgram",
    "RecordTable",
    "Screen",
    "ScreenedLabels",
    "ScreeningOutlook",
    "ScreeningPrior",
    "ScreeningSettings",
    "aimed_lam",
    "best_shrink",
    "calibrate",
    "calibrate_objective",
    "check_room",
    "check_screen",
    "clipped_law",
    "clipped_settings",
    "direct_r2",
    "divided",
    "interval_sensitivity",
    "label_sensitivity",
    "labels_at_one_lam",
    "objective_noise",
    "optimal_shape",
    "release_labels",
    "release_mechanism",
    "release_shape",
    "screened_labels",
    "select_threshold",
    "standardised",
    "usual_screening",
    "whitened_moments",
]
