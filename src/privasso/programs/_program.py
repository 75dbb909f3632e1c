"""What all programs of a fit have in common, and what fits of records return."""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass, field
from typing import Any, ClassVar

import numpy as np

from privasso._types import Matrix
from privasso.programs._worst_tables import Table
from privasso.queries import Ask


class Program(ABC):
    """What a fit asks about private rows, with all its settings, and what follows from the answers.

    It is a frozen value. Between two questions stand only functions of the answers before.
    """

    #: Whether models at every λ follow from the answers.
    again: ClassVar[bool] = False
    #: Whether the questions hold covariates, so that rows are labels and nothing else.
    labels_alone: ClassVar[bool] = False

    @abstractmethod
    def __call__(self, ask: Ask, lam: float) -> Any:
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


def sandwich_errors(u: np.ndarray, H: np.ndarray, middle: np.ndarray) -> np.ndarray:
    """Root of the diagonal of H⁻¹CH⁻¹ over the support of u; NaN elsewhere, or if not positive.

    Examples
    --------
    >>> sandwich_errors(np.array([1.0, 0.0]), np.diag([2.0, 1.0]), np.eye(2)).tolist()
    [0.5, nan]
    """
    errors = np.full(u.size, np.nan)
    support = np.flatnonzero(u)
    if support.size:
        block = np.ix_(support, support)
        inverse = np.linalg.inv(H[block])
        squares = np.diag(inverse @ middle[block] @ inverse)
        # Where columns are nearly dependent, rounding can leave no digit; then nothing is stated.
        errors[support] = np.sqrt(np.where(squares > 0.0, squares, np.nan))
    return errors
