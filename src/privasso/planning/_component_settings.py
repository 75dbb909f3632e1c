"""How many components of public covariates to fit, and how many columns to choose beside them.

Labels of real tables follow the leading principal components of the covariates more often than a
few columns drawn at random would, but a few columns of their own often matter, too. The prior is
about half of either. One part of what the columns explain lies along the components, in proportion
to the squares of their variances; it is a half for strongly correlated columns, and nothing for
independent ones. The other part is due to 1, 3, 10, 30 or 100 columns drawn at random. Some of this
lies along the leading components, in proportion to their variances, and the rest is found only if
the columns are chosen.
"""

from __future__ import annotations

import itertools
from dataclasses import dataclass, field, replace

import numpy as np

from privasso._blas import one_thread
from privasso._tuned import (
    BESIDE_COUNTS,
    BESIDE_SHARES,
    CHOICE_CLIP,
    COMPONENT_GAIN,
    COMPONENT_ROWS,
    COMPONENTS,
    EXPLAINED,
    LABEL_DEVIATIONS,
    LABEL_RIDGE,
    MOST_LEADING,
    TRUE_COLUMNS,
)
from privasso._types import Matrix
from privasso.planning._clipped_rows import clipped_law
from privasso.planning._objective_noise import label_sensitivity
from privasso.planning._screening_forecast import ScreeningPrior, choice_chances
from privasso.planning._screening_settings import ScreeningSettings
from privasso.planning._settings import label_kappa
from privasso.privacy import LabelDP
from privasso.programs import column_blocks
from privasso.queries import LABEL_REPLACED, Neighbours

#: A column with less than this part of its mean as deviation holds nothing but rounding.
_CONSTANT = 1e-6
#: Largest entry of a column in units of its scale.
_LARGEST = 4.0
#: Directions beyond those that are wanted, and products with the covariates, that make the
#: leading ones accurate.
_BEYOND, _TIMES = 20, 4


@dataclass(frozen=True, eq=False)
class PrincipalComponents:
    """Scores and directions of standardised columns Z, the largest first.

    - `mean`, `scale` (N,): of the columns; the scale of a constant column is infinite.
    - `directions` (N, D): weights of the standardised columns in each score.
    - `scores` (M, D): Z times the directions: mean zero, mean square one, uncorrelated.
    - `shares` (D,): part of the variance of all standardised columns that lies along each.
    - `rank`: largest number of components that there can be.
    """

    mean: np.ndarray = field(repr=False)
    scale: np.ndarray = field(repr=False)
    directions: np.ndarray = field(repr=False)
    scores: np.ndarray = field(repr=False)
    shares: np.ndarray = field(repr=False)
    rank: int

    @classmethod
    def of(cls, X: Matrix, most: int) -> PrincipalComponents:
        """Find at most so many components, by subspace iteration from a fixed start.

        They need not be accurate to many digits: what is done with them depends on the covariates
        alone, whatever they are.
        """
        Z, mean, scale = standardised(X)
        m, n = Z.shape
        live = int(np.isfinite(scale).sum())
        rank = min(m - 1, live)
        wanted = min(most, rank)
        with one_thread():
            width = min(wanted + _BEYOND, m, n)
            basis = np.random.default_rng(0).standard_normal((n, width)).astype(np.float32)
            for _ in range(_TIMES):
                basis = np.linalg.qr(Z.T @ np.linalg.qr(Z @ basis)[0])[0]
            left, sizes, right = np.linalg.svd((Z @ basis).astype(np.float64), full_matrices=False)
        kept = min(wanted, int(np.sum(sizes > 1e-4 * sizes[0]))) if live else 0
        directions = basis.astype(np.float64) @ right[:kept].T * (np.sqrt(m) / sizes[:kept])
        shares = sizes[:kept] ** 2 / max(float(np.sum(Z**2, dtype=np.float64)), 1e-300)
        return cls(mean, scale, directions, np.sqrt(m) * left[:, :kept], shares, rank)

    @property
    def count(self) -> int:
        """Number of components."""
        return self.shares.size

    def first(self, count: int) -> PrincipalComponents:
        """The first so many of them."""
        return replace(
            self,
            directions=self.directions[:, :count],
            scores=self.scores[:, :count],
            shares=self.shares[:count],
        )

    def coefficients(self, weights: np.ndarray) -> np.ndarray:
        """Coefficients of the columns that predict the same as weights of the scores.

        They predict what differs from the mean.
        """
        return (self.directions @ weights) / self.scale


