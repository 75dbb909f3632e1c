"""All figures of the study, those of the paper first, and all claims with their tests."""

from privasso.paper import _convergence, _growth  # noqa: F401  (they declare claims)
from privasso.paper._claim import REGISTRY, Decided
from privasso.paper._correlated import CORRELATED
from privasso.paper._error import FIG3, FIG4, SIMILAR
from privasso.paper._existence import MAP
from privasso.paper._figure import Tables
from privasso.paper._leakage import LEAKAGE
from privasso.paper._noise import FIG1, FIG2
from privasso.paper._sizes import KKT, TAIL
from privasso.paper._small import SMALL
from privasso.paper._tradeoff import FIG5

_ALL = (FIG1, FIG2, FIG3, FIG4, FIG5, SIMILAR, SMALL, MAP, KKT, LEAKAGE, TAIL, CORRELATED)
FIGURES = {figure.name: figure for figure in _ALL}
#: The claims, in the order of their letters.
CLAIMS = tuple(sorted(REGISTRY, key=lambda claim: claim.key))


def decide(tables: Tables) -> Decided:
    """Apply the test of every claim to the tables of a run."""
    return [(claim, claim.decide(tables)) for claim in CLAIMS]
