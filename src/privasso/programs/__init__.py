"""Programs: what a fit asks about private rows, and what it computes from the answers."""

from privasso.programs._estimate import Estimate, widest_bounds
from privasso.programs._intercept import Level, direct_level
from privasso.programs._interval_frames import Frame, LabelFrame, RecordFrame
from privasso.programs._interval_sums import IntervalProgram, IntervalSums, Outlook
from privasso.programs._intervals import Intervals, Target, made_up_intervals
from privasso.programs._label_objective import ObjectiveProgram
from privasso.programs._label_range import LabelRange
from privasso.programs._label_rows import LabelMap, LabelRows, as_release
from privasso.programs._label_screening import (
    LARGEST_ENTRY,
    LabelScreening,
    Peeled,
    check_size,
    column_blocks,
    too_large,
)
from privasso.programs._point import Point
from privasso.programs._products import NoisyProducts, ProductsProgram, ProductSum
from privasso.programs._program import Program, RecordFit, sandwich_errors
from privasso.programs._record_logistic import PerturbedLogistic
from privasso.programs._record_rows import PerturbedObjective
from privasso.programs._record_statistics import (
    RecordStatistics,
    SecondMoments,
    StatisticsMechanism,
)
from privasso.programs._records import bounded_labels
from privasso.programs._release import Calibration, Release, row_weights
from privasso.programs._screening import FurtherRound, ScreenedObjective, Screening
from privasso.programs._shaped_objective import ShapedObjective
from privasso.programs._worst_tables import Table, for_label_choice

__all__ = [
    "LARGEST_ENTRY",
    "Calibration",
    "Estimate",
    "Frame",
    "FurtherRound",
    "IntervalProgram",
    "IntervalSums",
    "Intervals",
    "LabelFrame",
    "LabelMap",
    "LabelRange",
    "LabelRows",
    "LabelScreening",
    "Level",
    "NoisyProducts",
    "ObjectiveProgram",
    "Outlook",
    "Peeled",
    "PerturbedLogistic",
    "PerturbedObjective",
    "Point",
    "ProductSum",
    "ProductsProgram",
    "Program",
    "RecordFit",
    "RecordFrame",
    "RecordStatistics",
    "Release",
    "ScreenedObjective",
    "Screening",
    "SecondMoments",
    "ShapedObjective",
    "StatisticsMechanism",
    "Table",
    "Target",
    "as_release",
    "bounded_labels",
    "check_size",
    "column_blocks",
    "direct_level",
    "for_label_choice",
    "made_up_intervals",
    "row_weights",
    "sandwich_errors",
    "too_large",
    "widest_bounds",
]
