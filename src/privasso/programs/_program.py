"""What all programs of a fit have in common, what fits of records return, and tables for audits."""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass, field
from typing import Any, ClassVar, TypeAlias

import numpy as np
from scipy.linalg import hadamard

from privasso._types import Found, Matrix
from privasso.queries import Ask

#: Covariates, labels, and what the first record is.
Table: TypeAlias = tuple[np.ndarray, np.ndarray, str]

#: Fewest rows of a table that is made up for a choice by labels.
_FEWEST = 8


def at_bounds(
    X: np.ndarray, y: np.ndarray, corner: np.ndarray, y_bounds: tuple[float, float]
) -> Table:
    """The data with a record at these bounds and the upper one of the labels."""
    one, labels = X.copy(), y.copy()
    one[0], labels[0] = corner, y_bounds[1]
    return one, labels, "a record made up at the bounds"


def for_choice(
    n_rows: int,
    bounds: np.ndarray,
    origin: np.ndarray,
    y_bounds: tuple[float, float],
    *,
    centred: bool,
) -> list[Table]:
    """A table whose first record decides between columns that are otherwise nearly tied.

    It has the largest entries in all columns and the largest label. Another record has the same
    entries in every second column and the smallest label; all others are in the middle. With both,
    the associations of these columns cancel and those of the rest have the size of one record;
    without the first it is the other way round. So it moves the difference of two associations by
    twice the sensitivity, in every choice of every round, and it pulls each fit with full force.
    """
    if n_rows < 2:
        return []
    low, high = y_bounds
    middle = np.clip(origin, bounds[:, 0], bounds[:, 1])
    upper = bounds[:, 1] - origin >= origin - bounds[:, 0]
    far = np.where(upper, bounds[:, 1], bounds[:, 0])
    centre = 0.5 * low + 0.5 * high if centred else np.clip(0.0, low, high)
    rows, labels = np.tile(middle, (n_rows, 1)), np.full(n_rows, centre)
    rows[0], labels[0] = far, high
    rows[1, ::2], labels[1] = far[::2], low
    return [(rows, labels, "a record made up to decide which columns are chosen")]


def for_label_choice(n_rows: int, n_columns: int, y_bounds: tuple[float, float]) -> list[Table]:
    """Covariates and labels; the first label decides which columns are chosen.

    Rows come in twos: the same signs with labels at opposite bounds, which cancel wherever the
    centre of the labels is. In four rows they do not: two that are positive in all columns, of
    which one has the label in question, and two that are positive in every second column. With the
    upper label the associations of these columns are 4 and of the others 0, with the lower one all
    are 2, so that differences move by twice the sensitivity. Columns are orthogonal, if the table
    has enough rows, so that this does not change when some were chosen.
    """
    if n_rows < _FEWEST:
        return []
    low, high = y_bounds
    half = 1 << (n_rows // 2).bit_length() - 1
    if half > n_columns:
        # Row 0 is positive, row 1 has alternating signs; column 0, which is positive, is left out.
        signs = hadamard(half).astype(np.float64)[:, -n_columns:]
    else:
        signs = np.random.default_rng(0).choice([-1.0, 1.0], (half, n_columns))
        signs[0], signs[1] = 1.0, np.where(np.arange(n_columns) % 2 == 0, 1.0, -1.0)
    X, y = np.zeros((n_rows, n_columns)), np.full(n_rows, 0.5 * low + 0.5 * high)
    X[:half], X[half : 2 * half] = signs, signs
    y[:half], y[half : 2 * half] = high, low
    y[[half, half + 1]] = high
    return [(X, y, "a label made up to decide which columns are chosen")]


class Program(ABC):
    """What a fit asks about private rows, with all its settings, and what follows from the answers.

    It is a frozen value. Between two questions stand only functions of the answers before.
    """

    #: Whether models at every λ follow from the answers.
    again: ClassVar[bool] = False
    #: Whether the questions hold covariates, so that rows are labels and nothing else.
    labels_alone: ClassVar[bool] = False

    @abstractmethod
    def __call__(self, ask: Ask, lam: float) -> Found:
        """Ask, and return what a model at λ is made of, or models at every λ."""

    @property
    @abstractmethod
    def kappa(self) -> float:
        """Where residuals are clipped, as a part of the range of the labels."""

    @property
    def choosing(self) -> Any:
        """The settings of a choice of columns, if there is one."""
        return None

    def worst(self, X: np.ndarray, y: np.ndarray) -> list[Table]:
        """Tables whose first record shows as much as it can; see `Plan.worst`."""
        return []

    def on(self, X: Matrix) -> Program:
        """The same program beside other public covariates, where it holds these."""
        return self

    def facts(self, n_rows: int) -> tuple[str, dict[str, float], str] | None:
        """The name of the mechanism, its numbers, and what each column is divided by."""
        return None


@dataclass(frozen=True, eq=False)
class RecordFit:
    """Coefficients at one λ in the units of the data, with their standard errors.

    Attributes
    ----------
    coef : ndarray of shape (N,)
        Coefficients.
    intercept : float
        Intercept.
    coef_se : ndarray of shape (N,) or None
        Standard errors, of sampling and of privacy noise, given which coefficients are not zero;
        NaN for the others. None where nothing was released that they could be computed from.
    screened : ndarray of int or None
        Columns that were chosen, if some were; all other coefficients are zero.
    """

    coef: np.ndarray = field(repr=False)
    intercept: float
    coef_se: np.ndarray | None = field(default=None, repr=False)
    screened: np.ndarray | None = field(default=None, repr=False)

    def solve(self, lam: float) -> RecordFit:
        """The fit itself, which is at one λ."""
        return self
