"""A ledger of each kind."""

import pytest
from ledgers import DELTA

import privasso as pv


@pytest.fixture(params=["memory", "file"])
def ledger(request, tmp_path):
    if request.param == "memory":
        return pv.Ledger(2.0, DELTA)
    return pv.Ledger.create(tmp_path / "budget.json", 2.0, DELTA, data="a study")
