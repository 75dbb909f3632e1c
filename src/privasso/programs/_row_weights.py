"""Weights that keep every row below the sensitivity that the noise was calibrated for."""

from __future__ import annotations

import numpy as np

from privasso.noise import Covariance
from privasso.operators import Covariates

#: Rows that exceed the bound by less than this part are rounding.
_ROUNDING = 1e-9


def row_weights(
    rows: Covariates, covariance: Covariance, sigma_sum: float, bound: float, *, power: int = 1
) -> np.ndarray | None:
    """w_μ = min(w⁰_μ, (bound/q_μ)^power), where q_μ = √(f_μᵀΣ⁻¹f_μ + 1/σ₀²) is the size of a row.

    The rows enter a release as w_μ(f_μ, 1)(y_μ − c), so that no label can move it by more than
    its range times `bound`. A perturbed objective takes rows and labels times √w_μ, and the power
    2 keeps the size √w_μ q_μ of such a row within the bound. Rows and noise are public, and so are
    the weights.

    Parameters
    ----------
    rows : Covariates
        The covariates; w⁰ are their weights, or ones.
    covariance : Covariance
        Σ over the live columns.
    sigma_sum : float
        σ₀; not used without an intercept.
    bound : float
        Largest size.
    power : {1, 2}
        See above.

    Returns
    -------
    ndarray of shape (M,) or None
        None where all weights are 1.

    Examples
    --------
    >>> from privasso.noise import Diagonal
    >>> rows = Covariates(np.array([[1.0], [4.0]]), centre=False)
    >>> row_weights(rows, Diagonal([1.0]), 0.0, bound=2.0).round(9)
    array([1. , 0.5])
    """
    squares = rows.squared_row_norms(covariance)
    if rows.centred:
        squares = squares + sigma_sum**-2
    with np.errstate(divide="ignore"):
        limit = (bound / np.sqrt(squares)) ** power
    given = rows.weights
    if given is None:
        return None if np.min(limit) >= 1.0 - _ROUNDING else np.minimum(1.0, limit)
    return given if np.all(given <= limit * (1.0 + _ROUNDING)) else np.minimum(given, limit)
