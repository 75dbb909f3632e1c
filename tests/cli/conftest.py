"""Settings shared by the tests of the command line."""

import pytest
import typer

from privasso.cli import _app


@pytest.fixture(autouse=True)
def few_simulated_fits(monkeypatch):
    """Forecast from a few simulated fits; their number is tested in its own room."""
    monkeypatch.setattr("privasso.forecast._scheme._MOST", 6)
    monkeypatch.setattr("privasso.forecast._records._FITS", 2)


@pytest.fixture(autouse=True)
def few_confirming_releases(monkeypatch):
    """Confirm what an audit finds with few releases; their number is tested in its own room."""
    monkeypatch.setattr("privasso.attacks._audit.CONFIRMING", 2)


@pytest.fixture(scope="session")
def application():
    """All commands with their options."""
    return typer.main.get_command(_app.build())


@pytest.fixture(autouse=True)
def built_once(application, monkeypatch):
    """Set up the options once for all commands, each of which would do so for itself in 0.05 s."""
    monkeypatch.setattr(_app, "build", lambda: application)


@pytest.fixture(autouse=True)
def without_pictures(blank_pictures):
    """What is in a picture is seldom asked here."""
