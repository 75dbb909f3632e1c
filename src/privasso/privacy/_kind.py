"""The base class of all kinds of privacy."""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass, field
from typing import ClassVar, Literal, TypeAlias

import numpy as np
from numpy.typing import ArrayLike

from privasso.model import Model
from privasso.noise import Covariance, NoiseDesign
from privasso.operators import Covariates
from privasso.privacy._guarantee import Guarantee
from privasso.privacy._release import Release
from privasso.privacy._rounded_gaussian import BitSource
from privasso.scales import ScaleLaw

#: Where a noise design finds the scales of the columns: the data, prior scales, or a law.
Scales: TypeAlias = ArrayLike | ScaleLaw | Literal["data"] | None

KNOWN_SEED = "nobody knows the fixed random state that the noise came from"
UNKNOWN_SEED = (
    "nobody can predict the noise, which came from the operating system's cryptographic generator"
)


@dataclass(frozen=True, eq=False)
class Calibration:
    """The noise that a kind of privacy asks for on given covariates; no label is read for it.

    Attributes
    ----------
    covariance : Covariance
        Of the noise on the live columns.
    sigma_sum : float
        Standard deviation of the noise on the label sum; zero without an intercept.
    mu : float or None
        Largest Mahalanobis distance between the releases of two neighbouring data sets.
    """

    covariance: Covariance = field(repr=False)
    sigma_sum: float
    mu: float | None

    @property
    def level(self) -> float:
        """Root of the mean variance over the live columns."""
        n = self.covariance.size
        return float(np.sqrt(self.covariance.trace() / n)) if n else 0.0


@dataclass(frozen=True)
class Terms:
    """What a privacy statement depends on besides the kind of privacy.

    Attributes
    ----------
    fit_intercept : bool
        Whether the label sum is released too.
    seeded : bool
        Whether the noise comes from a fixed random state.
    scales : None, "data", array_like or ScaleLaw
        Where the noise design finds the scales of the columns.
    noise : NoiseDesign or None
        The design at the level that is used.
    model : Model or None
        The model that average-case numbers refer to.
    lam : float or None
        λ, where it is known beforehand.
    """

    fit_intercept: bool
    seeded: bool
    scales: Scales = None
    noise: NoiseDesign | None = None
    model: Model | None = None
    lam: float | None = None

    @property
    def entropy(self) -> str:
        """The assumption about the source of the noise."""
        return KNOWN_SEED if self.seeded else UNKNOWN_SEED


class Privacy(ABC):
    """What is protected and how much; all that depends on the kind of privacy is a method here.

    A new kind is a frozen dataclass in a file of its own that writes the methods below and
    registers the `Claim` of its guarantee.
    """

    #: Whether covariates are public, so that facts about single columns may be shown.
    public_covariates: ClassVar[bool]
    #: Whether the guarantee covers the release itself, so that it may be kept and solved again.
    covers_release: ClassVar[bool]
    #: What is equal when two designs are compared under this privacy.
    compared_at: ClassVar[str]

    @property
    @abstractmethod
    def label_width(self) -> float | None:
        """Distance between the bounds of the labels, if they have any."""

    @property
    def label_deviation(self) -> float | None:
        """A standard deviation to expect of the labels without reading any, if one is known.

        Labels that fill their bounds vary by about a sixth of the width.
        """
        return None if self.label_width is None else self.label_width / 6.0

    @abstractmethod
    def default_noise(self) -> NoiseDesign:
        """Return the design of ``noise="auto"``; the level of a design is set by `calibrate`."""

    @abstractmethod
    def optimal_noise(self, model: Model, lam: float | None, rows: Covariates) -> NoiseDesign:
        """Return the design of ``noise="optimal"``: the best power of v under the model."""

    @abstractmethod
    def calibrate(self, rows: Covariates, shape: Covariance, v: np.ndarray) -> Calibration:
        """Scale noise of this shape over the live columns to the level that is asked for.

        v holds the squared scales that the shape was made from.
        """

    @abstractmethod
    def release(
        self, rows: Covariates, y: np.ndarray, calibration: Calibration, bits: BitSource
    ) -> Release:
        """Run the mechanism: the only method that sees labels and noise."""

    @abstractmethod
    def guarantee(self, terms: Terms) -> Guarantee:
        """State what holds for a fit under these terms."""

    @abstractmethod
    def composition(self, mu: float | None) -> str | None:
        """Say how the loss of several such releases adds up, if there is anything to say."""

    @abstractmethod
    def after_failure(self, kept: str) -> str:
        """Say what happens to the release when a solve fails after the noise was drawn.

        `kept` says where the release is kept and how to use it.
        """

    def check_release_use(self, what: str) -> None:
        """Refuse what needs a release that the guarantee covers."""
        if not self.covers_release:
            raise ValueError(
                f"{what} uses the release itself, which {type(self).__name__} does not cover: "
                "only the coefficients at one λ chosen beforehand may be published; "
                "use LabelDP, or state_evolution to choose λ"
            )
