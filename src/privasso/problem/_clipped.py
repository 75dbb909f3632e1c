"""The clipped-residual LASSO with a ridge and a linear term."""

from __future__ import annotations

from copy import copy
from typing import NamedTuple, Self

import numpy as np
from numpy.typing import ArrayLike

from privasso._types import MatrixLike
from privasso._validation import nonnegative_float, real_array
from privasso.noise import Covariance
from privasso.operators import Operator, as_operator, finite_squares
from privasso.problem._loss import Loss
from privasso.problem._ridge import Ridge, as_ridge

_UNIT = 2.0**-53


class Gradient(NamedTuple):
    """The gradient of the smooth part, and the size of the terms that each entry is the sum of."""

    value: np.ndarray
    scale: np.ndarray


class ClippedProblem:
    """Minimise P(x) = Σ_μ w_μ ℓ(y_μ, f_μᵀx) + λ Σ_i ω_i|x_i| + ½xᵀQx + ηᵀx over x.

    The loss ℓ has a bounded slope, as `Huber` and `Logistic` have, and Q is positive definite. So
    a minimiser always exists, is unique, and moves by at most ‖Δη‖ in the norm of Q⁻¹ when η
    moves by Δη. A `ClippedProblem` holds labels and noise, which are private: it must not leave
    the place where they may be seen.

    Parameters
    ----------
    F : array_like or sparse matrix, shape (M, N), or Operator
        Covariates, used in place as in `solve`.
    y : array_like, shape (M,)
        Labels.
    lam : float
        Regularisation λ ≥ 0.
    loss : Loss
        ``Huber(kappa)`` or ``Logistic()``.
    ridge : float, array_like of shape (N,) or (N, N), or Covariance
        Q: a multiple of the identity, a diagonal, or a whole matrix.
    eta : array_like, shape (N,), optional
        The linear term; none by default.
    weights : array_like, shape (M,), optional
        w ≥ 0; 1 by default.
    penalty_weights : array_like, shape (N,), optional
        ω ≥ 0; 1 by default. Zero leaves a column, such as an intercept, without penalty.

    Examples
    --------
    >>> import numpy as np
    >>> from privasso.problem import ClippedProblem, Huber
    >>> problem = ClippedProblem(np.eye(2), [3.0, 0.5], 0.5, loss=Huber(1.0), ridge=1.0)
    >>> x = np.array([0.5, 0.0])  # the first residual is clipped: 1 = 0.5 + x
    >>> problem.objective(x), problem.residual(x)
    (2.5, array([0., 0.]))
    """

    def __init__(
        self,
        F: MatrixLike,
        y: ArrayLike,
        lam: float,
        *,
        loss: Loss,
        ridge: ArrayLike | Covariance | Ridge,
        eta: ArrayLike | None = None,
        weights: ArrayLike | None = None,
        penalty_weights: ArrayLike | None = None,
    ) -> None:
        self.op: Operator = as_operator(F)
        m, n = self.op.shape
        self.loss = loss
        self.y: np.ndarray = loss.labels(real_array("y", y, shape=(m,)))
        self.lam: float = nonnegative_float("lam", lam)
        self.ridge: Ridge = as_ridge(ridge, n)
        self.eta: np.ndarray = np.zeros(n) if eta is None else real_array("eta", eta, shape=(n,))
        self.weights = None if weights is None else _nonnegative("weights", weights, m)
        self.penalty_weights = (
            None if penalty_weights is None else _nonnegative("penalty_weights", penalty_weights, n)
        )
        start = self.pull(slice(0, m), np.zeros(m))
        squares, self._pulled_at_zero = self.op.squares_and_rmatvec(start)
        self._pull_at_zero = float(np.linalg.norm(start))
        self.squares: np.ndarray = finite_squares(squares)

    @property
    def shape(self) -> tuple[int, int]:
        """(M, N): rows and columns of F."""
        return self.op.shape

    @property
    def thresholds(self) -> np.ndarray:
        """λω_i."""
        if self.penalty_weights is None:
            return np.full(self.shape[1], self.lam)
        return self.lam * self.penalty_weights

    @property
    def steepness(self) -> np.ndarray:
        """Upper bound of the curvature of the smooth part along each coordinate."""
        heaviest = 1.0 if self.weights is None else float(self.weights.max())
        return self.loss.curvature_bound * heaviest * self.squares + self.ridge.diagonal

    def with_lam(self, lam: float) -> Self:
        """Return the same problem at another λ, without reading F again."""
        other = copy(self)
        other.lam = nonnegative_float("lam", lam)
        return other

    def with_operator(self, op: Operator) -> Self:
        """Return the same problem with F behind another operator, such as a `Metered` one."""
        other = copy(self)
        other.op = op
        return other

    def pull(self, rows: slice, u: np.ndarray) -> np.ndarray:
        """w_μψ_μ of these rows, given their predictions u."""
        psi = self.loss.pull(self.y[rows], u)
        return psi if self.weights is None else psi * self.weights[rows]

    def curvature(self, u: np.ndarray) -> np.ndarray:
        """w_μ∂²ℓ/∂u² of all rows."""
        d = self.loss.curvature(self.y, u)
        return d if self.weights is None else d * self.weights

    def least_curvature(self, u: np.ndarray, margin: np.ndarray) -> np.ndarray:
        """Lower bound of `curvature` for all predictions within `margin` of u."""
        d = self.loss.least_curvature(self.y, u, margin)
        return d if self.weights is None else d * self.weights * (1 - 2 * _UNIT)

    def majorant(self, u: np.ndarray) -> np.ndarray:
        """w_μ times the curvature of the parabola above ℓ that touches it at u, of all rows."""
        d = self.loss.majorant(self.y, u)
        return d if self.weights is None else d * self.weights

    def gradient(self, x: np.ndarray) -> Gradient:
        """Gradient of the smooth part, −Fᵀ(wψ) + Qx + η, in one pass over F."""
        if x.any():
            squares: list[float] = []

            def link(rows: slice, u: np.ndarray) -> np.ndarray:
                g = self.pull(rows, u)
                squares.append(float(g @ g))
                return g

            pulled, size = self.op.through(x, link), float(np.sqrt(sum(squares)))
        else:
            pulled, size = self._pulled_at_zero, self._pull_at_zero
        ridged = self.ridge.matvec(x)
        return Gradient(ridged + self.eta - pulled, self.scale(ridged, size))

    def scale(self, ridged: np.ndarray, size: float) -> np.ndarray:
        """Size of the terms of the gradient and its penalty, given Qx and ‖wψ‖."""
        return np.sqrt(self.squares) * size + np.abs(self.eta) + np.abs(ridged) + self.thresholds

    def rounding_floor(self, x: np.ndarray) -> np.ndarray:
        """How much the gradient moves when x is rounded, entry by entry."""
        steep = np.sqrt(self.steepness)
        return 8 * _UNIT * steep * float(np.linalg.norm(steep * x))

    def residual(self, x: np.ndarray) -> np.ndarray:
        """The subgradient of P at x whose entries are smallest; zero at the minimiser."""
        return smallest_subgradient(self.gradient(x).value, x, self.thresholds)

    def objective(self, x: np.ndarray) -> float:
        """P(x)."""
        u = self.op.matvec(np.asarray(x, dtype=np.float64))
        losses = self.loss.value(self.y, u)
        total = losses.sum() if self.weights is None else self.weights @ losses
        smooth = 0.5 * (x @ self.ridge.matvec(x)) + self.eta @ x
        return float(total + self.thresholds @ np.abs(x) + smooth)

    def __repr__(self) -> str:
        return f"ClippedProblem(shape={self.shape}, lam={self.lam!r}, loss={self.loss!r})"


def smallest_subgradient(g: np.ndarray, x: np.ndarray, thresholds: np.ndarray) -> np.ndarray:
    """G + λω∂|x|, the element of smallest size in each entry."""
    return np.where(x != 0, g + thresholds * np.sign(x), g - np.clip(g, -thresholds, thresholds))


def _nonnegative(name: str, value: ArrayLike, size: int) -> np.ndarray:
    array = real_array(name, value, shape=(size,))
    if np.any(array < 0):
        raise ValueError(f"{name} must be zero or positive")
    return array
