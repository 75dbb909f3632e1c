"""The noise of a release of Fᵀy and of the label sum, shaped for the rows at hand."""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from weakref import WeakKeyDictionary

import numpy as np

from privasso._blas import one_thread
from privasso._tuned import SUM_WEIGHT
from privasso.noise import Covariance, Diagonal, Factored
from privasso.operators import Covariates
from privasso.planning._shape import optimal_shape

#: Times that rows are shrunk and the noise is shaped anew; a third changes little.
_ROUNDS = 2
#: Directions in which the rows have less than this part of their largest second moment get no
#: noise: they hold nothing but rounding.
_RANK = 1e-12
#: Certificate of the shape where no row is shrunk, and most columns for which it is computed.
_CERTIFICATE, _MOST_COLUMNS = 0.02, 256
#: Rows of a sample, or so many per column if that is more.
_ROWS, _ROWS_PER_COLUMN = 2000, 8


@dataclass(frozen=True, eq=False)
class ReleaseShape:
    """Noise for the products of rows and labels and for the label sum, at unit sensitivity.

    A row has the size q_μ = √(f_μᵀΣ⁻¹f_μ + 1/σ₀²). Rows with q_μ > 1 are to be shrunk to 1.

    `covariance`: Σ over the live columns. `sigma_sum`: σ₀, zero without an intercept. `squares`:
    q_μ² of the rows that it was found from.
    """

    covariance: Covariance = field(repr=False)
    sigma_sum: float
    squares: np.ndarray = field(repr=False)

    def scaled(self, level: float) -> ReleaseShape:
        """The same in which rows of the size `level` have the size 1."""
        covariance = self.covariance.scaled(level**2)
        return ReleaseShape(covariance, level * self.sigma_sum, self.squares / level**2)


def release_shape(rows: Covariates, shrink: float, *, roots: bool = False) -> ReleaseShape:
    """Shape the noise for rows of which a part is shrunk.

    The noise is η ~ N(0, Σ) on the columns and an independent η₀ ~ N(0, σ₀²) on the label sum.
    Where no row is shrunk, Σ is the `optimal_shape`. Where many are, their sizes are nearly equal,
    and it is enough to bound the mean of f_μᵀΣ⁻¹f_μ instead of its maximum; so it is with very
    many columns, over which sizes even out. The least tr(WΣ) is then reached by

        Σ ∝ W^(−½) (W^½ A W^½)^½ W^(−½),   A = Σ_μ g_μ² f_μf_μᵀ,

    g_μ the factors of the rows and W the weight of standardised columns. Factors and shape are
    found in turn. Of the squared sensitivity the label sum takes the part that minimises
    tr(WΣ) + 4σ₀².

    Where rows are shrunk, whoever releases them sees to each of them. So a sample is enough to find
    the shape; other rows then say at which level that part of all rows is shrunk.

    `shrink`: part of the rows that is shrunk; rows of zeros, or without weight, do not count.
    `roots`: rows enter with the roots of their weights, rather than with these.
    """
    part = row_sample(rows) if shrink > 0.0 else rows
    found = _shape_of(part, shrink, roots)
    if part is rows:
        return found
    if found.covariance.rank < found.covariance.size:  # all rows may span more than the sample
        return _shape_of(rows, shrink, roots)
    others = _drawn(rows, 1)
    assert others is not None
    squares = others.squared_row_norms(found.covariance)
    if rows.centred:
        squares += found.sigma_sum**-2
    return found.scaled(_level(np.sqrt(squares), _factors(others, roots), shrink)[0])


def row_sample(rows: Covariates) -> Covariates:
    """At most a few thousand rows, always the same ones."""
    if rows not in _SAMPLES:
        _SAMPLES[rows] = _drawn(rows, 0)
    found = _SAMPLES[rows]
    return rows if found is None else found


_SAMPLES: WeakKeyDictionary[Covariates, Covariates | None] = WeakKeyDictionary()


def _drawn(rows: Covariates, seed: int) -> Covariates | None:
    """Some rows by chance; None where these would be all."""
    count = max(_ROWS, _ROWS_PER_COLUMN * int(rows.live.sum()))
    if rows.shape[0] <= count:
        return None
    index = np.random.default_rng(seed).choice(rows.shape[0], count, replace=False)
    return rows.sampled(np.sort(index))


