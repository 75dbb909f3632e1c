"""A fit of records in the units of the data."""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np


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
