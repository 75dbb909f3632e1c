"""Noisy sums of products of whole records: any λ is computed from them, or the shape of a fit."""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from functools import cached_property

import numpy as np
from scipy.special import ndtr

from privasso._tuned import LABEL_DEVIATION, NARROW_VARIANCE, SHAPE_FLOOR, STATISTICS_RIDGE
from privasso._validation import positive_float
from privasso.programs._one_step import positive_part
from privasso.programs._program import RecordFit
from privasso.programs._record_rows import OnTable, PerturbedObjective, perturbed_numbers
from privasso.programs._records import RecordMap
from privasso.programs._release import sandwich_errors
from privasso.queries import (
    EMPTIED,
    ROUNDING,
    Ask,
    Neighbours,
    NoisySum,
    ObjectiveNoise,
    PerturbedMinimiser,
    Summand,
    shape_factor,
)
from privasso.solvers import solve_clipped

#: Rows are rounded to integers with entries up to about 2^17.
_BITS = 17


@dataclass(frozen=True, eq=False)
class Products(Summand):
    """The entries of h hᵀ on and above the diagonal, h a row with ω times its label in the end.

    A record contributes a matrix with the Frobenius norm ‖h‖² ≤ R². The entries above the diagonal
    count twice in that norm, so that √½ of the noise is enough for them. Rows are rounded to
    integers, which makes them longer by √d/2 at most.

    Attributes
    ----------
    rows : RecordMap
        How a record becomes a row and a label.
    weight : float
        ω.
    radius : float
        R: no h is longer, which must be certain.
    """

    rows: RecordMap = field(repr=False)
    weight: float
    radius: float
    unit: int = field(init=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "unit", 2 * self.half_unit)

    sentence = "noisy sums of products of covariates and labels"
    #: Products of so many rows are sums of integers below 2^53, which are exact in any order.
    most_rows = 1 << 15

    @property
    def size(self) -> int:
        """Entries of h."""
        return self.rows.n_columns + 1

    @property
    def half_unit(self) -> int:
        """Entries of h are rounded to multiples of 2^−half_unit."""
        return _BITS - math.ceil(math.log2(self.radius))

    @cached_property
    def upper(self) -> tuple[np.ndarray, np.ndarray]:
        """Places of the entries."""
        return np.triu_indices(self.size)

    def sums(self, X: np.ndarray, y: np.ndarray) -> np.ndarray:
        """KᵀK of the integers K = rint(2^half_unit·h), exactly."""
        G, labels = self.rows(X, y, 0, len(y))
        H = np.column_stack([G, self.weight * labels])
        K = np.rint(np.ldexp(H, self.half_unit))
        return (K.T @ K)[self.upper].astype(np.int64)

    def lengths(self, neighbours: Neighbours) -> np.ndarray:
        """R², and √2·R² for two records; √½ of that above the diagonal."""
        longest = (math.ldexp(self.radius, self.half_unit) + 0.5 * math.sqrt(self.size)) * ROUNDING
        whole = longest**2 if neighbours.relation == "emptied" else math.sqrt(2.0) * longest**2
        above = self.upper[0] < self.upper[1]
        return np.where(above, whole / math.sqrt(2.0), whole)


@dataclass(frozen=True, eq=False)
class SecondMoments:
    """Noisy Σ_μ h_μ h_μᵀ; the guarantee covers it.

    Attributes
    ----------
    matrix : ndarray of shape (d, d)
        Symmetric; it need not be positive.
    sigma : float
        Standard deviation of the noise on the diagonal; √½ times that elsewhere.
    n_rows : int
        Number of rows.
    """

    matrix: np.ndarray = field(repr=False)
    sigma: float
    n_rows: int

    @classmethod
    def asked(
        cls, ask: Ask, products: Products, mu: float, neighbours: Neighbours = EMPTIED
    ) -> SecondMoments:
        """Ask for the sums, of which one record changes the matrix by μ deviations at most."""
        query = NoisySum(products, mu, neighbours)
        matrix = np.zeros((products.size,) * 2)
        matrix[products.upper] = ask(query)
        sigma = math.ldexp(float(query.deviations[0]), -products.unit)
        return cls(np.triu(matrix) + np.triu(matrix, 1).T, sigma, ask.n_rows)

    @property
    def spread(self) -> float:
        """The size of the largest eigenvalue of the noise alone, σ√(2d)."""
        return self.sigma * math.sqrt(2.0 * len(self.matrix))


