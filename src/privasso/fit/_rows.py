"""Covariates and public weights of the rows, as a fit uses them."""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike

from privasso._covariates import covariates
from privasso._types import Matrix
from privasso._validation import X_FINITE, real_array
from privasso.blocks import RowBlocks
from privasso.noise import Diagonal
from privasso.operators import BlockCovariates, Covariates
from privasso.planning import release_mechanism
from privasso.privacy import Privacy
from privasso.programs import Release

#: Tables with more entries are read in blocks, from which sums are made: half a gigabyte.
LARGEST = 1 << 26


def prepared_rows(
    X: Matrix, fit_intercept: bool, sample_weight: ArrayLike | None = None
) -> Covariates:
    """Return the covariates, centred for an intercept, with weights that average to 1.

    Only ratios of the weights matter, so that λ has the same meaning with and without them. The
    shape of a table decides whether it is held in memory, and not where it is stored.

    Examples
    --------
    >>> prepared_rows(np.eye(2), False, [1.0, 3.0]).weights
    array([0.5, 1.5])
    """
    if isinstance(X, Covariates):
        return X
    if not isinstance(X, RowBlocks):
        X = covariates(X, finite=False)  # found by the norms of the columns
    elif sample_weight is not None:
        raise ValueError("sample_weight is not supported for blocks of rows; leave it out")
    if sample_weight is None and held_in_blocks(X):
        return BlockCovariates(X, centre=fit_intercept)
    if isinstance(X, RowBlocks):
        X, _ = X.gathered()
        if not np.isfinite(X).all():
            raise ValueError(X_FINITE)
    if sample_weight is None:
        return Covariates(X, centre=fit_intercept)
    weights = real_array("sample_weight", sample_weight, ndim=1)
    if np.min(weights) < 0.0 or not np.max(weights) > 0.0:
        raise ValueError("sample_weight must be zero or more, and not all zero")
    return Covariates(X, centre=fit_intercept, weights=weights / np.mean(weights))


def held_in_blocks(X: Matrix) -> bool:
    """Whether public covariates are read in blocks, and never held as one array."""
    table = isinstance(X, RowBlocks)
    if not table and not (isinstance(X, np.ndarray) and X.ndim == 2):
        return False
    m, n = X.shape
    return (table and X.streamed) or (m * n > LARGEST and n <= BlockCovariates.MOST_COLUMNS)


def released_weights(release: Release, rows: Covariates, privacy: Privacy) -> np.ndarray | None:
    """Weights of the rows in a release, from its noise alone; None where all are 1.

    The mechanism raises the noise it was given by some roundings. Found from the noise that the
    release states, the weights are the same, digit by digit, whenever the release is used.
    """
    live = np.flatnonzero(rows.live)
    covariance = release.covariance.restricted(live) if live.size else Diagonal([])
    return release_mechanism(privacy).weights(rows, covariance, release.sigma_sum or 0.0)
