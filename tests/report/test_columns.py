"""The noise of columns, by hand."""

import numpy as np
import pytest

import privasso as pv
from privasso.operators import Covariates
from privasso.planning import calibrate
from privasso.report import column_noise


def test_shares_add_up_and_constant_columns_have_none():
    F = np.column_stack([np.arange(6.0), np.ones(6), np.arange(6.0) ** 2])
    rows = Covariates(F, centre=True)
    noise = calibrate(rows, pv.LabelDP(1.0, 1e-6, (0, 1)), pv.PowerLaw(1.0, 0.5)).covariance
    columns, sigma = column_noise(rows, noise), noise.embedded(rows.live).sigma
    assert columns.share.sum() == pytest.approx(1.0)
    assert columns.share[1] == columns.sigma[1] == columns.in_label_units[1] == 0.0
    own = (np.std(F[:, 0]) * np.sqrt(6) / sigma[0]) ** 2
    other = (np.std(F[:, 2]) * np.sqrt(6) / sigma[2]) ** 2
    assert columns.share[0] == pytest.approx(own / (own + other))
