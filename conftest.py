"""What the tests and the examples in the docstrings share."""

import pytest


@pytest.fixture(autouse=True)
def no_labels_used_yet(monkeypatch):
    """Start each test as a new process would, without labels that were released before."""
    monkeypatch.setattr("privasso.fit._uses._USES", {})
