"""The experiment is faster than the plain transcription of Algorithm 1."""

import numpy as np
import pytest

from bench.reproduction import speed
from privasso.paper._grid import GridExperiment


@pytest.mark.slow
def test_faster_than_the_transcription():
    sigmas = tuple(np.geomspace(0.01, 0.5, 16).tolist())
    found = speed(GridExperiment(sigmas=sigmas, n_features=1000, samples=2), jobs=1)
    assert found.ratio > 1.0
    assert found.batch_ratio > 3.0
