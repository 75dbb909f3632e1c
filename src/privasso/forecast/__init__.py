"""What a fit can be expected to reach: simulations on the covariates, and state evolution."""

from privasso.forecast._assumptions import Assumptions
from privasso.forecast._forecast import Change, Forecast, forecast
from privasso.forecast._of_plan import forecast_of, predictions_of, unavailable
from privasso.forecast._population import Estimate, Population, Truth
from privasso.forecast._records import RecordScheme, forecast_records
from privasso.forecast._scheme import Scheme
from privasso.forecast._simulate import Fits, Mechanism, Simulated, simulate
from privasso.forecast._simulated_release import SimulatedReleases
from privasso.forecast._state_evolution import Prediction, compare, predict, predictions

__all__ = [
    "Assumptions",
    "Change",
    "Estimate",
    "Fits",
    "Forecast",
    "Mechanism",
    "Population",
    "Prediction",
    "RecordScheme",
    "Scheme",
    "Simulated",
    "SimulatedReleases",
    "Truth",
    "compare",
    "forecast",
    "forecast_of",
    "forecast_records",
    "predict",
    "predictions",
    "predictions_of",
    "simulate",
    "unavailable",
]
