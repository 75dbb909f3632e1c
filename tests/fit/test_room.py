"""What is refused about the size of a table before anything is spent."""

import numpy as np
import pytest

import privasso as pv


@pytest.mark.parametrize("kind", ["labels", "records"])
def test_more_columns_than_memory_are_refused_before_the_charge(kind, monkeypatch):
    monkeypatch.setattr("privasso.planning._objective_noise._MATRICES", 1 << 50)
    X, y, ledger = np.random.default_rng(0).random((6, 8)), np.linspace(0, 1, 6), pv.Ledger(3, 1e-5)
    privacy = {
        "labels": pv.LabelDP(1.0, 1e-6, (0, 1), mechanism="objective"),
        "records": pv.RecordDP(1.0, 1e-6, [(0, 1)] * 8, (0, 1)),
    }[kind]
    with pytest.raises(ValueError, match="more memory than this machine has"):
        pv.PrivateLasso(privacy=privacy, ledger=ledger).fit(X, y)
    assert not ledger.entries
