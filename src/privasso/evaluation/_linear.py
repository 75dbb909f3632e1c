"""How well a linear model predicts labels that are numbers."""

from __future__ import annotations

import math
from dataclasses import dataclass, field

import numpy as np
from scipy.special import ndtr, ndtri

from privasso.evaluation._ratios import (
    DRAWS,
    Estimate,
    Estimates,
    gradient,
    normal,
    ratio_interval,
    ratio_of,
    shares_of,
)
from privasso.evaluation._sums import (
    FEATURES,
    REST,
    DistanceCounts,
    Moments,
    Scored,
    Squares,
    changes,
    largest,
    places_known,
)
from privasso.queries import Ask, Neighbours, NoisySum, Summand

WITHIN = "prediction-interval"
#: Ratios with squares of distances.
_SQUARED = ("mse", "r2")
#: Parts of the squared sensitivity: a look at distances, sums, variances, and a second look.
_PARTS = {
    "distances": (0.1, 0.8, 0.1, 0.0),
    "no distances": (0.0, 0.9, 0.1, 0.0),
    "alone": (0.25, 0.0, 0.0, 0.75),
    "both": (0.15, 0.4, 0.05, 0.4),
}
#: A first look is at these distances, as parts of the range of the labels; then at so many between.
_STEPS, _FINE = 2.0 ** (0.25 * np.arange(-32, 0)), 16
#: With so many records per deviation of the noise, what is needed for any number of records between
#: two is at most what is needed for one of the two.
_MANY = 4.0
#: Deviations of the noise beyond which a first look is believed, how far above what it sees B is,
#: and the least B.
_SURELY, _ABOVE, _LEAST = 3.0, 2.0, 1.0 / 16.0


@dataclass(frozen=True, eq=False)
class LinearEvaluation:
    """What is asked about predictions.

    Attributes
    ----------
    scored : Scored
        What a record shows.
    columns : ndarray of int or None
        The columns of the records that the model uses.
    metrics : tuple of str
        Ratios, and `WITHIN`.
    mu : float
        Sensitivity of all answers together.
    neighbours : Neighbours
        How data sets differ.
    coverage : float
        Which part of new labels is to be within the distance that is found.
    """

    scored: Scored
    columns: np.ndarray | None = field(repr=False)
    metrics: tuple[str, ...]
    mu: float
    neighbours: Neighbours
    coverage: float

    def __call__(self, ask: Ask) -> Estimates:
        """Ask, and return what makes estimates of the answers, in units of the bounds."""
        named = ("mse" if one == "rmse" else one for one in self.metrics if one != WITHIN)
        ratios, within = tuple(dict.fromkeys(named)), WITHIN in self.metrics
        kind = "distances" if set(_SQUARED) & set(ratios) else "no distances"
        if within:
            kind = "both" if ratios else "alone"
        look, *parts, last = _PARTS[kind]
        distances = self._look(ask, _STEPS, look) if look else None
        made: list[Estimates] = []
        if ratios:
            made.append(self._ratios(ask, ratios, distances, (parts[0], parts[1])))
        if within:
            assert distances is not None
            made.append(self._within(ask, distances, last))

        def estimates(level: float) -> dict[str, Estimate]:
            found = {name: one for part in made for name, one in part(level).items()}
            return {one: found["mse" if one == "rmse" else one] for one in self.metrics}

        return estimates

    def _query(self, summand: Summand, part: float) -> tuple[NoisySum, np.ndarray]:
        """A question with a part of the squared sensitivity, and the deviations of its noise."""
        query = NoisySum(summand, self.mu * math.sqrt(part), self.neighbours)
        return query, np.ldexp(query.deviations, -summand.unit)

    def _look(self, ask: Ask, edges: np.ndarray, part: float) -> _Look:
        """How many records have distances beyond each edge."""
        query, noise = self._query(DistanceCounts(self.scored, self.columns, edges), part)
        return _Look(ask(query), noise)

    def _ratios(
        self,
        ask: Ask,
        metrics: tuple[str, ...],
        look: _Look | None,
        parts: tuple[float, float],
    ) -> Estimates:
        """Ask for sums, and then for the variances of the ratios that these lead to."""
        bound = 1.0 if look is None else look.bound()
        at, shares = shares_of(metrics, changes(self.neighbours, bound))
        query, deviations = self._query(
            Moments(self.scored, self.columns, bound, at, shares), parts[0]
        )
        sums, noise = np.zeros((2, len(FEATURES)))
        sums[at], noise[at] = ask(query), deviations
        is_rest = np.arange(sums.size) == REST
        near, rest = np.where(is_rest, 0.0, sums), float(sums[REST])
        likely = np.where(is_rest, max(rest - float(noise[REST]), 0.0), near)
        lines, sizes = [], []
        for metric in metrics:
            top, bottom = (float(one) for one in ratio_of(metric, likely))
            line = gradient(metric, likely, top / bottom if bottom > 0.0 else 0.0)
            for one in (line, np.where(is_rest, 0.0, line)) if metric in _SQUARED else (line,):
                sizes.append(max(float(np.abs(one) @ largest(bound)), 1e-9))
                lines.append(one / sizes[-1])
        query, deviations = self._query(
            Squares(self.scored, self.columns, bound, np.array(lines)), parts[1]
        )
        # Half a deviation more, because a variance that is too small is worse than one too large.
        squares = np.maximum(ask(query) + 0.5 * deviations, 0.0) * np.array(sizes) ** 2

        def estimates(level: float) -> dict[str, Estimate]:
            """The rest is never negative: two bounds from below, and one from above."""
            drawn = noise * normal(DRAWS, noise.size)
            variances, found = iter(squares.tolist()), {}

            def interval(metric: str, sums: np.ndarray, drawn: np.ndarray, tail: float) -> Estimate:
                top, bottom = (float(one) for one in ratio_of(metric, sums))
                covariance = np.cov(ratio_of(metric, sums + drawn))
                return ratio_interval(top, bottom, covariance, next(variances), -float(ndtri(tail)))

            for metric in metrics:
                if metric not in _SQUARED:
                    found[metric] = interval(metric, sums, drawn, 0.5 * (1.0 - level))
                    continue
                full = np.where(is_rest, max(rest, 0.0), near)
                whole = interval(metric, full, drawn, (1.0 - level) / 3.0)
                least = interval(metric, near, np.where(is_rest, 0.0, drawn), (1.0 - level) / 3.0)
                top, bottom = (float(one) for one in ratio_of(metric, likely))
                value = math.nan if math.isnan(whole.value) else top / bottom
                low = min(max(whole.low, least.low), whole.high)
                found[metric] = Estimate(value, low, whole.high)
            return found

        return estimates

    def _within(self, ask: Ask, look: _Look, part: float) -> Estimates:
        """A distance from the prediction that so many new labels keep; see `least_excess`."""
        miss = 1.0 - self.coverage
        edges = np.geomspace(*look.around(miss), _FINE)
        closer = self._look(ask, edges, part)
        excess, noise = closer.excess(miss)
        every = np.append(edges, 1.0)
        low, high = float(noise[-1]), float(noise[0])
        enough = least_excess(ask.n_rows, self.coverage, low, high)
        if not places_known(self.neighbours):  # with fewer records more is needed, or with more
            fewest = (ask.n_rows + 1) // 2
            enough = max(enough, least_excess(fewest, self.coverage, low, high))
            enough = enough if fewest >= _MANY * high else math.inf

        def first(passes: np.ndarray) -> float:
            """The edge above the largest that does not pass."""
            failed = np.flatnonzero(~passes)
            return float(every[failed[-1] + 1 if failed.size else 0])

        found = first(excess >= enough)
        sampling = math.sqrt(max(closer.count, 1.0) * self.coverage * miss)

        def estimates(level: float) -> dict[str, Estimate]:
            margin = -float(ndtri(0.5 * (1.0 - level))) * np.hypot(noise, sampling)
            short = np.flatnonzero(excess < -margin)
            least = float(edges[short[-1]]) if short.size else 0.0
            most = first(excess >= margin)
            return {WITHIN: Estimate(found, min(least, found), max(most, found))}

        return estimates


