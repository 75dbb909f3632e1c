"""Settings shared by the tests of the command line."""

import pytest


@pytest.fixture(autouse=True)
def few_simulated_fits(monkeypatch):
    """Forecast from a few simulated fits; their number is tested in its own room."""
    monkeypatch.setattr("privasso.forecast._forecast._MOST", 6)
    monkeypatch.setattr("privasso.forecast._records._FITS", 2)