def standardised(X: Matrix) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Centred columns in single precision, their means, and the scales they are divided by.

    The scale is the deviation, or a quarter of the largest entry if that is more, so that levels
    and words that are rare do not count as much as others. A constant column becomes zeros, and
    its scale infinite.
    """
    m, n = X.shape
    Z, mean, scale = np.empty((m, n), dtype=np.float32), np.empty(n), np.empty(n)
    for span, block in column_blocks(X):
        middle = block.mean(axis=0)
        block -= middle
        size = np.sqrt(np.mean(block**2, axis=0))
        size = np.maximum(size, np.max(np.abs(block), axis=0) / _LARGEST)
        size = np.where(size > _CONSTANT * np.abs(middle), size, np.inf)
        Z[:, span], mean[span], scale[span] = block / size, middle, size
    return Z, mean, scale


_SIZES = np.array(LABEL_DEVIATIONS)


@dataclass(frozen=True)
class _Fit:
    """A fit of uncorrelated columns of variance one, the longer half of whose rows is shrunk.

    Attributes
    ----------
    n_rows : int
        M.
    length : float
        L, the squared length to which rows are shrunk.
    weight : float
        Their mean weight after that.
    budget : LabelDP
        Of the fit, for labels of range 1.
    """

    n_rows: int
    length: float
    weight: float
    budget: LabelDP

    @classmethod
    def of(cls, squares: np.ndarray, budget: LabelDP) -> _Fit:
        """Of rows with these squared lengths."""
        length = float(np.median(squares))
        weight = float(np.mean(np.minimum(1.0, length / squares)))
        return cls(squares.size, length, weight, budget)

    def lost(self, parts: np.ndarray, missed: np.ndarray) -> np.ndarray:
        """Part of the explainable variance that is lost, for each of several tables.

        A table has a row of `parts`, which its columns explain, and `missed`, which none does. All
        deviations of labels come in turn; see `clipped_settings` for the formulas.
        """
        epsilon = self.budget.epsilon
        t, n = LABEL_RIDGE * epsilon, parts.shape[1]
        c = label_sensitivity(self.budget, t)
        kappa = label_kappa(epsilon, self.n_rows, n, self.budget.pair)
        noise, ridge = (2.0 * kappa / c) ** 2, 1.0 / t
        a = self.n_rows * self.weight / self.length
        total = np.resize(_SIZES, missed.size) ** 2
        prior = total[:, None] * EXPLAINED * parts * self.length
        whole = prior.sum(axis=1)
        residual = total * (1.0 - EXPLAINED * (1.0 - missed)) * self.weight
        one, mean = np.array([a]), whole[:, None] / n
        q, square = clipped_law(kappa, one, mean, residual, noise, ridge, self.n_rows / n)
        told = q**2 * a**2 / (square * a + noise)
        left = np.sum(prior / (1.0 + prior * told[:, None]), axis=1) * a
        return np.minimum(left / (self.n_rows * self.weight * total * EXPLAINED) + missed, 1.0)


class _Table:
    """Public covariates, as far as predictions need them."""

    def __init__(self, components: PrincipalComponents, n_columns: int) -> None:
        self.n_rows, self.n_columns = len(components.scores), n_columns
        self.squares = np.zeros((self.n_rows, components.count + 1))
        np.cumsum(components.scores**2, axis=1, out=self.squares[:, 1:])
        even, rest = components.shares, components.rank - components.count
        # What is not known of the smallest components hardly matters: they count as equal.
        small = max(1.0 - even.sum(), 0.0) / max(rest, 1)
        square = float(np.sum(even**2)) + rest * small**2
        self.even, self.rank = even, components.rank
        # Σ of the squared shares of independent columns is 1/M + 1/N.
        independent = 1.0 / self.n_rows + 1.0 / n_columns
        leading = MOST_LEADING * max(1.0 - independent / square, 0.0)
        self.leading, self.along = leading, leading * even**2 / square + (1.0 - leading) * even

    def explained(self, settings: ScreeningSettings, least: float = -np.inf) -> float:
        """Part of what can be explained that the fit is expected to find.

        If it could not be more than `least` even if all columns that matter were chosen, the part
        in this case is returned, which takes far less time.
        """
        d, k = settings.components, settings.count
        squares = self.squares[:, d] + k + 1.0
        budget = _budget(settings.epsilon_left, settings.delta, settings.neighbours)
        fit = _Fit.of(squares, budget)
        along = self.along[:d]
        rest = (1.0 - self.leading) * max(1.0 - float(self.even[:d].sum()), 0.0)
        beyond = max(1.0 - float(along.sum()) - rest, 0.0)

        def found(chances: np.ndarray) -> float:
            parts = np.zeros((len(TRUE_COLUMNS), _SIZES.size, d + k))
            parts[..., :d] = along
            for part, n_true, chance in zip(parts, TRUE_COLUMNS, chances, strict=True):
                some = min(n_true, k)
                part[:, d : d + some] = (rest * chance / some)[:, None]
            missed = beyond + rest * (1.0 - chances)
            return 1.0 - float(np.mean(fit.lost(parts.reshape(missed.size, -1), missed.ravel())))

        # No more than k columns can be chosen.
        most = np.array([[min(1.0, k / n_true)] * _SIZES.size for n_true in TRUE_COLUMNS])
        best = found(most)
        if best <= least:
            return best
        return found(
            np.array([[self._chance(settings, s, rest, x) for x in _SIZES] for s in TRUE_COLUMNS])
        )

    def _chance(
        self, settings: ScreeningSettings, n_true: int, rest: float, deviation: float
    ) -> float:
        """Chance that a column with a coefficient is chosen for what components leave of it."""
        part = max(EXPLAINED * rest, 1e-9)
        prior = ScreeningPrior(min(n_true, self.n_columns - 1), part, deviation, 1.0)
        return float(
            choice_chances(
                prior,
                self.n_rows,
                self.n_columns,
                settings.count,
                clip=CHOICE_CLIP,
                epsilon_each=settings.choices.epsilon_each,
                span=settings.span,
            )[1]
        )

    def directly(self, budget: LabelDP) -> float:
        """The same for a fit of all columns, whose rows have about the same length."""
        fit = _Fit.of(np.full(self.n_rows, self.rank + 1.0), budget)
        rest = self.rank - self.along.size
        small = np.full(rest, max(1.0 - self.along.sum(), 0.0) / max(rest, 1))
        parts = np.tile(np.append(self.along, small), (_SIZES.size, 1))
        return 1.0 - float(np.mean(fit.lost(parts, np.zeros(_SIZES.size))))


def _budget(epsilon: float, delta: float, neighbours: Neighbours) -> LabelDP:
    """For labels of range 1."""
    return LabelDP(epsilon, delta, (0.0, 1.0), neighbours=neighbours.relation)


def component_screening(
    epsilon: float,
    delta: float,
    components: PrincipalComponents,
    n_columns: int,
    *,
    centred: bool = True,
    neighbours: Neighbours = LABEL_REPLACED,
) -> ScreeningSettings | None:
    """Return the settings that are expected to explain most, or None where a fit of all columns is.

    Parameters
    ----------
    epsilon, delta : float
        The budget.
    components : PrincipalComponents
        Of the public covariates.
    n_columns : int
        Number of columns.
    centred : bool
        Whether the fit has an intercept.

    Examples
    --------
    Two factors explain most of 400 columns, and a few components are enough:

    >>> rng = np.random.default_rng(0)
    >>> X = rng.standard_normal((300, 2)) @ rng.standard_normal((2, 400))
    >>> X += 0.5 * rng.standard_normal((300, 400))
    >>> found = component_screening(1.0, 1e-6, PrincipalComponents.of(X, 100), 400)
    >>> found.components, found.count
    (3, 1)
    """
    if not components.count:
        return None
    table = _Table(components, n_columns)
    budget = _budget(epsilon, delta, neighbours)
    best, most = None, table.directly(budget) + COMPONENT_GAIN
    for share, count, d in itertools.product(BESIDE_SHARES, BESIDE_COUNTS, COMPONENTS):
        if d > min(components.count, COMPONENT_ROWS * table.n_rows) or count >= n_columns:
            continue
        one = ScreeningSettings(count, share, epsilon, delta, centred, neighbours, components=d)
        if one.epsilon_left == 0.0:
            continue
        found = table.explained(one, most)
        if found > most:
            best, most = one, found
    return best
