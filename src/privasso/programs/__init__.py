"""Programs: what a fit asks about private rows, and what it computes from the answers."""

from privasso.programs._clipped_sums import Level, direct_level
from privasso.programs._estimate import Estimate, widest_bounds
from privasso.programs._interval_frames import Frame, LabelFrame, RecordFrame
from privasso.programs._interval_sums import IntervalProgram, IntervalSums, Outlook
from privasso.programs._intervals import Intervals, Target, made_up_intervals
from privasso.programs._label_programs import (
    NoisyProducts,
    ObjectiveProgram,
    ProductsProgram,
    ProductSum,
)
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
from privasso.programs._program import Program, RecordFit, Table, for_label_choice
from privasso.programs._record_rows import PerturbedLogistic, PerturbedObjective
from privasso.programs._record_statistics import (
    RecordStatistics,
    SecondMoments,
    ShapedObjective,
    StatisticsMechanism,
)
from privasso.programs._records import bounded_labels
from privasso.programs._release import Calibration, Release, row_weights, sandwich_errors
from privasso.programs._screening import FurtherRound, ScreenedObjective, Screening

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
