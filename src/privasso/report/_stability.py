"""How far a fit is from the λ below which no minimiser exists."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from privasso.fit import Denoised, LogisticLasso, Postprocess
from privasso.problem import LP_LIMIT, ProgrammeError, critical_lambda

_MOST_COLUMNS = 4096
#: Smallest pivot of the correlation matrix that counts as full rank, well above rounding.
_FULL_RANK = 1e-6


@dataclass(frozen=True)
class Stability:
    """The critical λ of a release.

    `critical_lam`: smallest λ with a minimiser; zero at full column rank; None if it is not known.
    `kind`: ``"denoised"``, ``"full rank"``, ``"exact"`` (the linear programme on the covariates and
    the release) or ``"unknown"``.
    """

    critical_lam: float | None
    kind: str

    def sentence(self, lam: float) -> str:
        """Say what it means at λ."""
        if self.kind == "full rank":
            return (
                "The columns are linearly independent, so that the objective has exactly one "
                "minimiser at every λ, however strong the noise."
            )
        if self.kind == "denoised":
            return (
                "The LASSO was fitted to the predictions of the posterior mean given the release, "
                "and not to the noisy release itself. So a minimiser exists at every λ, however "
                "strong the noise."
            )
        if self.critical_lam is None:
            return (
                "The problem is too large for the linear programme that gives the critical λ; "
                "see the prediction below instead."
            )
        if self.critical_lam <= 0.0:
            return "The critical λ of this release is zero: a minimiser exists at every λ."
        return (
            f"Below λ = {self.critical_lam:.4g} the noise exceeds the penalty in a direction that "
            "changes no prediction, and no minimiser exists. The λ of this fit is "
            f"{lam / self.critical_lam:.3g} times that value."
        )


def stability_of(post: Postprocess | Denoised | LogisticLasso) -> Stability:
    """Find the critical λ from the covariates and the release."""
    if not isinstance(post, Postprocess):
        return Stability(0.0, "denoised")
    if post.op is None or post.full_rank or _independent(post):
        return Stability(0.0, "full rank")
    m, n = post.op.shape
    if m * n * n > LP_LIMIT:
        return Stability(None, "unknown")
    try:
        return Stability(critical_lambda(post.op, post.b), "exact")
    except ProgrammeError:
        return Stability(None, "unknown")


def _independent(post: Postprocess) -> bool:
    assert post.op is not None
    m, n = post.op.shape
    if m < n or n > _MOST_COLUMNS:
        return False
    norms = np.sqrt(post.squares)
    try:
        pivots = np.diag(np.linalg.cholesky(post.op.gram() / np.outer(norms, norms)))
    except np.linalg.LinAlgError:
        return False
    return bool(np.min(pivots) > _FULL_RANK)