@dataclass(frozen=True, eq=False)
class _Look:
    """Noisy counts of records, and of those between edges and beyond, with their deviations."""

    counts: np.ndarray
    noise: np.ndarray

    @property
    def count(self) -> float:
        """Of records."""
        return float(self.counts[0])

    def excess(self, part: float) -> tuple[np.ndarray, np.ndarray]:
        """`part` of all records minus those beyond each edge, and the deviations of its noise."""
        beyond = np.cumsum(self.counts[:0:-1])[::-1]
        noise = np.cumsum(self.noise[:0:-1] ** 2)[::-1]
        return part * self.count - beyond, np.sqrt((part * self.noise[0]) ** 2 + noise)

    def around(self, part: float) -> tuple[float, float]:
        """Two of `_STEPS` or 1, with the distance that so many records exceed between them."""
        excess, noise = self.excess(part)
        short = np.flatnonzero(excess < -_SURELY * noise)
        doubtful = np.flatnonzero(excess <= _SURELY * noise)
        low = int(short[-1]) if short.size else 0
        high = int(doubtful[-1]) + 1 if doubtful.size else 0
        ends = np.append(_STEPS, 1.0)
        return float(ends[low]), float(ends[max(high, low + 1)])

    def bound(self) -> float:
        """A distance B that few records exceed, as far as noise lets one see."""
        excess, noise = self.excess(0.0)
        many = np.flatnonzero(-excess > _SURELY * noise)
        last = int(many[-1]) + 1 if many.size else 0
        return min(1.0, max(_LEAST, _ABOVE * float(np.append(_STEPS, 1.0)[last])))


def least_excess(n: int, coverage: float, low: float, high: float) -> float:
    """Return the noisy excess from which on a distance is taken to be enough for n records.

    Of n records and a new one, exchangeable, the new one has each rank with the probability
    1/(n + 1). If i of the n have smaller distances, then at the largest edge below its own at most
    i are below the edge, so that the excess, i − coverage·n without noise, passes m with a
    probability of at most Φ((i − coverage·n − m)/τ), τ the deviation of its noise, between `low`
    and `high`. The new one is missed only then: edges are looked at from above. So it is missed
    with a probability of at most Σ_i Φ(…)/(n + 1), and m makes this 1 − coverage.

    >>> round(least_excess(1000, 0.9, 3.0, 3.0), 2), least_excess(5, 0.9, 3.0, 3.0) > 2.0
    (0.4, True)
    """

    def missed(m: float) -> float:
        centre = coverage * n + m
        reach = 40.0 * high + 2.0
        start, stop = max(0, math.floor(centre - reach)), min(n + 1, math.ceil(centre + reach))
        i = np.arange(start, max(start, stop)) - centre
        return float(ndtr(i / np.where(i < 0.0, high, low)).sum()) + max(
            0, n + 1 - max(start, stop)
        )

    below, above = -1.0, 2.0
    while missed(above) > (1.0 - coverage) * (n + 1):
        above *= 2.0
    for _ in range(60):
        middle = 0.5 * (below + above)
        fits = missed(middle) <= (1.0 - coverage) * (n + 1)
        below, above = (below, middle) if fits else (middle, above)
    return above
