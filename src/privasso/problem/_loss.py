"""Losses of one row with bounded slope and bounded curvature."""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from dataclasses import Field, dataclass, replace
from typing import ClassVar, Self, TypeVar

import numpy as np

from privasso.accounting import Slope
from privasso.operators import Enclosed, two_sum

_UNIT = 2.0**-53
#: Errors of NumPy's exp and of the few operations after it, in units of the last place, rounded up.
_EXP_ERROR = 16 * _UNIT


#: Losses by the names that the command line and files know them by.
LOSSES: dict[str, type[Loss]] = {}
_L = TypeVar("_L", bound="type[Loss]")


def register_loss(name: str):
    """Make a loss known by a name, which its own number may follow, as in ``quantile:0.9``."""

    def register(kind: _L) -> _L:
        LOSSES[name] = kind
        return kind

    return register


def loss_from_name(text: str) -> Loss:
    """The loss of a name.

    >>> loss_from_name("huber:0.2")
    Huber(kappa=0.2)
    """
    name, _, number = text.partition(":")
    try:
        return LOSSES[name](*([float(number)] if number else []))
    except (KeyError, TypeError, ValueError):
        known = ", ".join(sorted(LOSSES))
        raise ValueError(
            f"a loss is one of {known}, with a number where it has one, as in quantile:0.9, not "
            f"{text!r}"
        ) from None


class Loss(ABC):
    """ℓ(y, u), the loss of a row with label y and prediction u = fᵀx, convex in u.

    All methods work entry by entry. The *pull* ψ = −∂ℓ/∂u is what the row adds to Fᵀψ: for the
    quadratic loss it is the residual y − u. It changes by at most `curvature_bound` per unit of u.
    To add a loss, derive from this class, or from `Clipped`.

    Attributes
    ----------
    kappa : float
        Where residuals are clipped; 1 for a loss of log odds.
    curvature_bound : float
        Largest ∂²ℓ/∂u².
    slope : {"huber", "logistic"}
        How it is accounted for: pulls of one row have both signs, or one.
    about : str
        What predictions estimate, in words.
    about_mean : bool
        Whether that is the mean of the labels.
    """

    kappa: float
    curvature_bound: ClassVar[float]
    slope: ClassVar[Slope]
    about_mean: ClassVar[bool] = False

    @property
    @abstractmethod
    def about(self) -> str: ...

    @property
    @abstractmethod
    def largest_pull(self) -> float:
        """Largest abs(ψ)."""

    @property
    @abstractmethod
    def label_change(self) -> float:
        """Largest difference of the ψ of two labels, at the same u."""

    def mean(self, u: np.ndarray) -> np.ndarray:
        """What is predicted of labels, from u = fᵀx."""
        return u

    def score(
        self, y: np.ndarray, predicted: np.ndarray, weights: np.ndarray | None = None
    ) -> float:
        """How well labels are predicted, at most 1: R²."""
        from sklearn.metrics import r2_score

        return float(r2_score(y, predicted, sample_weight=weights))

    @abstractmethod
    def labels(self, y: np.ndarray) -> np.ndarray:
        """Return the labels in the form that the other methods take, or refuse them."""

    @abstractmethod
    def value(self, y: np.ndarray, u: np.ndarray) -> np.ndarray:
        """ℓ(y, u)."""

    @abstractmethod
    def pull(self, y: np.ndarray, u: np.ndarray) -> np.ndarray:
        """ψ = −∂ℓ/∂u."""

    @abstractmethod
    def curvature(self, y: np.ndarray, u: np.ndarray) -> np.ndarray:
        """∂²ℓ/∂u², where it exists; at a kink of the slope, one of its two values."""

    @abstractmethod
    def least_curvature(self, y: np.ndarray, u: np.ndarray, margin: np.ndarray) -> np.ndarray:
        """Lower bound of the curvature for all predictions within `margin` of u."""

    @abstractmethod
    def majorant(self, y: np.ndarray, u: np.ndarray) -> np.ndarray:
        """Curvature of the flattest parabola that touches ℓ at u and is nowhere below it."""

    @abstractmethod
    def pull_enclosed(self, y: np.ndarray, u: Enclosed) -> Enclosed:
        """ψ for every u in an enclosure."""


