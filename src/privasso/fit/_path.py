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

    Examples
    --------
    >>> import numpy as np, privasso as pv
    >>> X = np.random.default_rng(103).random((500, 2))
    >>> privacy = pv.LabelDP(5.0, 1e-6, (0, 1), mechanism="release")
    >>> path = pv.PrivateLasso(1.0, privacy).fit(X, X[:, 0]).path(X, [100.0, 1.0])
    >>> path.coef.shape, path.lams
    ((2, 2), array([100.,   1.]))
    """

    lams: np.ndarray
    coef: np.ndarray = field(repr=False)
    intercept: np.ndarray = field(repr=False)
    status: np.ndarray = field(repr=False)
