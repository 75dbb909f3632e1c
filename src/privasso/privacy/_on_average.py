"""Noise of a given level, without a guarantee for any one person."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import ClassVar, NoReturn

import numpy as np

from privasso._validation import nonnegative_float, squarable
from privasso.accounting import Loss
from privasso.blocks import RowBlocks
from privasso.model import Model
from privasso.noise import Covariance, NoiseDesign, PowerLaw
from privasso.operators import Covariates
from privasso.privacy._guarantee import Guarantee
from privasso.privacy._kind import Calibration, ReleasesProducts, Scales, Terms, register_kind
from privasso.privacy._release import Release
from privasso.queries import Ask, BitSource, Query, rounded_gaussian
from privasso.scales import ScaleLaw

#: Integer noise of this deviation stands for standard normal numbers.
_DEVIATION = 2.0**44


@dataclass(frozen=True, eq=False)
class NoisyProducts(Query[Release]):
    """Products of rows and labels with noise, in floating point: no loss of theirs is bounded.

    Attributes
    ----------
    rows : Covariates
        The covariates.
    calibration : Calibration
        The law of the noise.
    """

    rows: Covariates = field(repr=False)
    calibration: Calibration

    @property
    def sentence(self) -> str:
        """What is released."""
        return "products of covariates and labels, with noise"

    @property
    def neighbours(self) -> None:
        """There are none."""
        return

    @property
    def loss(self) -> None:
        """There is no bound."""
        return

    @property
    def possible(self) -> Release:
        """Products of labels that are zero, without noise."""
        return self._release(
            np.zeros(self.rows.shape[0]), np.zeros(self.calibration.covariance.rank + 1)
        )

    def run(self, rows: RowBlocks, bits: BitSource) -> Release:
        """Add noise to the products and to the label sum."""
        size = self.calibration.covariance.rank + 1
        return self._release(rows.labels, rounded_gaussian(_DEVIATION, size, bits) / _DEVIATION)

    def _release(self, y: np.ndarray, normal: np.ndarray) -> Release:
        F, calibration = self.rows, self.calibration
        covariance = calibration.covariance
        weighted = y if F.weights is None else F.weights * y
        b = F.rmatvec(weighted)
        b[F.live] -= covariance.colour(normal[:-1])
        label_sum = float(np.sum(weighted) - calibration.sigma_sum * normal[-1])
        return Release(
            b=b,
            covariance=covariance.embedded(F.live),
            n_rows=F.shape[0],
            centre=0.0,
            label_sum=label_sum if F.centred else None,
            sigma_sum=calibration.sigma_sum if F.centred else None,
            weight_sum=F.total,
        )

    def log_likelihoods(self, rows: RowBlocks, answers: Sequence[Release]) -> NoReturn:
        """Attacks on such releases have scores of their own."""
        raise NotImplementedError


@register_kind
@dataclass(frozen=True)
class OnAverage(ReleasesProducts):
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

    def default_noise(self, rows: Covariates) -> NoiseDesign:
        """σ² ∝ v, the best or nearly the best power for the on-average KL divergence."""
        return PowerLaw(1.0, 1.0)

    def optimal_noise(self, model: Model, lam: float | None, rows: Covariates) -> NoiseDesign:
        """Return the power of v with the least OnAveKL at this level and λ; no data are used.

        Examples
        --------
        >>> import numpy as np, privasso as pv
        >>> rows = pv.operators.Covariates(np.diag([1.0, 2.0, 3.0]), centre=False)
        >>> model = pv.Model(scales=pv.LogNormal(0.0, 0.5))
        >>> pv.OnAverage(0.05).optimal_noise(model, 0.2, rows).gamma.__round__(2)
        0.96
        """
        from privasso.design import least_leakage_exponent

        if self.sigma == 0.0 or lam is None:
            return self.default_noise(rows)  # without noise every shape is the same
        return PowerLaw(1.0, least_leakage_exponent(model, lam, self.sigma))

    def calibrate(self, rows: Covariates, shape: Covariance, v: np.ndarray) -> Calibration:
        """Scale the noise so that its mean variance is σ².

        The label sum gets the noise of a column of ones whose noise is proportional to its norm,
        σ_0² = σ²·N/mean(v).
        """
        if shape.size == 0 or self.sigma == 0.0:
            return Calibration(shape.scaled(0.0), 0.0, None)
        mean = shape.trace() / shape.size
        sigma_sum = self.sigma * math.sqrt(rows.shape[1] / float(np.mean(v)))
        return Calibration(
            shape.scaled(self.sigma**2 / mean), sigma_sum if rows.centred else 0.0, None
        )

    def program(self, rows: Covariates, calibration: Calibration) -> Callable[[Ask], Release]:
        """Ask for Fᵀy and the label sum with noise; the labels are used as they are."""
        question = NoisyProducts(rows, calibration)
        return lambda ask: ask(question)

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
