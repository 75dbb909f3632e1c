"""The perturbed LASSO in the one form that every part of the package shares."""

from __future__ import annotations

from copy import copy
from functools import cached_property
from typing import Self

import numpy as np
from numpy.typing import ArrayLike

from privasso._types import MatrixLike
from privasso._validation import positive_float, real_array
from privasso.operators import Operator, as_operator, finite_squares


class Problem:
    """Minimise ½‖Fx‖² − bᵀx + λ‖x‖₁ over x.

    With ``b = F.T @ y - eta`` this is, up to the constant ½‖y‖², the perturbed LASSO

        ½‖y − Fx‖² + λ‖x‖₁ + ηᵀx.

    Labels y and noise η enter only through b, and a `Problem` holds neither of them. When F is
    public and b is the output of a private mechanism, everything computed from a `Problem` is
    post-processing of that output.

    Parameters
    ----------
    F : array_like or sparse matrix, shape (M, N), or Operator
        Covariates.
    b : array_like, shape (N,)
        The linear term.
    lam : float
        Regularisation λ > 0.
    squares : ndarray, optional
        Squared column norms of F, if the caller has them; otherwise one pass computes them.
    bounded : bool
        Whether b is known to be a combination of the rows of F, as without noise. Then there is a
        minimiser at every λ, and no algorithm looks for a proof that there is none.
    dual_point : ndarray, shape (M,), optional
        A vector with Fᵀ·dual_point = b, if one is known, such as the labels where there is no
        noise. It is a feasible point of the dual at every λ and makes the certificate cheaper. It
        must not be given where b is a private release.

    Examples
    --------
    >>> import numpy as np
    >>> problem = Problem(np.eye(2), b=[3.0, 0.5], lam=1.0)
    >>> x = np.array([2.0, 0.0])  # soft thresholding solves the orthogonal case
    >>> float(problem.kkt(x)), float(problem.objective(x))
    (0.0, -2.0)
    """

    def __init__(
        self,
        F: MatrixLike,
        b: ArrayLike,
        lam: float,
        *,
        squares: np.ndarray | None = None,
        bounded: bool = False,
        dual_point: np.ndarray | None = None,
    ) -> None:
        self.op: Operator = as_operator(F)
        self.b: np.ndarray = real_array("b", b, ndim=1, shape=(self.op.shape[1],))
        self.lam: float = positive_float("lam", lam)
        self.squares: np.ndarray = finite_squares(
            self.op.column_squares() if squares is None else squares
        )
        self.bounded: bool = bounded
        self.dual_point: np.ndarray | None = dual_point

    @classmethod
    def from_labels(
        cls, F: MatrixLike, y: ArrayLike, lam: float, eta: ArrayLike | None = None
    ) -> Problem:
        """Build the problem from labels and noise; b and the column norms cost one pass.

        Examples
        --------
        >>> import numpy as np
        >>> Problem.from_labels(np.eye(2), [1.0, 2.0], lam=0.1, eta=[0.5, 0.0]).b
        array([0.5, 2. ])
        """
        labelled = LabelledProblem(F, y, lam, eta)
        return Problem(
            labelled.op,
            labelled.b,
            labelled.lam,
            squares=labelled.squares,
            bounded=labelled.bounded,
        )

    @property
    def shape(self) -> tuple[int, int]:
        """(M, N): rows and columns of F."""
        return self.op.shape

    @cached_property
    def norms(self) -> np.ndarray:
        """Column norms of F, with 1 in the place of 0 (safe to divide by)."""
        return np.sqrt(np.where(self.squares > 0, self.squares, 1.0))

    def with_lam(self, lam: float) -> Problem:
        """Return the same problem at another λ, without reading F again."""
        return Problem(self.op, self.b, lam, squares=self.squares, bounded=self.bounded)

    def with_linear_term(self, b: np.ndarray, lam: float) -> Self:
        """Return the problem on the same F with other b and λ, which are not checked."""
        other = copy(self)  # norms that are known included
        other.b, other.lam = b, lam
        return other

    def with_operator(self, op: Operator) -> Self:
        """Return the same problem with F behind another operator, such as a `Metered` one."""
        other = copy(self)
        other.op = op
        return other

    def correlation(self, x: np.ndarray) -> np.ndarray:
        """Return c = b − FᵀFx, minus the gradient of the smooth part (one pass)."""
        return self.b - self.op.update(x, np.zeros(self.shape[0]), 0.0, 1.0)[0]

    def objective(self, x: np.ndarray) -> float:
        """½‖Fx‖² − bᵀx + λ‖x‖₁."""
        w = self.op.matvec(np.asarray(x, dtype=np.float64))
        return float(0.5 * (w @ w) - self.b @ x + self.lam * np.abs(x).sum())

    def kkt(self, x: np.ndarray) -> float:
        """Largest violation of the optimality conditions at x, divided by λ.

        At the minimiser c = b − FᵀFx satisfies c_i = λ sgn(x_i) where x_i ≠ 0, and
        −λ ≤ c_i ≤ λ elsewhere.
        """
        x = real_array("x", x, shape=(self.shape[1],))
        return float(violations(self.correlation(x), x, self.lam).max() / self.lam)

    def to_dual_point(self, w: np.ndarray, c: np.ndarray) -> tuple[np.ndarray, np.ndarray] | None:
        """The direction δ from w to `dual_point` and Fᵀδ, given c = b − Fᵀw; None if unknown.

        F is not read, because Fᵀδ = c.

        >>> import numpy as np
        >>> problem = LabelledProblem(np.eye(2), [1.0, 2.0], lam=0.1)
        >>> w = np.array([0.5, 1.0])
        >>> problem.to_dual_point(w, problem.b - w)
        (array([0.5, 1. ]), array([0.5, 1. ]))
        """
        return None if self.dual_point is None else (self.dual_point - w, c)

    def __repr__(self) -> str:
        return f"{type(self).__name__}(shape={self.shape}, lam={self.lam!r})"


class LabelledProblem(Problem):
    """A `Problem` that also holds the labels y and the noise η of which b = Fᵀy − η is made.

    Only the literal Algorithm 1 of the paper needs them: its fixed point depends on y and η
    separately. Everything else works on b, and a private release must not hold this object.

    `F`, `y`, `lam`, `eta`: as in `solve`.
    """

    def __init__(
        self, F: MatrixLike, y: ArrayLike, lam: float, eta: ArrayLike | None = None
    ) -> None:
        lam = positive_float("lam", lam)
        op = as_operator(F)
        m, n = op.shape
        self.y: np.ndarray = real_array("y", y, shape=(m,))
        self.eta: np.ndarray = np.zeros(n) if eta is None else real_array("eta", eta, shape=(n,))
        squares, b = op.squares_and_rmatvec(self.y)
        super().__init__(
            op,
            b - self.eta,
            lam,
            squares=finite_squares(squares),
            bounded=not self.eta.any(),
            dual_point=None if self.eta.any() else self.y,
        )


def violations(c: np.ndarray, x: np.ndarray, lam: float | np.ndarray) -> np.ndarray:
    """Violation of each optimality condition at x, given c = b − FᵀFx."""
    out = np.abs(c)
    out -= lam
    np.maximum(out, 0.0, out=out)
    on = np.flatnonzero(x)
    out[on] = np.abs(c[on] - np.sign(x[on]) * (lam[on] if isinstance(lam, np.ndarray) else lam))
    return out