def _factors(rows: Covariates, roots: bool) -> np.ndarray | None:
    """Factors of the rows before any is shrunk; None where all are 1."""
    return np.sqrt(rows.weights) if roots and rows.weights is not None else rows.weights


def _level(sizes: np.ndarray, given: np.ndarray | None, shrink: float) -> tuple[float, np.ndarray]:
    """The size above which that part of the rows is, and which rows count."""
    weights = np.ones(sizes.size) if given is None else given
    # Rows of zeros, or without weight, say nothing and must not set the level. Rows that the
    # noise does not cover, beside far larger ones, may be covered once those are shrunk.
    speaks = (weights > 0.0) & (sizes > 0.0) & np.isfinite(sizes)
    level = np.quantile(weights[speaks] * sizes[speaks], 1.0 - shrink, method="lower")
    return float(level), speaks


def _shape_of(rows: Covariates, shrink: float, roots: bool) -> ReleaseShape:
    """See `release_shape`; found once for each part of the rows."""
    known = _SHAPES.setdefault(rows, {})
    if (shrink, roots) not in known:
        known[shrink, roots] = _in_turn(rows, shrink, _factors(rows, roots))
    return known[shrink, roots]


_SHAPES: WeakKeyDictionary[Covariates, dict[tuple[float, bool], ReleaseShape]] = WeakKeyDictionary()


def _in_turn(rows: Covariates, shrink: float, given: np.ndarray | None) -> ReleaseShape:
    if not rows.live.any():
        alone = 1.0 if rows.centred else 0.0
        return ReleaseShape(Diagonal([]), alone, np.full(rows.shape[0], alone))
    factors, weights = given, np.ones(rows.shape[0]) if given is None else given
    share, level = 0.0, 1.0
    noise, sizes = Diagonal([]), np.empty(0)
    for _ in range(_ROUNDS if shrink > 0.0 else 1):
        exact = shrink == 0.0 and int(rows.live.sum()) <= _MOST_COLUMNS
        noise, cost, squares = _best(rows, given) if exact else _shape(rows, factors)
        if rows.centred:
            share = math.sqrt(SUM_WEIGHT) / (math.sqrt(cost) + math.sqrt(SUM_WEIGHT))
        sizes = np.sqrt((1.0 - share) * squares + share)
        level, speaks = _level(sizes, given, shrink)
        factors = weights.copy()
        factors[speaks] = np.minimum(weights[speaks], level / sizes[speaks])
    noise, sigma_sum = noise.scaled(level**2 / (1.0 - share)), 0.0
    if share:
        sigma_sum = level / math.sqrt(share)
    return ReleaseShape(noise, sigma_sum, (sizes / level) ** 2)


_Found = tuple[Covariance, float, np.ndarray]


def _best(rows: Covariates, weights: np.ndarray | None) -> _Found:
    """The certified best shape for the largest row, its cost, and the squared sizes of the rows."""
    shape = optimal_shape(rows, tol=_CERTIFICATE, factors=weights)
    noise = shape.noise.restricted(np.flatnonzero(rows.live))
    return noise, shape.cost, rows.squared_row_norms(noise)


def _shape(rows: Covariates, factors: np.ndarray | None) -> _Found:
    """The same for the mean over the rows, at mean size 1; found once where all factors are 1."""
    if factors is None and rows in _EVEN:
        return _EVEN[rows]
    A = rows.moments(None if factors is None else factors**2) / rows.shape[0]
    scale = np.sqrt(rows.squares[rows.live] / rows.total)
    with one_thread():
        values, vectors = np.linalg.eigh(A / np.outer(scale, scale))
    kept = values > _RANK * values[-1]
    roots, vectors = np.sqrt(values[kept]), vectors[:, kept]
    cost = float(roots.sum())
    root = scale[:, None] * (vectors * np.sqrt(roots * cost))
    noise = Factored(root)
    found = noise, cost**2, rows.squared_row_norms(noise)
    if factors is None:
        _EVEN[rows] = found
    return found


_EVEN: WeakKeyDictionary[Covariates, _Found] = WeakKeyDictionary()
