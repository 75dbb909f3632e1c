"""The best covariance of the noise for given covariates, diagonal or not.

Noise η ~ N(0, Σ) hides one label of unit range with sensitivity max_μ √(f_μᵀΣ⁻¹f_μ). Among all Σ
for which this is at most 1, the one that adds the least error tr(WΣ) solves a convex problem. Its
dual is an experimental design: for weights p ≥ 0 of the rows that sum to 1, and with the weight W
taken into the rows, g_μ = W^½ f_μ,

    A_p = Σ_μ p_μ g_μg_μᵀ,   T(p) = tr A_p^½,   q_μ = g_μᵀ A_p^(−½) g_μ.

T² is never above the least cost tr(WΣ), and reaches it at the best p. Σ = max q · W^(−½)A_p^½W^(−½)
is feasible and costs T·max q. So its cost is at most 1 + (max_μ q_μ/T − 1) times the least one.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import ArrayLike

from privasso._blas import gram_matrix, one_thread, product
from privasso._types import MatrixLike
from privasso._validation import positive_float, real_array
from privasso.noise import Factored
from privasso.operators import Covariates

#: Rows kept at first, and at least so many per dimension; others join when they matter.
_FEW_ROWS, _ROWS_PER_DIMENSION = 1500, 8
#: First power of a step, and its factors after a success and after a failure.
_POWER, _BOLDER, _TIMID = 2.5, 1.3, 0.4
_MOST_STEPS, _MOST_ROUNDS = 2000, 60
#: Weights below this part of an equal share are dropped with their rows.
_NEGLIGIBLE = 1e-5
#: Eigenvalues of the second-moment matrix below this part of the largest count as zero.
_RANK = 1e-12
#: Entries of F turned into rows g at a time.
_CHUNK = 1 << 20


@dataclass(frozen=True, eq=False)
class OptimalShape:
    """The covariance of least cost among those that hide every row equally well.

    - `noise`: Σ at the level where the largest row has f_μᵀΣ⁻¹f_μ = 1. Privacy scales it.
    - `certificate`: the cost is at most 1 + certificate times the least possible one.
    - `cost`: tr(WΣ).
    - `rows`: rows that decide the shape.
    - `weights`: their weights in the dual problem, which sum to 1.
    """

    noise: Factored = field(repr=False)
    certificate: float
    cost: float
    rows: np.ndarray = field(repr=False)
    weights: np.ndarray = field(repr=False)

    @property
    def covariance(self) -> np.ndarray:
        """Σ as an array of shape (N, N), formed on request."""
        return self.noise.matrix()


def optimal_shape(
    F: MatrixLike,
    weight: ArrayLike | None = None,
    *,
    tol: float = 0.01,
    fit_intercept: bool = False,
    factors: ArrayLike | None = None,
    start: OptimalShape | None = None,
) -> OptimalShape:
    """Find the covariance of noise that costs least at a given sensitivity.

    Minimises tr(WΣ) subject to f_μᵀΣ⁻¹f_μ ≤ 1 for all rows. Columns that are zero, and directions
    that no row has, get no noise.

    Parameters
    ----------
    F : array_like or sparse matrix, shape (M, N), or Covariates
        Public covariates; `Covariates` are taken as they are, centred or not.
    weight : array_like of shape (N,) or (N, N), optional
        W: one number per column, or a positive definite matrix. By default 1/(mean square of the
        column), so that units do not matter.
    tol : float
        Certificate to reach.
    fit_intercept : bool
        Centre the columns, and add a column of ones as last one of Σ.
    factors : array_like of shape (M,), optional
        Positive numbers by which the rows are multiplied, after centring.
    start : OptimalShape, optional
        A solution for the same rows, with another weight for instance, to start from.

    Examples
    --------
    >>> import numpy as np, privasso as pv
    >>> F = np.random.default_rng(0).standard_normal((500, 3)) * [0.1, 1.0, 10.0]
    >>> shape = pv.optimal_shape(F)
    >>> shape.certificate <= 0.01, shape.covariance.shape
    (True, (3, 3))
    >>> bool(np.isclose(shape.noise.row_norms(F).max(), 1.0))
    True
    """
    tol = positive_float("tol", tol)
    rows = F if isinstance(F, Covariates) else Covariates(F, centre=fit_intercept)
    source = _Rows(rows, weight, factors, ones=fit_intercept)
    active, p = source.start(start)
    certificate, G = 1.0, source.take(active)
    T, root, inverse = 0.0, np.zeros((0, 0)), np.zeros((0, 0))
    largest = 0.0
    for _ in range(_MOST_ROUNDS):
        # Rows that are missing still matter more than the last digits on those at hand.
        p = _ascend(G, p, max(0.85 * tol, 0.2 * certificate))
        T, root, inverse = _roots(G, p)
        q = source.norms(inverse)
        largest = float(q.max())
        certificate = largest / T - 1.0
        if certificate <= tol:
            break
        active, p = _exchange(active, p, q, T)
        G = source.take(active)
    noise = Factored(np.sqrt(largest) * source.lift(root))
    kept = p > 0.0
    return OptimalShape(noise, float(certificate), largest * T, active[kept], p[kept])


class _Rows:
    """Rows g_μ = W^½ f_μ in coordinates of the space that they span."""

    def __init__(
        self,
        rows: Covariates,
        weight: ArrayLike | None,
        factors: ArrayLike | None,
        *,
        ones: bool,
    ) -> None:
        self.rows, self.ones = rows, ones
        self._factors = None
        if factors is not None:
            self._factors = real_array("factors", factors, shape=(rows.shape[0],))
        n = rows.shape[1] + self.ones
        self.live = np.append(rows.live, True) if self.ones else rows.live
        squares = rows.squares[rows.live] / rows.total
        squares = np.append(squares, 1.0) if self.ones else squares
        if not self.live.any():
            raise ValueError("no column of F carries data, so there is no shape to find")
        self._half, self._unhalf = _half(weight, squares, self.live, n)
        self._basis, self._values = self._span()
        #: Turns live rows f into rows g in the basis.
        self._into = _times(self._half, self._basis)

    def _span(self) -> tuple[np.ndarray, np.ndarray]:
        """An orthonormal basis of the span of the rows g, in which Σ_μ g_μg_μᵀ is this diagonal."""
        m, n = self.rows.shape[0], int(self.live.sum())
        if n <= m:
            factors = self._factors
            total = self.rows.moments(None if factors is None else factors**2, ones=self.ones)
            values, vectors = np.linalg.eigh(_times(self._half, _times(self._half, total).T))
            keep = values > _RANK * values[-1]
            return vectors[:, keep], values[keep]
        F = _times(self._half, np.concatenate([block for _, block in self._blocks()]).T).T
        values, vectors = np.linalg.eigh(gram_matrix(np.ascontiguousarray(F.T)))
        keep = values > _RANK * values[-1]
        return F.T @ (vectors[:, keep] / np.sqrt(values[keep])), values[keep]

    def _blocks(self) -> Iterator[tuple[slice, np.ndarray]]:
        for span, block in self.rows.blocks(_CHUNK):
            live = block if self.rows.live.all() else block[:, self.rows.live]
            if self.ones:
                live = np.column_stack([live, np.ones(live.shape[0])])
            yield span, live if self._factors is None else self._factors[span, None] * live

    @property
    def rank(self) -> int:
        return self._basis.shape[1]

    def take(self, index: np.ndarray) -> np.ndarray:
        """The rows g of these indices."""
        parts = []
        for span, block in self._blocks():
            here = index[(index >= span.start) & (index < span.stop)] - span.start
            parts.append(block[here] @ self._into)
        return np.concatenate(parts)

    def norms(self, inverse: np.ndarray) -> np.ndarray:
        """q_μ = ‖inverse·g_μ‖² for all rows."""
        into = self._into @ inverse
        q = np.empty(self.rows.shape[0])
        for span, block in self._blocks():
            image = product(block, into)
            q[span] = np.einsum("ij,ij->i", image, image)
        return q

    def start(self, before: OptimalShape | None) -> tuple[np.ndarray, np.ndarray]:
        """Rows to begin with, in increasing order, and their weights."""
        m = self.rows.shape[0]
        if before is not None:
            order = np.argsort(before.rows)
            return before.rows[order], before.weights[order]
        few = max(_FEW_ROWS, _ROWS_PER_DIMENSION * self.rank)
        if m <= 2 * few:
            return np.arange(m), np.full(m, 1.0 / m)
        # With equal weights of all rows, A is the second-moment matrix.
        q = self.norms(np.diag((self._values / m) ** -0.25))
        chosen = np.sort(np.argpartition(q, m - few)[m - few :])
        return chosen, np.full(few, 1.0 / few)

    def lift(self, root: np.ndarray) -> np.ndarray:
        """A root of Σ over all columns from a root of W^½ΣW^½ in the basis."""
        out = np.zeros((self.live.size, root.shape[1]))
        out[self.live] = _times(self._unhalf, self._basis @ root)
        return out


def _half(
    weight: ArrayLike | None, squares: np.ndarray, live: np.ndarray, n: int
) -> tuple[np.ndarray, np.ndarray]:
    """W^½ and W^(−½) over the live columns: their diagonals, or whole matrices."""
    if weight is None:
        return squares**-0.5, squares**0.5
    W = np.asarray(weight, dtype=np.float64)
    if W.ndim == 1:
        W = real_array("weight", W, shape=(n,))[live]
        if np.min(W) <= 0.0:
            raise ValueError("weight must be positive for every column that carries data")
        return W**0.5, W**-0.5
    W = real_array("weight", W, shape=(n, n))[np.ix_(live, live)]
    values, vectors = np.linalg.eigh(W)
    if not values[0] > _RANK * values[-1]:
        raise ValueError("weight must be a positive definite matrix")
    return (vectors * values**0.5) @ vectors.T, (vectors * values**-0.5) @ vectors.T


def _times(half: np.ndarray, A: np.ndarray) -> np.ndarray:
    """Product of a symmetric matrix, or of the diagonal one that a vector stands for, with A."""
    return half[:, None] * A if half.ndim == 1 else half @ A


def _roots(G: np.ndarray, p: np.ndarray) -> tuple[float, np.ndarray, np.ndarray]:
    """T = tr A^½, a root of A^½ and one of its inverse."""
    A = gram_matrix(G * np.sqrt(p)[:, None])
    with one_thread():
        w, V = np.linalg.eigh(A)
    w = np.maximum(w, w[-1] * _RANK**2)
    return float(np.sum(np.sqrt(w))), V * w**0.25, V * w**-0.25


def _norms(G: np.ndarray, p: np.ndarray) -> tuple[float, np.ndarray]:
    """T and q for these rows."""
    T, _, inverse = _roots(G, p)
    image = product(G, inverse)
    return T, np.einsum("ij,ij->i", image, image)


def _ascend(G: np.ndarray, p: np.ndarray, tol: float) -> np.ndarray:
    """Multiplicative steps p ← p (q/T)^power until these rows have a certificate of `tol`.

    The power 1 always raises T. A larger one is tried as long as it does so too.
    """
    T, q = _norms(G, p)
    power = _POWER
    for _ in range(_MOST_STEPS):
        if q.max() <= (1.0 + tol) * T:
            break
        # In logarithms, as powers of q/T overflow where some rows are hardly covered yet.
        with np.errstate(divide="ignore", under="ignore"):
            logs = np.log(p) + power * np.log(q / T)
            new = np.exp(logs - logs.max())
        new = np.where((new > _NEGLIGIBLE / p.size * new.max()) | (q > T), new, 0.0)
        new /= new.sum()
        new_T, new_q = _norms(G, new)
        if new_T >= T * (1.0 - 1e-12) or power == 1.0:
            p, T, q = new, new_T, new_q
            power *= _BOLDER
        else:
            power = max(1.0, _TIMID * power)
    return p


def _exchange(
    active: np.ndarray, p: np.ndarray, q: np.ndarray, T: float
) -> tuple[np.ndarray, np.ndarray]:
    """Drop rows without weight, and let those in that the covariance does not cover."""
    kept = p > 0.0
    inside = np.zeros(q.size, dtype=bool)
    inside[active[kept]] = True
    violating = np.flatnonzero(~inside & (q > T))
    most = max(_FEW_ROWS, 2 * int(kept.sum()))
    if violating.size > most:
        violating = violating[np.argpartition(q[violating], violating.size - most)[-most:]]
    weights = np.zeros(q.size)
    weights[active[kept]] = p[kept]
    share = 0.2 / max(violating.size, 1)
    weights[violating] = share * (q[violating] / T - 1.0) / max(float(np.max(q)) / T - 1.0, 1e-300)
    chosen = np.flatnonzero(weights)
    return chosen, weights[chosen] / weights.sum()
