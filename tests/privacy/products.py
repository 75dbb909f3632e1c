"""The integers that a release of products is made of, before their noise."""

from dataclasses import dataclass
from fractions import Fraction

from privasso.planning import release_mechanism
from privasso.queries import Ask, NoisySum


@dataclass(frozen=True, eq=False)
class Statistic:
    """Integers, the deviation of their noise, and by how many deviations a label moves them."""

    values: list[int]
    deviation: float
    mu: float
    unit: int


class _Noting(Ask):
    """Answers from rows without noise, and notes the question."""

    def __init__(self, rows):
        super().__init__(rows.shape[0])
        self.rows = rows

    def answer(self, query):
        assert isinstance(query, NoisySum)
        return query.off(query.exact(self.rows), 0.0 * query.deviations[None])[0]


def question(rows, privacy, calibration) -> NoisySum:
    ask = _Noting(rows.labelled([0.0] * rows.shape[0]))
    release_mechanism(privacy).program(rows, calibration)(ask, 0.0)
    (query, _), *rest = ask.transcript
    assert not rest
    assert isinstance(query, NoisySum)
    return query


def statistic(rows, y, privacy, calibration, query=None) -> Statistic:
    """What comes of these labels, by a question that was asked for before if it is given."""
    query = query or question(rows, privacy, calibration)
    (deviation,) = set(query.deviations.tolist())
    return Statistic(query.exact(rows.labelled(y)), deviation, query.mu, query.summand.unit)


def moved(rows, y, chosen, privacy, calibration) -> list[Fraction]:
    """The squared changes, in deviations, if one of the chosen labels goes from bound to bound."""
    query = question(rows, privacy, calibration)  # before any label is read
    (deviation,) = set(query.deviations.tolist())
    found = []
    for row in chosen:
        ends = []
        for label in privacy.y_bounds:
            changed = y.copy()
            changed[row] = label
            ends.append(query.exact(rows.labelled(changed)))
        square = sum((a - b) ** 2 for a, b in zip(*ends, strict=True))
        found.append(square / Fraction(deviation) ** 2)
    return found
