"""Simulations on grids of data sets, in runs that can be stopped, resumed and repeated.

Each of the six experiments is an `Experiment`: it says which cases there are, what is computed on
one data set, and how the results of a case become rows of a table. `run` does the rest.
"""

from privasso.paper.experiments._correlated import CorrelatedExperiment, covariance_model
from privasso.paper.experiments._experiment import Experiment
from privasso.paper.experiments._grid import GridExperiment
from privasso.paper.experiments._records import QUARTERS, LeakageExperiment, QuarterExperiment
from privasso.paper.experiments._run import UnitError, run
from privasso.paper.experiments._single import CriticalExperiment, KktExperiment
from privasso.paper.experiments._workers import workers

__all__ = [
    "QUARTERS",
    "CorrelatedExperiment",
    "CriticalExperiment",
    "Experiment",
    "GridExperiment",
    "KktExperiment",
    "LeakageExperiment",
    "QuarterExperiment",
    "UnitError",
    "covariance_model",
    "run",
    "workers",
]
