"""What a record shows of a public model: sums of moments, counts of residuals, counts of scores."""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from functools import cached_property

import numpy as np

from privasso._types import Matrix
from privasso._validation import X_FINITE
from privasso.programs import Point, bounded_labels
from privasso.queries import ROUNDING, Neighbours, Summand

#: Numbers are integers of this many bits.
_BITS = 42
#: What records add up: y and p are label and prediction between −½ and ½, B is a public number.
FEATURES = ("1", "y", "p", "y²", "p²", "yp", "|y − p|", "min((y − p)², B²)", "the rest of (y − p)²")
REST = len(FEATURES) - 1
#: The most by which one record changes the sums, by neighbours: an emptied one, a label that is
#: replaced, which leaves p as it is, and a record that is replaced. The last two depend on B.
_EMPTIED = (1.0, 0.5, 0.5, 0.25, 0.25, 0.25, 1.0)
_LABEL = (0.0, 1.0, 0.0, 0.25, 0.0, 0.5, 1.0)
_RECORD = (1.0, 1.0, 1.0, 0.25, 0.25, 0.5, 1.0)
#: What nobody changes has hardly any noise, and costs nothing.
_FREE = 2.0**-6
#: Scores of classes are log odds up to this size, in 2^DEPTH cells of equal width.
ODDS, DEPTH = 8.0, 11
#: Each finer level of cells has so much less of the squared sensitivity.
_FINER = 2.0**-0.25


