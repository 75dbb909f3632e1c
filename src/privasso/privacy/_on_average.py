"""Noise of a given level, without a guarantee for any one person."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar

from privasso._validation import nonnegative_float, squarable
from privasso.accounting import Loss
from privasso.noise import NoiseDesign
from privasso.privacy._guarantee import Guarantee
from privasso.privacy._kind import Privacy, Scales, Terms, register_kind
from privasso.scales import ScaleLaw


@register_kind
@dataclass(frozen=True)
class OnAverage(Privacy):
    """Objective perturbation of level σ, which guarantees nothing to any one person.

    The noise vector η has variances σ_η²(v_i) that follow the noise design and average to σ².
    `state_evolution` predicts how much is revealed about an average record under a model. A fit of
    this kind is never marked for release.

    Parameters
    ----------
    sigma : float
        Root of the mean noise variance, in units of Fᵀy. Zero adds no noise.

    Examples
    --------
    >>> from privasso import OnAverage
    >>> OnAverage(sigma=0.1)
    OnAverage(sigma=0.1)
    """

    sigma: float

    formal: ClassVar[bool] = False
    public_covariates: ClassVar[bool] = False
    covers_release: ClassVar[bool] = False
    automatic_lam: ClassVar[bool] = False
    compared_at: ClassVar[str] = "mean variance"

    def __post_init__(self) -> None:
        object.__setattr__(
            self, "sigma", squarable("sigma", nonnegative_float("sigma", self.sigma))
        )

    @property
    def label_width(self) -> None:
        """Unknown: the labels have no bounds here."""
        return

    def guarantee(
        self, terms: Terms, losses: Sequence[Loss] | None = None, released: Sequence[str] = ()
    ) -> Guarantee:
        """State what noise of this level supports: an average-case claim, or none.

        With a model, a λ and a design, the on-average KL divergence of state evolution is added
        where it is finite.

        Examples
        --------
        >>> import privasso as pv
        >>> from privasso.privacy import Terms
        >>> terms = Terms(fit_intercept=False, seeded=False, n_rows=100)
        >>> pv.OnAverage(0.0).guarantee(terms).kind, pv.OnAverage(0.1).guarantee(terms).kind
        ('none', 'average-case')
        """
        what = "the coefficients and the intercept" if terms.fit_intercept else "the coefficients"
        if self.sigma == 0.0:
            return Guarantee(None, released=(what,), seeded=terms.seeded)
        parameters, about_model = self._under_the_model(terms)
        return Guarantee(
            None,
            (("sigma", self.sigma), *parameters),
            assumptions=(
                "only what is listed as released is published",
                _scales_sentence(terms.scales),
                *about_model,
                terms.entropy,
            ),
            released=(what,),
            seeded=terms.seeded,
        )

    def _under_the_model(self, terms: Terms) -> tuple[list[tuple[str, float]], list[str]]:
        """Divergences of state evolution, and what they assume."""
        from privasso.theory import state_evolution

        model = terms.model
        if model is None or terms.lam is None or not isinstance(terms.noise, NoiseDesign):
            return [], []
        point = state_evolution(model, terms.lam, terms.noise.with_sigma(self.sigma))
        if not math.isfinite(point.onavekl()):
            return [], [
                "no on-average KL divergence is reported, because it is not finite under the "
                "given model"
            ]
        numbers = [("onavekl_joint", point.onavekl()), ("onavekl_paper", point.onavekl("paper"))]
        return numbers, [
            "the data follow the given model: independent Gaussian covariates, no intercept, "
            f"alpha = {model.alpha:g}, rho = {model.rho:g}, sigma_xi = {model.sigma_xi:g}, "
            f"scales {model.scales!r}"
        ]

    def composition(self, mu: float | None) -> None:
        """There is no claim whose loss could add up."""
        return

    def after_failure(self, kept: str) -> str:
        """The release is not covered, so it is not kept."""
        return (
            "The noise of this fit has been drawn, and nothing of it is kept or published. Fit "
            "again with a larger λ or a smaller σ."
        )


def _scales_sentence(scales: Scales) -> str:
    if scales is None or isinstance(scales, str):
        return (
            "the size of the noise on each column, which was computed from the sensitive columns "
            "themselves, is not itself sensitive; in the worst case it leaks information about them"
        )
    kind = "the law of the scales" if isinstance(scales, ScaleLaw) else "the scales"
    return f"{kind} given for the noise is public or prior knowledge, not taken from the data"