@dataclass(frozen=True, eq=False)
class RecordStatistics:
    """Noisy sums of products of covariates and labels, and what turns them into coefficients.

    The guarantee covers it, so that fits at any λ cost nothing more.

    Attributes
    ----------
    moments : SecondMoments
        Of the scaled rows and, in the last place, ω times the scaled labels.
    table : PerturbedObjective
        The scaling of the columns and labels.
    weight : float
        ω.
    """

    moments: SecondMoments
    table: PerturbedObjective = field(repr=False)
    weight: float

    def solve(self, lam: float) -> RecordFit:
        """Minimise ½uᵀAu − bᵀu + λ Σ_i|u_i| + (Λ/2)‖u‖² for the noisy sums A and b.

        A is made positive definite by raising its eigenvalues to zero. The ridge Λ is 0.7 of the
        size of the largest eigenvalue of the noise, less what the smallest eigenvalue of A has of
        its own, as in AdaSSP (Wang 2018).
        """
        lam = positive_float("lam", lam) / self.table.width
        A, b = self.parts()
        d = b.size
        ridge = self._ridge(A)
        H = positive_part(A) + ridge * np.eye(d)
        found = solve_clipped(
            np.zeros((1, d)),
            np.zeros(1),
            lam,
            -b,
            kappa=math.inf,
            ridge=H,
            penalty_weights=self.table.penalised,
        )
        errors = self._errors(found.x, A, H)
        coef, intercept = self.table.in_units(found.x)
        return RecordFit(coef, intercept, self.table.width * self.table.per_unit(errors))

    def parts(self) -> tuple[np.ndarray, np.ndarray]:
        """The sums of products of columns, and of columns and labels."""
        T = self.moments.matrix
        return T[:-1, :-1], T[:-1, -1] / self.weight

    def residual_variance(self, u: np.ndarray) -> float:
        """Mean square of the residuals of scaled rows, and one deviation of its noise.

        It is vᵀTv/M for v = (−u, 1/ω), whose noise has the deviation σ‖v‖²/M. That deviation is
        added: it is little where the noise is small, and where it is not, it keeps standard errors
        from being too small.
        """
        v = np.append(-u, 1.0 / self.weight)
        found = max(float(v @ self.moments.matrix @ v), 0.0)
        return (found + self.moments.sigma * float(v @ v)) / self.moments.n_rows

    def _ridge(self, A: np.ndarray) -> float:
        least = float(np.linalg.eigvalsh(A)[0])
        wanted = STATISTICS_RIDGE * self.moments.spread
        return max(wanted - max(least, 0.0), 1e-3 * wanted)

    def _errors(self, u: np.ndarray, A: np.ndarray, H: np.ndarray) -> np.ndarray:
        """Root of the diagonal of H⁻¹(s²A + C)H⁻¹ on the support, C the covariance of the noise.

        The noise moves b − Au by Wv with v = (−u, 1/ω) and W the symmetric noise matrix, so that
        C = (σ²/2)(‖v‖² I + u uᵀ).
        """
        length = float(u @ u) + self.weight**-2
        noise = 0.5 * self.moments.sigma**2 * (length * np.eye(u.size) + np.outer(u, u))
        return sandwich_errors(u, H, self.residual_variance(u) * positive_part(A) + noise)


@dataclass(frozen=True, eq=False)
class StatisticsMechanism(OnTable):
    """How records become noisy statistics; all of it is decided before the data are read.

    Attributes
    ----------
    table : PerturbedObjective
        Scaling of columns and labels; its own noise is not used.
    mu : float
        Sensitivity of the statistics.
    standard : bool
        Whether columns are in units of their scales, not of their bounds.
    """

    table: PerturbedObjective
    mu: float
    standard: bool = False

    again = True

    @property
    def weight(self) -> float:
        """ω: how much a label counts beside its row. With R, both have about equal noise."""
        return self.table.noise.radius

    @property
    def radius(self) -> float:
        """Length of the longest row with its label."""
        return math.hypot(self.table.noise.radius, self.weight * self.table.view.largest_label)

    def predicted_loss(self, n_rows: int) -> float:
        """Predict by how much the noise lowers R², from public numbers alone.

        The noise moves b − Au by vectors of variance (σ²/2)(‖u‖² + 1/ω²) per entry, and so the
        predictions by d/(M²v) times that, for d uncorrelated columns of variance v. Labels of
        range 1 are taken to have the variance 1/36, all of it explained, ‖u‖² = 1/(36v), and
        columns within bounds to vary by a quarter of half their range.
        """
        v = 1.0 if self.standard else NARROW_VARIANCE
        d = len(self.table.bounds) + self.table.fit_intercept
        per_entry = 0.5 * self.sigma**2 * (LABEL_DEVIATION**2 / v + self.weight**-2)
        return d * per_entry / (n_rows**2 * v) / LABEL_DEVIATION**2

    @property
    def sigma(self) -> float:
        """Deviation of the noise on squares, up to rounding."""
        replaced = self.table.noise.neighbours.relation == "replaced"
        return (math.sqrt(2.0) if replaced else 1.0) * self.radius**2 / self.mu

    def __call__(self, ask: Ask, lam: float | None = None) -> RecordStatistics:
        """Ask for the noisy statistics, from which any λ is solved."""
        table = self.table.estimated(ask)
        neighbours = table.noise.neighbours
        moments = SecondMoments.asked(ask, self.products(table), self.mu, neighbours)
        return RecordStatistics(moments, table, self.weight)

    def facts(self, n_rows: int) -> tuple[str, dict[str, float], str]:
        """Those of sums with noise."""
        numbers = {"radius": self.radius, "sigma": self.sigma, "mu": self.mu}
        return "statistics", numbers, self.table.column_unit

    def products(self, table: PerturbedObjective) -> Products:
        """What a record contributes, by this scaling."""
        return Products(table.view, self.weight, self.radius * (1.0 + 1e-12))


