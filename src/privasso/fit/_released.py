"""A fit after the labels were read: the release, its covariates, and the models from it."""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property

from numpy.typing import ArrayLike

from privasso._validation import real_array
from privasso.encoding import Encoding
from privasso.fit._choose_lambda import choose_lambda
from privasso.fit._kept import KeptRelease
from privasso.fit._model import ReleasedModel
from privasso.fit._options import fixed_lambda
from privasso.fit._postprocess import CoefficientPath, Postprocess
from privasso.noise import NoiseDesign
from privasso.operators import Covariates
from privasso.privacy import Guarantee, Privacy, Release
from privasso.solvers import SolveError


class AfterReleaseError(RuntimeError):
    """A step after the release failed; the message says what became of the release."""


@dataclass(frozen=True, eq=False)
class Released:
    """The release together with the covariates; every λ is solved from these alone.

    `Plan.release` and `KeptRelease.open` make it.
    """

    release: Release
    rows: Covariates
    privacy: Privacy
    guarantee: Guarantee
    noise: NoiseDesign | None
    feature_names: tuple[str, ...] | None
    target: str | None
    software: str
    lam: float | str | None = None
    method: str = "auto"
    tol: float = 1e-8
    encoding: Encoding | None = None

    @cached_property
    def post(self) -> Postprocess:
        """The solving half of the fit."""
        return Postprocess(self.release, self.rows, method=self.method, tol=self.tol)

    @cached_property
    def kept(self) -> KeptRelease | None:
        """The release in the form to keep, or None if the guarantee does not cover it."""
        made = self.release
        if isinstance(made, KeptRelease) or not self.privacy.covers_release:
            return made if isinstance(made, KeptRelease) else None
        return KeptRelease(
            **vars(made),
            column_squares=self.rows.squares,
            guarantee=self.guarantee,
            noise=self.noise,
            feature_names=self.feature_names,
            target=self.target,
            software=self.software,
            encoding=self.encoding,
        )

    def solve(self, lam: float | str | None = None) -> ReleasedModel:
        """Return the model at λ, the one of the fit if none is given.

        Parameters
        ----------
        lam : float, "auto" or None
            λ; ``"auto"`` chooses it from the release.

        Raises
        ------
        SolveError
            No minimiser exists, or none was found.
        """
        wanted = self.lam if lam is None else lam
        if wanted is None:
            raise ValueError("lam is missing: give λ as a number or 'auto'")
        chosen, unit = fixed_lambda(wanted, self.privacy), self.release.unit
        if chosen is None:
            deviation = (self.privacy.label_deviation or 0.0) / unit
            chosen = unit * choose_lambda(self.post, deviation**2)
        coef, intercept = self.post.solve(chosen / unit)
        return ReleasedModel(
            coef=unit * coef,
            intercept=unit * intercept,
            lam=chosen,
            guarantee=self.guarantee,
            noise=self.noise,
            feature_names=self.feature_names,
            software=self.software,
            encoding=self.encoding,
        )

    def path(self, lams: ArrayLike) -> CoefficientPath:
        """Coefficients at each λ; the guarantee must cover the release."""
        self.privacy.check_release_use("a path over λ")
        unit = self.release.unit
        found = self.post.path(real_array("lams", lams, ndim=1) / unit)
        return CoefficientPath(
            unit * found.lams, unit * found.coef, unit * found.intercept, found.status
        )

    def failure(self, error: Exception, kept: str) -> Exception:
        """Return the error to raise when a step after the release fails.

        Its message says what became of the budget and the release, then what happened; `kept`
        says where the release is kept and how to go on from it.
        """
        happened = str(error).rstrip(".")
        message = f"{self.privacy.after_failure(kept)} What happened: {happened}."
        if isinstance(error, SolveError):
            return type(error)(replace(error.solution, message=message))
        return AfterReleaseError(message)
