"""Settings shared by the tests of the command line."""

import os

import pytest
import typer

from privasso._apart import Reader
from privasso.cli import _app
from privasso.tables import _frames


@pytest.fixture(autouse=True)
def few_simulated_fits(monkeypatch):
    """Forecast from a few simulated fits; their number is tested in its own room."""
    monkeypatch.setattr("privasso.forecast._forecast._MOST", 6)
    monkeypatch.setattr("privasso.forecast._records._FITS", 2)


@pytest.fixture(scope="session")
def command():
    """The options of all commands."""
    return typer.main.get_command(_app.build())


@pytest.fixture(autouse=True)
def built_once(command, monkeypatch):
    """Set up the options once for all commands, each of which would do so for itself in 0.05 s."""
    monkeypatch.setattr(_app, "build", lambda: command)


class SharedReader(Reader):
    """A reader of tables for many commands, each of which would start its own in 0.3 s.

    It was started in another folder, so that it is told whole paths.
    """

    def ask(self, **request):
        return super().ask(**{**request, "path": os.path.abspath(str(request["path"]))})


@pytest.fixture(scope="session")
def readers():
    """The reader that all tests share, in a list; a new one takes its place if it has died."""
    shared: list[SharedReader] = []
    yield shared
    for one in shared:
        one.close()


@pytest.fixture(autouse=True)
def one_reader(readers, monkeypatch):
    def reader(module):
        if not readers or not readers[0].alive:
            readers[:] = [SharedReader(module)]
        return readers[0]

    monkeypatch.setattr(_frames, "Reader", reader)
