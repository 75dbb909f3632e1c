"""Limits on the leakage or on the error, for noise on the products Fᵀy."""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from dataclasses import dataclass
from typing import ClassVar, Generic, TypeVar

import numpy as np

from privasso._validation import positive_float, probability
from privasso.design._correlated import correlated_design
from privasso.design._program import ERROR, LEAKAGE, NonlinearProgram
from privasso.design._result import OptimalDesign
from privasso.design._search import DesignRequest, least, least_without_noise
from privasso.model import Model
from privasso.theory import FixedPoint, Leakage

D = TypeVar("D", covariant=True)


@dataclass(frozen=True, eq=False)
class Setting:
    """What the data are expected to be, and what of the design is given.

    - `model`: the model.
    - `lam`, `gamma`: λ and the exponent of the shape; None where they are to be chosen.
    - `family`, `n_features`, `scale_error`, `rng`: as in `optimal_design`.
    """

    model: Model
    lam: float | None
    gamma: float | None
    family: str
    n_features: int | None
    scale_error: float
    rng: np.random.Generator

    @property
    def correlated(self) -> bool:
        """Whether the columns have a covariance."""
        return self.model.covariance is not None

    @property
    def null_error(self) -> float:
        """Error ρE[v] + σ_ξ² of releasing nothing."""
        return self.model.rho * self.model.scales.moment(1.0) + self.model.sigma_xi**2


class Target(ABC, Generic[D]):
    """A question about privacy and error that a design of the class D answers."""

    @abstractmethod
    def design(self, setting: Setting) -> D:
        """Return the best design, or raise `InfeasibleError`."""


class Limit(Target[OptimalDesign]):
    """One quantity is minimised while another stays below a limit."""

    #: Name of the limit in files and on the command line.
    kind: ClassVar[str]
    #: What is minimised, what is limited, and which leakage is meant by either.
    objective: ClassVar[str] = ERROR
    constraint: ClassVar[str] = LEAKAGE
    measure: ClassVar[Leakage] = "onavekl"
    #: What `price` is, with a place for its number.
    price_in_words: ClassVar[str]

    @property
    @abstractmethod
    def target(self) -> float:
        """The largest value that is allowed."""

    @property
    def width(self) -> float:
        """Width of the interval of the labels, the unit of a sensitivity."""
        return 1.0

    @property
    def log(self) -> float:
        """The logarithm that the constraint may not exceed."""
        return math.log(self.target)

    def design(self, setting: Setting) -> OptimalDesign:
        """Return the best noise and λ; for correlated columns as a `CorrelatedDesign`."""
        if setting.correlated:
            if self.measure != "onavekl":
                raise ValueError(
                    "for correlated columns the targets are max_onavekl, max_error, label_dp and "
                    "record_dp"
                )
            return correlated_design(self, setting)  # pyright: ignore[reportReturnType]
        return DesignRequest(self, setting).design()

    def price(self, elasticity: float, fp: FixedPoint) -> float:
        """From d log(value)/d log(limit) to the derivative of the value in the target itself."""
        return elasticity * fp.E / self.target

    @abstractmethod
    def unmet(self, request: DesignRequest, program: NonlinearProgram) -> str:
        """Say that no design meets the limit, and name the nearest one that can be met."""


@dataclass(frozen=True)
class MaxLeakage(Limit):
    """Least error with an on-average KL divergence of the released vector of at most `onavekl`.

    Examples
    --------
    >>> import privasso as pv
    >>> best = pv.optimal_design(pv.Model(alpha=2.0), pv.MaxLeakage(onavekl=1.0))
    >>> round(best.onavekl(), 3)
    1.0
    """

    onavekl: float

    kind: ClassVar[str] = "max_onavekl"
    price_in_words: ClassVar[str] = (
        "dE/dκ = {:.3g}: change of the error per unit of OnAveKL allowed"
    )

    def __post_init__(self) -> None:
        object.__setattr__(self, "onavekl", positive_float("onavekl", self.onavekl))

    @property
    def target(self) -> float:
        return self.onavekl

    def unmet(self, request: DesignRequest, program: NonlinearProgram) -> str:
        return _too_little("an OnAveKL", self.target, request, program)


@dataclass(frozen=True)
class MaxAdvantage(Limit):
    """Least error with an advantage of the best membership attack of at most `advantage`.

    The advantage is averaged over records; see `FixedPoint.attack`.

    Examples
    --------
    >>> import privasso as pv
    >>> best = pv.optimal_design(pv.Model(alpha=2.0), pv.MaxAdvantage(0.25))
    >>> round(best.point.attack().advantage, 3)
    0.25
    """

    advantage: float

    kind: ClassVar[str] = "max_advantage"
    measure: ClassVar[Leakage] = "advantage"
    price_in_words: ClassVar[str] = (
        "dE/da = {:.3g}: change of the error per unit of advantage allowed"
    )

    def __post_init__(self) -> None:
        object.__setattr__(self, "advantage", probability("advantage", self.advantage))

    @property
    def target(self) -> float:
        return self.advantage

    def unmet(self, request: DesignRequest, program: NonlinearProgram) -> str:
        return _too_little("an advantage", self.target, request, program)


@dataclass(frozen=True)
class MaxError(Limit):
    """Least on-average KL divergence with a prediction error E of at most `error`.

    Examples
    --------
    >>> import privasso as pv
    >>> best = pv.optimal_design(pv.Model(alpha=2.0), pv.MaxError(0.02))
    >>> round(best.E, 4)
    0.02
    """

    error: float

    kind: ClassVar[str] = "max_error"
    objective: ClassVar[str] = LEAKAGE
    constraint: ClassVar[str] = ERROR
    price_in_words: ClassVar[str] = (
        "dOnAveKL/dE = {:.3g}: change of the OnAveKL per unit of error allowed"
    )

    def __post_init__(self) -> None:
        object.__setattr__(self, "error", positive_float("error", self.error))

    @property
    def target(self) -> float:
        return self.error

    def design(self, setting: Setting) -> OptimalDesign:
        null = setting.null_error
        if not setting.correlated and setting.lam is None and self.error >= null:
            raise ValueError(
                f"releasing nothing at all has the error {null:.6g}; ask for a max_error below that"
            )
        return super().design(setting)

    def price(self, elasticity: float, fp: FixedPoint) -> float:
        return elasticity * fp.onavekl() / self.target

    def unmet(self, request: DesignRequest, program: NonlinearProgram) -> str:
        value, at = min(least_without_noise(request, program), least(request, program, ERROR))
        return (
            f"an error of {self.target:g} cannot be reached{request.where}: the least is "
            f"{value:.4g}, {at}; ask for more than that"
        )


def _too_little(what: str, target: float, request: DesignRequest, program: NonlinearProgram) -> str:
    value, at = least(request, program, LEAKAGE)
    return (
        f"{what} of {target:g} cannot be reached{request.where}: the least is {value:.4g}, {at}; "
        "ask for that, or leave lam free"
    )
