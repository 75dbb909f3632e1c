"""Settings shared by all tests."""

import os

import pytest
from hypothesis import settings

from privasso._apart import Reader
from privasso.tables import _frames

# The same examples on every run, so that a failure is a change in the code and never luck; no
# deadline, because the first call into a compiled kernel takes seconds.
settings.register_profile("privasso", deadline=None, derandomize=True, max_examples=50)
settings.load_profile("privasso")


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport(item, call):
    """Let a skip be a failure in continuous integration, where every tool is expected."""
    report = yield
    if report.skipped and not hasattr(report, "wasxfail") and os.environ.get("CI"):
        reason = call.excinfo.value if call.excinfo is not None else "no reason"
        report.outcome, report.longrepr = "failed", f"CI skips no test, but this one: {reason}"
    return report


class SharedReader(Reader):
    """A reader of tables for many tests, each of which would start its own in 0.3 s.

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


@pytest.fixture
def blank_pictures(monkeypatch):
    """Write an empty picture where a figure would be rendered, which takes a second for a page.

    Figures are rendered in the tests of the reports, of the paper and of the commands that plot.
    """
    from matplotlib.figure import Figure

    write = Figure.savefig
    monkeypatch.setattr(
        Figure, "savefig", lambda _, *given, **options: write(Figure((1, 1)), *given, **options)
    )


@pytest.fixture
def one_reader(readers, monkeypatch):
    """Let one process read all tables of all tests that ask for this."""

    def reader(module):
        if not readers or not readers[0].alive:
            readers[:] = [SharedReader(module)]
        return readers[0]

    monkeypatch.setattr(_frames, "Reader", reader)