class Clipped(Loss):
    """A residual r = y − u that is clipped at ±κ, plus a constant: ψ = clip(r, −κ, κ) + offset.

    Attributes
    ----------
    kappa : float
        κ; infinity clips nothing. In a private fit it is a part of the range of the labels, and
        infinity leaves it to the fit.
    """

    __dataclass_fields__: ClassVar[dict[str, Field]]
    kappa: float
    curvature_bound = 1.0
    slope = "huber"

    def __post_init__(self) -> None:
        if not self.kappa > 0:
            raise ValueError(f"kappa must be positive (infinity is allowed), not {self.kappa!r}")

    @property
    def offset(self) -> float:
        """What is added to the clipped residual, a multiple of 2⁻⁵⁶ of the power of two above κ."""
        return 0.0

    def clipped(self, kappa: float) -> Self:
        """The loss with this κ, unless it has one."""
        return self if self.kappa < math.inf else replace(self, kappa=kappa)

    def suited(self, usual: float) -> Self:
        """The loss with the κ that suits it where a fit of means would have the usual one."""
        return self.clipped(usual)

    @property
    def largest_pull(self) -> float:
        return self.kappa + abs(self.offset)

    @property
    def label_change(self) -> float:
        return 2.0 * self.kappa

    def labels(self, y: np.ndarray) -> np.ndarray:
        return y

    def value(self, y: np.ndarray, u: np.ndarray) -> np.ndarray:
        r = y - u
        psi = np.clip(r, -self.kappa, self.kappa)
        found = psi * (r - 0.5 * psi)
        return found + self.offset * r if self.offset else found

    def pull(self, y: np.ndarray, u: np.ndarray) -> np.ndarray:
        r = y - u
        psi = np.clip(r, -self.kappa, self.kappa, out=r)
        return psi + self.offset if self.offset else psi

    def curvature(self, y: np.ndarray, u: np.ndarray) -> np.ndarray:
        return (np.abs(y - u) <= self.kappa).astype(np.float64)

    def least_curvature(self, y: np.ndarray, u: np.ndarray, margin: np.ndarray) -> np.ndarray:
        far = (np.abs(y - u) + margin) * (1 + 8 * _UNIT)
        return (far <= self.kappa).astype(np.float64)

    def majorant(self, y: np.ndarray, u: np.ndarray) -> np.ndarray:
        size = np.abs(y - u)
        return np.divide(self.kappa, size, out=np.ones_like(size), where=size > self.kappa)

    def pull_enclosed(self, y: np.ndarray, u: Enclosed) -> Enclosed:
        high, low = two_sum(y, -u.value)
        rest = low - u.low
        high, low = two_sum(high, rest)
        error = u.error * (1 + 4 * _UNIT) + _UNIT * np.abs(rest)
        # The pair high + low is normalised: it is beyond κ exactly if `high` is, or if `high`
        # equals κ and `low` points outwards. Clipping makes no error larger.
        k = self.kappa
        inside = np.abs(high) < k
        inward = np.where(high > 0, np.minimum(low, 0.0), np.maximum(low, 0.0))
        low = np.where(inside, low, np.where(np.abs(high) == k, inward, 0.0))
        high = np.clip(high, -k, k)
        if self.offset:
            high, more = two_sum(high, np.full_like(high, self.offset))
            low, error = low + more, error + 2 * _UNIT * (np.abs(low) + np.abs(more))
        return Enclosed(high, low, error)


@register_loss("huber")
@dataclass(frozen=True)
class Huber(Clipped):
    """ℓ = r²/2 for −κ ≤ r ≤ κ and κ·abs(r) − κ²/2 beyond, r = y − u: residuals are clipped at ±κ.

    κ = ∞ is the quadratic loss. In ``PrivateLasso(loss=pv.Huber())`` κ is a part of the range of
    the labels, and the fit chooses it where it is infinite.

    Examples
    --------
    >>> import numpy as np
    >>> import privasso as pv
    >>> loss = pv.Huber(1.0)
    >>> y, u = np.array([0.5, 3.0]), np.zeros(2)
    >>> loss.value(y, u), loss.pull(y, u), loss.curvature(y, u)
    (array([0.125, 2.5  ]), array([0.5, 1. ]), array([1., 0.]))
    """

    kappa: float = math.inf

    about_mean = True

    @property
    def about(self) -> str:
        return "the mean of the labels, with residuals clipped"


@register_loss("logistic")
@dataclass(frozen=True)
class Logistic(Loss):
    """ℓ = log(1 + eᵘ) − yu for labels y in {0, 1}; labels −1 and 1 are taken for 0 and 1.

    Examples
    --------
    >>> import numpy as np
    >>> loss = Logistic()
    >>> y = loss.labels(np.array([-1.0, 1.0]))
    >>> loss.pull(y, np.zeros(2)), loss.curvature(y, np.zeros(2))
    (array([-0.5,  0.5]), array([0.25, 0.25]))
    """

    curvature_bound = 0.25
    slope = "logistic"
    kappa = 1.0

    @property
    def about(self) -> str:
        return "the log odds of the positive class"

    @property
    def largest_pull(self) -> float:
        return 1.0

    @property
    def label_change(self) -> float:
        return 1.0

    def labels(self, y: np.ndarray) -> np.ndarray:
        if np.all((y == 0) | (y == 1)):
            return y
        if np.all((y == -1) | (y == 1)):
            return (y + 1) / 2
        raise ValueError("labels for the logistic loss must be 0 and 1, or -1 and 1")

    def mean(self, u: np.ndarray) -> np.ndarray:
        """The probability of 1."""
        return _sigmoid(u)

    def value(self, y: np.ndarray, u: np.ndarray) -> np.ndarray:
        return np.logaddexp(0.0, np.where(y == 1, -u, u))

    def pull(self, y: np.ndarray, u: np.ndarray) -> np.ndarray:
        # y − σ(u) without cancellation: σ(−u) for y = 1 and −σ(u) for y = 0.
        return np.where(y == 1, _sigmoid(-u), -_sigmoid(u))

    def curvature(self, y: np.ndarray, u: np.ndarray) -> np.ndarray:
        return _sigmoid(u) * _sigmoid(-u)

    def least_curvature(self, y: np.ndarray, u: np.ndarray, margin: np.ndarray) -> np.ndarray:
        # The logarithm of the curvature changes by at most 1 per unit of u.
        return self.curvature(y, u) * np.exp(-margin) * (1 - 64 * _UNIT)

    def majorant(self, y: np.ndarray, u: np.ndarray) -> np.ndarray:
        half = 0.5 * np.abs(u)
        return np.divide(np.tanh(half), 4 * half, out=np.full_like(half, 0.25), where=half > 1e-4)

    def pull_enclosed(self, y: np.ndarray, u: Enclosed) -> Enclosed:
        psi = self.pull(y, u.value)
        moved = 0.25 * (np.abs(u.low) + u.error) * (1 + 4 * _UNIT)
        return Enclosed(psi, np.zeros_like(psi), moved + _EXP_ERROR * np.abs(psi) + 1e-300)


def _sigmoid(u: np.ndarray) -> np.ndarray:
    e = np.exp(-np.abs(u))
    return np.where(u >= 0, 1.0, e) / (1.0 + e)
