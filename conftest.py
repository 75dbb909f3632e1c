"""What the tests and the examples in the docstrings share."""

import gc

import pytest

#: Seconds that a slow test may take; for others the limit is in pyproject.toml.
SLOW_TIMEOUT = 3600


@pytest.hookimpl(wrapper=True)
def pytest_collection():
    """Search for no garbage while tests are found, and later not among what was found: it stays."""
    gc.disable()
    try:
        return (yield)
    finally:
        gc.enable()
        gc.freeze()


def pytest_collection_modifyitems(items):
    """Give slow tests a time limit of their own."""
    for item in items:
        if item.get_closest_marker("slow") and not item.get_closest_marker("timeout"):
            item.add_marker(pytest.mark.timeout(SLOW_TIMEOUT))


@pytest.fixture(autouse=True)
def no_labels_used_yet(monkeypatch):
    """Start each test as a new process would, without labels that were released before."""
    monkeypatch.setattr("privasso.fit._charge._USES", {})
