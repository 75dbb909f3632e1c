"""Products of rows and labels: integer sums with exact noise, or noise of a given level."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import NoReturn

import numpy as np
import scipy.sparse as sp

from privasso._blas import one_thread
from privasso._types import Matrix, SparseMatrix
from privasso.blocks import RowBlocks
from privasso.operators import Covariates
from privasso.privacy import LabelDP
from privasso.programs._clipped_sums import FromMean, Level
from privasso.programs._label_rows import (
    LabelMap,
    LabelRows,
    as_release,
    integer_rows,
    scaled_labels,
)
from privasso.programs._program import Program
from privasso.programs._release import Calibration, Release
from privasso.queries import (
    Ask,
    BitSource,
    Neighbours,
    ObjectiveNoise,
    PerturbedMinimiser,
    Query,
    Summand,
    rounded_gaussian,
)

#: Integer noise of this deviation stands for standard normal numbers.
_DEVIATION = 2.0**44


@dataclass(frozen=True, eq=False)
class NoisyProducts(Query[Release]):
    """Products of rows and labels with noise, in floating point: no loss of theirs is bounded.

    Attributes
    ----------
    rows : Covariates
        The covariates.
    calibration : Calibration
        The law of the noise.
    """

    rows: Covariates = field(repr=False)
    calibration: Calibration

    @property
    def sentence(self) -> str:
        """What is released."""
        return "products of covariates and labels, with noise"

    @property
    def neighbours(self) -> None:
        """There are none."""
        return

    @property
    def loss(self) -> None:
        """There is no bound."""
        return

    @property
    def possible(self) -> Release:
        """Products of labels that are zero, without noise."""
        return self._release(
            np.zeros(self.rows.shape[0]), np.zeros(self.calibration.covariance.rank + 1)
        )

    def run(self, rows: RowBlocks, bits: BitSource) -> Release:
        """Add noise to the products and to the label sum."""
        size = self.calibration.covariance.rank + 1
        return self._release(rows.labels, rounded_gaussian(_DEVIATION, size, bits) / _DEVIATION)

    def _release(self, y: np.ndarray, normal: np.ndarray) -> Release:
        F, calibration = self.rows, self.calibration
        covariance = calibration.covariance
        weighted = y if F.weights is None else F.weights * y
        b = F.rmatvec(weighted)
        b[F.live] -= covariance.colour(normal[:-1])
        label_sum = float(np.sum(weighted) - calibration.sigma_sum * normal[-1])
        return Release(
            b=b,
            covariance=covariance.embedded(F.live),
            n_rows=F.shape[0],
            centre=0.0,
            label_sum=label_sum if F.centred else None,
            sigma_sum=calibration.sigma_sum if F.centred else None,
            weight_sum=F.total,
        )

    def log_likelihoods(self, rows: RowBlocks, answers: Sequence[Release]) -> NoReturn:
        """Attacks on such releases have scores of their own."""
        raise NotImplementedError


#: Labels are integers of so many bits, which are summed in two parts.
_LABEL, _HALF = 26, 13
_EPS = np.finfo(np.float64).eps


@dataclass(frozen=True, eq=False)
class ProductSum(Summand):
    """Σ_μ k_μℓ_μ for integer rows k_μ ≈ 2^a w_μ g_μ with ‖k_μ‖ ≤ 2^a, and integer labels ℓ_μ.

    A label between its bounds is one of 2²⁶ + 1 integers around zero, and a missing one is zero.
    Sums are exact, so that replacing a label changes them by a vector that is no longer than
    2^(a+26), and emptying it by one that is half as long.

    Attributes
    ----------
    rows : LabelRows
        g, no longer than 1 for the rows that the noise was calibrated for.
    y_bounds : (float, float)
        Bounds of the labels.
    bits : int
        a.
    """

    rows: LabelRows
    y_bounds: tuple[float, float]
    bits: int
    unit: int = field(init=False)
    sentence: str = field(init=False)

    most_rows = 1 << 10

    def __post_init__(self) -> None:
        object.__setattr__(self, "unit", self.bits + _LABEL)
        products, ones = "the noisy products of covariates and labels", self.rows.ones
        said = products if ones is None else f"{products}, the noisy label sum"
        object.__setattr__(self, "sentence", said)

    @staticmethod
    def bits_for(mu: float, n_columns: int) -> int:
        """As many as are of use with this much noise, and as can be summed exactly.

        They are so many that n entries which are half a unit off are a small part of a row.
        """
        least = 4 + math.ceil(0.5 * math.log2(max(n_columns, 1)))
        return min(max(29 + math.floor(math.log2(mu)), least), 27)

    def lengths(self, neighbours: Neighbours) -> np.ndarray:
        """As a vector, they change by 2^(a+26) at most, or by half of that from zero."""
        assert neighbours.unit == "label"
        bits = self.bits + _LABEL - (neighbours.relation == "emptied")
        return np.full(self.rows.n_columns, math.ldexp(1.0, bits))

    def sums(self, X: np.ndarray, y: np.ndarray) -> np.ndarray:
        """The sums, the one for the intercept last."""
        labels = np.rint(np.ldexp(scaled_labels(np.asarray(y, np.float64), self.y_bounds), _LABEL))
        if sp.issparse(X) and self.rows.whitening.matrix.ndim == 1:
            found = self._sparse_sums(X, labels)
            if found is not None:
                return found
        rows, weights = self.rows(X), self.rows.weights(X)
        if weights is not None:
            rows *= weights[:, None]
        K = integer_rows(rows, self.bits)
        high = np.floor(np.ldexp(labels, -_HALF))
        parts = np.stack([high, labels - np.ldexp(high, _HALF)], axis=1)
        with one_thread():
            # Products of integers whose sums stay below 2⁵³ are exact in any order.
            found = (K.T @ parts).astype(np.int64)
        return (found[:, 0] << _HALF) + found[:, 1]

    def _sparse_sums(self, X: Matrix, labels: np.ndarray) -> np.ndarray | None:
        """The same for sparse rows without forming them; None if the integers would be too large.

        In a centred row an absent entry is z = rint(−2^a s·mean/σ), so that
        Σ_μ k_μℓ_μ = Σ_stored (k − z)ℓ + z Σ_μ ℓ_μ. So that absent entries are the same in all rows,
        the labels of long rows are shrunk instead of these.
        """
        rows, given = self.rows, self.rows.weights(X)
        K: SparseMatrix = sp.csr_array(X[:, rows.whitening.live])
        m, live = K.shape
        full = np.bincount(K.indices, minlength=live) == m
        scale = math.ldexp(rows.size, self.bits) * rows.whitening.matrix
        mean = rows.whitening.mean[rows.whitening.live]
        absent = np.where(full, 0.0, np.rint(-mean * scale))
        stored = np.rint((K.data - mean[K.indices]) * scale[K.indices])
        total = float(np.sum(absent**2))
        squares = _row_sums(K, stored**2) - _row_sums(K, absent[K.indices] ** 2)
        squares += total + 8.0 * (live + 4) * _EPS * (total + _row_sums(K, stored**2))
        ones = 0.0 if rows.ones is None else np.rint(math.ldexp(rows.ones, self.bits))
        with np.errstate(divide="ignore"):
            shrunk = math.ldexp(1.0 - 1e-12, self.bits) / np.sqrt(squares + ones**2)
        # Labels are rounded towards zero, which their bounds are on both sides of.
        labels = np.trunc(np.minimum(1.0 if given is None else given, shrunk) * labels)
        change = stored - absent[K.indices]
        largest = max(float(np.max(np.abs(x), initial=1.0)) for x in (change, absent, ones))
        if not largest * float(np.max(np.abs(labels), initial=1.0)) * m < 2.0**62:
            return None
        whole = labels.astype(np.int64)
        of_stored = sp.csr_array((change.astype(np.int64), K.indices, K.indptr), shape=K.shape)
        found = of_stored.T @ whole + absent.astype(np.int64) * whole.sum()
        if rows.ones is None:
            return found
        return np.append(found, np.int64(ones) * whole.sum())


@dataclass(frozen=True, eq=False)
class ProductsProgram(Program):
    """One question, whose answer is a release or becomes one.

    Attributes
    ----------
    question : Query
        The question.
    clip : float
        κ of intervals: the fit itself clips nothing.
    release : callable or None
        Makes a release of the answer.
    """

    question: Query
    clip: float = 1.0
    release: Callable[[np.ndarray], Release] | None = field(default=None, repr=False)

    again = True

    @property
    def kappa(self) -> float:
        """Of intervals."""
        return self.clip

    def __call__(self, ask: Ask, lam: float = 0.0) -> Release:
        """Ask it."""
        answer = ask(self.question)
        return answer if self.release is None else self.release(answer)


def _row_sums(K: SparseMatrix, values: np.ndarray) -> np.ndarray:
    """Sum over the stored entries of each row of one value per entry."""
    return sp.csr_array((values, K.indices, K.indptr), shape=K.shape) @ np.ones(K.shape[1])


@dataclass(frozen=True, eq=False)
class ObjectiveProgram(Program):
    """Ask for the minimiser, and for the mean of the labels where that corrects the intercept."""

    rows: Covariates = field(repr=False)
    calibration: Calibration
    noise: ObjectiveNoise
    privacy: LabelDP
    view: LabelMap
    level: Level | None

    again = True

    @property
    def kappa(self) -> float:
        """Of the objective."""
        return self.noise.kappa

    def __call__(self, ask: Ask, lam: float = 0.0) -> Release:
        """The minimiser as products of rows and labels."""
        noise, made = self.noise, self.view.rows
        free = np.zeros(made.n_columns)
        u = ask(PerturbedMinimiser(self.view, noise, 0.0, free))
        white = (made.normal_product(self._moments, u) + noise.ridge * u) / noise.sigma
        off = 0.0
        if self.level is not None and made.ones is not None:
            # Rows count as in the fit, so that one far from all others, which is shrunk, does not
            # decide the mean. No weight is larger than 1, so that no label moves the sum by more.
            weights, total = self.calibration.weights, float(self.rows.shape[0])
            total = total if weights is None else float(np.sum(np.minimum(weights, 1.0)))
            mean = self.calibration.sigma_sum * float(white[-1]) / total / self.privacy.units
            off = self.level.correction(
                ask,
                FromMean(made.ones, mean),
                view=self.view,
                n_rows=total,
            )
        bounds, unit = self.privacy.y_bounds, self.privacy.unit
        return as_release(self.rows, bounds, self.calibration, white, unit, level=off)

    @cached_property
    def _moments(self) -> np.ndarray:
        return self.rows.moments(self.calibration.weights, ones=self.rows.centred)
