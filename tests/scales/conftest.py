"""The laws under test, each beside an independent description of the same law."""

from collections.abc import Callable
from itertools import pairwise
from typing import Any, NamedTuple

import numpy as np
import pytest
from scipy import integrate, stats

from privasso import LogNormal, ScaleLaw, Uniform


class Case(NamedTuple):
    law: ScaleLaw
    peer: Any
    """The distribution of s in scipy."""

    def mean(self, f: Callable[[Any], Any]) -> float:
        """E[f(s²)] by adaptive integration against scipy's density, piece by piece."""
        ends = self.peer.ppf([0.0, 1e-80, 1e-30, 1e-12, 1e-4, 0.1, 0.5])
        upper = self.peer.isf([0.1, 1e-4, 1e-12, 1e-30, 1e-80])
        ends = np.unique(np.concatenate([ends, upper]))
        return sum(
            integrate.quad(
                lambda s: f(s * s) * self.peer.pdf(s), a, b, epsabs=0, epsrel=1e-12, limit=200
            )[0]
            for a, b in pairwise(ends)
        )


def _uniform(low: float, high: float) -> Case:
    return Case(Uniform(low, high), stats.uniform(low, high - low))


def _lognormal(mu: float, sigma: float) -> Case:
    return Case(LogNormal(mu, sigma), stats.lognorm(s=sigma, scale=np.exp(mu)))


LAWS = {
    "uniform from 0": _uniform(0.0, 1.0),
    "uniform": _uniform(0.3, 2.0),
    "lognormal": _lognormal(0.0, 0.5),
    "lognormal wide": _lognormal(-0.4, 1.0),
}


@pytest.fixture(params=LAWS, ids=lambda name: name.replace(" ", "-"))
def case(request: pytest.FixtureRequest) -> Case:
    return LAWS[request.param]
