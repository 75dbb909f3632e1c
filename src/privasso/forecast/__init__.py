"""What a fit can be expected to reach: simulations on the covariates, and state evolution."""

from privasso.forecast._forecast import (
    Change,
    Forecast,
    forecast,
    forecast_of,
    predictions_of,
    unavailable,
)
from privasso.forecast._population import Assumptions, Estimate, Population, Simulated, Truth
from privasso.forecast._records import RecordScheme
from privasso.forecast._scheme import Scheme
from privasso.forecast._state_evolution import Prediction, predict, predictions

__all__ = [
    "Assumptions",
    "Change",
    "Estimate",
    "Forecast",
    "Population",
    "Prediction",
    "RecordScheme",
    "Scheme",
    "Simulated",
    "Truth",
    "forecast",
    "forecast_of",
    "predict",
    "predictions",
    "predictions_of",
    "unavailable",
]
