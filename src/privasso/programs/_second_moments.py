"""The matrix Σ h hᵀ of bounded rows, in integers, with Gaussian noise."""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from functools import cached_property

import numpy as np

from privasso.programs._record_map import RecordMap
from privasso.queries import EMPTIED, ROUNDING, Ask, Neighbours, NoisySum, Summand

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

    @property
    def unit(self) -> int:  # pyright: ignore[reportIncompatibleVariableOverride]
        """That of products."""
        return 2 * self.half_unit

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
