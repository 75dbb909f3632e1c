"""Theory and solvers on grids of simulated data, in runs that can be stopped and repeated."""

from privasso.experiments._critical import Critical
from privasso.experiments._leakage import Leakage
from privasso.experiments._paper_kkt import PaperKkt
from privasso.experiments._points import Points
from privasso.experiments._run import Experiment, UnitError, run
from privasso.experiments._speed import Speed, speed

__all__ = [
    "Critical",
    "Experiment",
    "Leakage",
    "PaperKkt",
    "Points",
    "Speed",
    "UnitError",
    "run",
    "speed",
]