@dataclass(frozen=True, eq=False)
class ShapedObjective(OnTable):
    """A perturbed fit with noise of the covariance σ²S and a ridge ΛS.

    S is the matrix of second moments of the scaled rows: of public rows, or of the rows themselves
    with noise. With strongly correlated columns the noise then moves predictions less.

    Attributes
    ----------
    table : PerturbedObjective
        Scaling of columns and labels; its own noise is not used.
    noise : ObjectiveNoise
        Of the fit, for rows with fᵀS⁻¹f ≤ R².
    public : ndarray of shape (K, N) or None
        Public rows of the same columns.
    mu : float or None
        Sensitivity of the noisy matrix, where there are no public rows.
    """

    table: PerturbedObjective
    noise: ObjectiveNoise
    public: np.ndarray | None = field(repr=False)
    mu: float | None

    @property
    def kappa(self) -> float:
        """Where residuals are clipped."""
        return self.noise.kappa

    def __call__(self, ask: Ask, lam: float) -> RecordFit:
        """Ask for the matrix and the fit; return coefficients, with standard errors if it can be.

        Standard errors need the noisy matrix: H⁻¹(σ²S + E·A)H⁻¹ with H = qA + ΛS, A the noisy sums
        of products, q the part of the residuals that is not clipped and E the mean square of the
        clipped residuals, both for normal residuals of the variance that the noisy sums tell.
        Where noise hides how much a direction varies it counts as not varying, which makes them too
        large rather than too small.
        """
        statistics = None
        if self.mu is None:
            table = self.table.estimated(ask)
            assert self.public is not None
            S = _public_moments(table, self.public)
            L = shape_factor(S, SHAPE_FLOOR * float(np.trace(S)) / len(S))
        else:
            statistics = StatisticsMechanism(self.table, self.mu)(ask)
            table, moments = statistics.table, statistics.moments
            S = moments.matrix[:-1, :-1] / moments.n_rows
            mean = max(float(np.trace(S)) / len(S), 0.0)
            floor = max(SHAPE_FLOOR * mean, moments.spread / moments.n_rows)
            L = shape_factor(S, floor)
        lam = lam / table.width
        u = ask(PerturbedMinimiser(table.view, self.noise, lam, table.penalised, factor=L))
        coef, intercept = table.in_units(table.levelled(ask, u))
        if statistics is None:
            return RecordFit(coef, intercept)
        errors = self._errors(u, L, statistics)
        return RecordFit(coef, intercept, table.width * table.per_unit(errors))

    def facts(self, n_rows: int) -> tuple[str, dict[str, float], str]:
        """Those of objective perturbation."""
        numbers = perturbed_numbers(self.noise, self.table.level, n_rows)
        unit = f"{self.table.column_unit}, and rows in the norm of the shape"
        return "objective", numbers, unit

    def _errors(self, u: np.ndarray, L: np.ndarray, statistics: RecordStatistics) -> np.ndarray:
        noise, variance = self.noise, statistics.residual_variance(u)
        a = noise.kappa / math.sqrt(variance)
        q = 2.0 * float(ndtr(a)) - 1.0
        density = math.exp(-0.5 * a * a) / math.sqrt(2.0 * math.pi)
        clipped = variance * (q - 2.0 * a * density) + noise.kappa**2 * (1.0 - q)
        S, A = L @ L.T, positive_part(statistics.parts()[0])
        return sandwich_errors(u, q * A + noise.ridge * S, noise.sigma**2 * S + clipped * A)


def _public_moments(table: PerturbedObjective, public: np.ndarray) -> np.ndarray:
    """Mean second moments of public rows, with a little of a multiple of the identity if few."""
    rows, _ = table.rows(public, np.zeros(len(public)))
    S = rows.T @ rows / len(rows)
    d = len(S)
    weight = d / (d + len(rows))
    return (1.0 - weight) * S + weight * float(np.trace(S)) / d * np.eye(d)
