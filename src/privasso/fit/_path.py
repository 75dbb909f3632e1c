"""Coefficients over several λ."""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np


@dataclass(frozen=True, eq=False)
class CoefficientPath:
    """Coefficients at several λ from one release.

    Attributes
    ----------
    lams : ndarray of shape (K,)
        As asked for, in that order.
    coef : ndarray of shape (N, K)
        Coefficients; NaN where no minimiser exists or was found.
    intercept : ndarray of shape (K,)
        Intercepts.
    status : ndarray of Status, shape (K,)
        How each solve ended.
    """

    lams: np.ndarray
    coef: np.ndarray = field(repr=False)
    intercept: np.ndarray = field(repr=False)
    status: np.ndarray = field(repr=False)
