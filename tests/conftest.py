"""Settings shared by all tests."""

import os

import pytest
from hypothesis import settings

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


@pytest.fixture(autouse=True)
def _memory_stays_free():
    """Fail where a test limits the memory of this process, which later ones would run short of."""
    if os.name == "nt":
        yield
        return
    import resource

    before = resource.getrlimit(resource.RLIMIT_AS)
    yield
    after = resource.getrlimit(resource.RLIMIT_AS)
    resource.setrlimit(resource.RLIMIT_AS, before)
    assert after == before


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