@dataclass(frozen=True, eq=False)
class Scored:
    """Labels and predictions of records by a public linear model.

    Attributes
    ----------
    point : Point
        Coefficients, and bounds of labels and covariates.
    public : bool
        Whether covariates are public; then each must be a number.
    """

    point: Point
    public: bool

    def odds(self, X: Matrix) -> np.ndarray:
        """Linear predictions, never NaN."""
        found = self.point.odds(X)
        if self.public and not np.isfinite(found).all():
            raise ValueError(X_FINITE)
        return np.where(np.isnan(found), 0.0, found)

    def labels(self, y: np.ndarray) -> np.ndarray:
        """Labels between −½ and ½; NaN for empty records."""
        low, high = self.point.y_bounds
        bounded = bounded_labels(np.asarray(y, np.float64), (low, high), empty=self.point.empty)
        return np.clip((bounded - (0.5 * low + 0.5 * high)) / (high - low), -0.5, 0.5)

    def pairs(self, X: Matrix, y: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Labels and predictions between −½ and ½ of the records that are not empty."""
        low, high = self.point.y_bounds
        p = (np.clip(self.odds(X), low, high) - (0.5 * low + 0.5 * high)) / (high - low)
        labels = self.labels(y)
        there = ~np.isnan(labels)
        return labels[there], np.clip(p[there], -0.5, 0.5)


@dataclass(frozen=True, eq=False)
class Evaluated(Summand):
    """Sums over scored records, of the columns whose coefficients are not zero."""

    scored: Scored
    columns: np.ndarray | None = field(repr=False)

    unit = _BITS
    most_rows = 1 << 16


def changes(neighbours: Neighbours, bound: float) -> np.ndarray:
    """By how much one record changes the sum of each of `FEATURES`, at most."""
    known = _LABEL if neighbours.unit == "label" else _RECORD
    found = _EMPTIED if neighbours.relation == "emptied" else known
    return np.array([*found, bound**2, 1.0 - bound**2])


def largest(bound: float) -> np.ndarray:
    """The largest size of each of `FEATURES` of one record."""
    return np.array([*_EMPTIED, bound**2, 1.0 - bound**2])


def places_known(neighbours: Neighbours) -> bool:
    """Whether the number of records and their predictions are the same for all neighbours."""
    return neighbours.unit == "label" and neighbours.relation == "replaced"


def features(y: np.ndarray, p: np.ndarray, bound: float) -> np.ndarray:
    """`FEATURES` of some records, one row for each feature."""
    distance = np.abs(y - p)
    near = np.minimum(distance, bound)
    rest = np.maximum(distance * distance - bound * bound, 0.0)
    rest = np.minimum(rest, 1.0 - bound * bound)
    return np.stack([np.ones(y.size), y, p, y * y, p * p, y * p, distance, near * near, rest])


@dataclass(frozen=True, eq=False)
class Moments(Evaluated):
    """Sums of `FEATURES`.

    Attributes
    ----------
    bound : float
        B.
    at : ndarray of int
        Of which.
    shares : ndarray
        Parts of the squared sensitivity; what no record changes needs none.
    """

    bound: float
    at: np.ndarray = field(repr=False)
    shares: np.ndarray = field(repr=False)

    sentence = "noisy sums of labels, predictions, their products and their distances"

    def sums(self, X: Matrix, y: np.ndarray) -> np.ndarray:
        """Rounded towards zero."""
        found = features(*self.scored.pairs(X, y), self.bound)[self.at]
        return np.trunc(np.ldexp(found, _BITS)).astype(np.int64).sum(axis=1)

    def lengths(self, neighbours: Neighbours) -> np.ndarray:
        """Two rounded numbers are apart by a unit more than what they are rounded from."""
        moved = changes(neighbours, self.bound)[self.at]
        apart = np.ldexp(moved, _BITS) + 2.0
        free = math.ldexp(_FREE, _BITS)
        roots = np.sqrt(np.where(moved > 0.0, self.shares, 1.0))
        return np.where(moved > 0.0, apart / roots, free) * ROUNDING


@dataclass(frozen=True, eq=False)
class Squares(Evaluated):
    """Sums of squares of linear functions of `FEATURES`, each divided by its largest size.

    Attributes
    ----------
    bound : float
        B.
    weights : ndarray of shape (K, 9)
        The functions, of sizes up to 1.
    """

    bound: float
    weights: np.ndarray = field(repr=False)

    sentence = "noisy sums of squares, for intervals"

    def sums(self, X: Matrix, y: np.ndarray) -> np.ndarray:
        """Added up in the order of the features, whatever the storage."""
        parts, found = features(*self.scored.pairs(X, y), self.bound), []
        for line in self.weights:
            value = np.zeros(parts.shape[1])
            for weight, part in zip(line.tolist(), parts, strict=True):
                value += weight * part
            square = np.minimum(value * value, 1.0)
            found.append(int(np.trunc(np.ldexp(square, _BITS)).astype(np.int64).sum()))
        return np.array(found)

    def lengths(self, neighbours: Neighbours) -> np.ndarray:
        """No square changes by more than 1, whatever neighbours are."""
        each = math.ldexp(1.0, _BITS) * math.sqrt(len(self.weights)) * ROUNDING
        return np.full(len(self.weights), each)


@dataclass(frozen=True, eq=False)
class DistanceCounts(Evaluated):
    """How many records there are, and how many have |y − p| between these edges, and beyond.

    Attributes
    ----------
    edges : ndarray
        Increasing.
    """

    edges: np.ndarray = field(repr=False)

    sentence = "noisy counts of residuals by their size"
    #: Part of the squared sensitivity for the number of records.
    _ALL = 0.1

    def sums(self, X: Matrix, y: np.ndarray) -> np.ndarray:
        """Counts; those up to the first edge are not asked for."""
        y, p = self.scored.pairs(X, y)
        places = np.searchsorted(self.edges, np.abs(y - p), side="left")
        cells = np.bincount(places, minlength=len(self.edges) + 1)[1:]
        return np.append(y.size, cells).astype(np.int64) << _BITS

    def lengths(self, neighbours: Neighbours) -> np.ndarray:
        """A record is in one cell, and two are in two."""
        known = places_known(neighbours)
        both = 1.0 if neighbours.relation == "emptied" else math.sqrt(2.0)
        cells = np.full(len(self.edges), both / math.sqrt(1.0 if known else 1.0 - self._ALL))
        return np.ldexp(np.append(_FREE if known else self._ALL**-0.5, cells), _BITS) * ROUNDING


@dataclass(frozen=True, eq=False)
class ScoreCounts(Evaluated):
    """How many records of each class have which log odds, in cells that halve again and again.

    The answer has the number of records, then for each cell of each level by how many its left half
    has more than its right half; and the same of 2y − 1, y the label, which is ±1 for the classes.
    """

    sentence = "noisy counts of the two classes by their log odds"

    @cached_property
    def shares(self) -> np.ndarray:
        """Of the squared sensitivity, for each number."""
        level = np.append(0, np.repeat(np.arange(DEPTH), 1 << np.arange(DEPTH)))
        return _FINER**level / (1.0 + np.sum(_FINER ** np.arange(DEPTH)))

    def sums(self, X: Matrix, y: np.ndarray) -> np.ndarray:
        """Of the records that are not empty."""
        labels, odds = 2.0 * self.scored.labels(y), self.scored.odds(X)
        there = ~np.isnan(labels)
        cells, size = cell_of(odds[there]), 1 << DEPTH
        whole = np.rint(np.ldexp(labels[there], 20))  # sums of integers are exact in any order
        counts = np.bincount(cells, minlength=size).astype(np.int64) << _BITS
        signed = np.bincount(cells, whole, minlength=size).astype(np.int64) << (_BITS - 20)
        return np.concatenate([halved(counts), halved(signed)])

    def lengths(self, neighbours: Neighbours) -> np.ndarray:
        """A record is in one cell of each level; a label that is replaced leaves it there."""
        label = places_known(neighbours)
        both = 1.0 if neighbours.relation == "emptied" else 2.0
        roots = np.sqrt(self.shares if label else 0.5 * self.shares)
        counts = np.full(roots.size, _FREE) if label else both / roots
        return np.ldexp(np.append(counts, both / roots), _BITS) * ROUNDING


def cell_of(odds: np.ndarray) -> np.ndarray:
    """The cells of log odds; positive ones are in the upper half."""
    size = 1 << DEPTH
    place = np.ceil((np.clip(odds, -ODDS, ODDS) / ODDS + 1.0) * (size // 2)) - 1.0
    return np.clip(place, 0, size - 1).astype(np.int64)


def middles_of_cells() -> np.ndarray:
    """Log odds in the middle of each cell."""
    return (np.arange(1 << DEPTH) + 0.5) * (2.0 * ODDS / (1 << DEPTH)) - ODDS


def halved(cells: np.ndarray) -> np.ndarray:
    """The total, and by how much the left halves exceed the right ones, from coarse to fine.

    >>> halved(np.array([4, 1, 0, 2])).tolist()
    [7, 3, 3, -2]
    """
    levels = []
    while cells.size > 1:
        left, right = cells[0::2], cells[1::2]
        levels.append(left - right)
        cells = left + right
    return np.concatenate([cells, *levels[::-1]])


def joined(found: np.ndarray) -> np.ndarray:
    """The cells of what `halved` returned, along the last axis.

    >>> joined(np.array([7, 3, 3, -2])).tolist()
    [4.0, 1.0, 0.0, 2.0]
    """
    cells, start = found[..., :1].astype(np.float64), 1
    while start < found.shape[-1]:
        more = found[..., start : 2 * start]
        both = np.stack([0.5 * (cells + more), 0.5 * (cells - more)], axis=-1)
        cells, start = both.reshape(*both.shape[:-2], -1), 2 * start
    return cells
