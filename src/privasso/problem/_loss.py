"""Losses of one row with bounded slope and bounded curvature."""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass

import numpy as np

from privasso.operators import Enclosed, two_sum

_UNIT = 2.0**-53
#: Errors of NumPy's exp and of the few operations after it, in units of the last place, rounded up.
_EXP_ERROR = 16 * _UNIT


class Loss(ABC):
    """ℓ(y, u), the loss of a row with label y and prediction u = fᵀx, convex in u.

    All methods work entry by entry. The *pull* ψ = −∂ℓ/∂u is what the row adds to Fᵀψ: for the
    quadratic loss it is the residual y − u. It changes by at most `curvature_bound` per unit of u.
    To add a loss, derive from this class.
    """

    @property
    @abstractmethod
    def curvature_bound(self) -> float:
        """Largest ∂²ℓ/∂u²."""

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


@dataclass(frozen=True)
class Huber(Loss):
    """ℓ = r²/2 for −κ ≤ r ≤ κ and κ·abs(r) − κ²/2 beyond, r = y − u: residuals are clipped at ±κ.

    κ = ∞ is the quadratic loss.

    Examples
    --------
    >>> import numpy as np
    >>> loss = Huber(1.0)
    >>> y, u = np.array([0.5, 3.0]), np.zeros(2)
    >>> loss.value(y, u), loss.pull(y, u), loss.curvature(y, u)
    (array([0.125, 2.5  ]), array([0.5, 1. ]), array([1., 0.]))
    """

    kappa: float

    def __post_init__(self) -> None:
        if not self.kappa > 0:
            raise ValueError(f"kappa must be positive (infinity is allowed), not {self.kappa!r}")

    @property
    def curvature_bound(self) -> float:
        return 1.0

    def labels(self, y: np.ndarray) -> np.ndarray:
        return y

    def value(self, y: np.ndarray, u: np.ndarray) -> np.ndarray:
        r = y - u
        psi = np.clip(r, -self.kappa, self.kappa)
        return psi * (r - 0.5 * psi)

    def pull(self, y: np.ndarray, u: np.ndarray) -> np.ndarray:
        r = y - u
        return np.clip(r, -self.kappa, self.kappa, out=r)

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
        return Enclosed(np.clip(high, -k, k), low, error)


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

    @property
    def curvature_bound(self) -> float:
        return 0.25

    def labels(self, y: np.ndarray) -> np.ndarray:
        if np.all((y == 0) | (y == 1)):
            return y
        if np.all((y == -1) | (y == 1)):
            return (y + 1) / 2
        raise ValueError("labels for the logistic loss must be 0 and 1, or -1 and 1")

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
