"""Noise on products of rows and labels: its law, weights of rows, and what is released."""

from __future__ import annotations

from dataclasses import dataclass, field, replace

import numpy as np

from privasso._validation import real_array
from privasso.blocks import LabelsWithin
from privasso.noise import Covariance
from privasso.operators import Covariates
from privasso.queries import ObjectiveNoise


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
        Largest Mahalanobis distance between the releases of two neighbouring data sets; None where
        there is none, or the release comes from a perturbed objective.
    weights : ndarray of shape (M,) or None
        Weights of the rows in the release, those of shrunk rows included; None if all are 1.
    objective : ObjectiveNoise or None
        The perturbed objective that the release comes from, for whitened rows and labels in units
        of their range; None where the products themselves are released.
    """

    covariance: Covariance = field(repr=False)
    sigma_sum: float
    mu: float | None
    weights: np.ndarray | None = field(default=None, repr=False)
    objective: ObjectiveNoise | None = None

    @property
    def level(self) -> float:
        """Root of the mean variance over the live columns."""
        n = self.covariance.size
        return float(np.sqrt(self.covariance.trace() / n)) if n else 0.0

    @property
    def shrunk(self) -> tuple[int, float]:
        """How many rows have a weight below 1, and the mean weight of these."""
        small = np.empty(0) if self.weights is None else self.weights[self.weights < 1.0]
        return small.size, float(np.mean(small)) if small.size else 1.0


#: Rows that exceed the bound by less than this part are rounding.
_ROUNDING = 1e-9


def row_weights(
    rows: Covariates, covariance: Covariance, sigma_sum: float, bound: float, *, power: int = 1
) -> np.ndarray | None:
    """w_μ = min(w⁰_μ, (bound/q_μ)^power), where q_μ = √(f_μᵀΣ⁻¹f_μ + 1/σ₀²) is the size of a row.

    The rows enter a release as w_μ(f_μ, 1)(y_μ − c), so that no label can move it by more than
    its range times `bound`. A perturbed objective takes rows and labels times √w_μ, and the power
    2 keeps the size √w_μ q_μ of such a row within the bound. Rows and noise are public, and so are
    the weights.

    Parameters
    ----------
    rows : Covariates
        The covariates; w⁰ are their weights, or ones.
    covariance : Covariance
        Σ over the live columns.
    sigma_sum : float
        σ₀; not used without an intercept.
    bound : float
        Largest size.
    power : {1, 2}
        See above.

    Returns
    -------
    ndarray of shape (M,) or None
        None where all weights are 1.

    Examples
    --------
    >>> from privasso.noise import Diagonal
    >>> rows = Covariates(np.array([[1.0], [4.0]]), centre=False)
    >>> row_weights(rows, Diagonal([1.0]), 0.0, bound=2.0).round(9)
    array([1. , 0.5])
    """
    squares = rows.squared_row_norms(covariance)
    if rows.centred:
        squares = squares + sigma_sum**-2
    with np.errstate(divide="ignore"):
        limit = (bound / np.sqrt(squares)) ** power
    given = rows.weights
    if given is None:
        return None if np.min(limit) >= 1.0 - _ROUNDING else _kept(np.minimum(1.0, limit))
    enough = np.all(given <= limit * (1.0 + _ROUNDING))
    return given if enough else _kept(np.minimum(given, limit))


def _kept(weights: np.ndarray) -> np.ndarray:
    """Weights that nobody can write to, so that sums with them are found once."""
    weights.setflags(write=False)
    return weights


@dataclass(frozen=True, eq=False)
class Release:
    """b = Σ_μ w_μ f_μ(y_μ − c) − η and, with an intercept, the label sum Σ_μ w_μ(y_μ − c) − η₀.

    With an intercept the rows of F are centred. The weights w of the rows are 1 unless they were
    given, or rows were shrunk; `row_weights` finds them again from F and the noise. A `Release`
    holds neither the labels nor the noise; with the public F it is all that the solvers need.

    Attributes
    ----------
    b : ndarray of shape (N,)
        The linear term, zero for columns that carry no data.
    covariance : Covariance
        Of the noise in b.
    n_rows : int
        Rows of F.
    centre : float
        c, subtracted from the labels.
    label_sum : float or None
        The noisy sum of the labels, None without an intercept.
    sigma_sum : float or None
        Standard deviation of the noise in it.
    mu : float or None
        Mahalanobis sensitivity of the joint release; None where no bound on labels is known.
    weight_sum : float or None
        Σ_μ w_μ; None stands for the number of rows.
    unit : float
        A power of two in which labels are measured: b, the noise, the centre and the label sum
        are in this unit. It is 1 except for labels of extreme size.
    level : float
        What a noisy mean of residuals adds to the mean of the labels, where there is one.
    """

    b: np.ndarray
    covariance: Covariance
    n_rows: int
    centre: float
    label_sum: float | None = None
    sigma_sum: float | None = None
    mu: float | None = None
    weight_sum: float | None = None
    unit: float = 1.0
    level: float = 0.0

    def __post_init__(self) -> None:
        object.__setattr__(self, "b", real_array("b", self.b, ndim=1))
        if self.covariance.size != self.b.size:
            raise ValueError(
                f"covariance must be over the {self.b.size} entries of b, "
                f"not over {self.covariance.size}"
            )
        if self.weight_sum is None:
            object.__setattr__(self, "weight_sum", float(self.n_rows))
        if (self.label_sum is None) != (self.sigma_sum is None):
            raise ValueError("label_sum and sigma_sum go together: give both or neither")

    def in_range(self, within: LabelsWithin) -> Release:
        """The release of the labels themselves, from that of their places in a range."""
        width = within.width
        return replace(
            self,
            b=width * self.b,
            covariance=self.covariance.scaled(width**2),
            centre=within.middle + width * self.centre,
            label_sum=None if self.label_sum is None else width * self.label_sum,
            sigma_sum=None if self.sigma_sum is None else width * self.sigma_sum,
            level=width * self.level,
        )

    @property
    def sigma(self) -> np.ndarray:
        """Standard deviation of the noise in each entry of b."""
        return self.covariance.sigma

    @property
    def fit_intercept(self) -> bool:
        """Whether the label sum was released, and the rows of F centred."""
        return self.label_sum is not None

    @property
    def mean_label(self) -> float:
        """The noisy mean of the labels, in `unit`; zero without an intercept."""
        assert self.weight_sum is not None
        if self.label_sum is None:
            return 0.0
        return self.centre + self.label_sum / self.weight_sum + self.level

    def __repr__(self) -> str:
        return (
            f"{type(self).__name__}(n_rows={self.n_rows}, n_features={self.b.size}, "
            f"intercept={self.fit_intercept})"
        )


def sandwich_errors(u: np.ndarray, H: np.ndarray, middle: np.ndarray) -> np.ndarray:
    """Root of the diagonal of H⁻¹CH⁻¹ over the support of u; NaN elsewhere, or if not positive.

    Examples
    --------
    >>> sandwich_errors(np.array([1.0, 0.0]), np.diag([2.0, 1.0]), np.eye(2)).tolist()
    [0.5, nan]
    """
    errors = np.full(u.size, np.nan)
    support = np.flatnonzero(u)
    if support.size:
        block = np.ix_(support, support)
        inverse = np.linalg.inv(H[block])
        squares = np.diag(inverse @ middle[block] @ inverse)
        # Where columns are nearly dependent, rounding can leave no digit; then nothing is stated.
        errors[support] = np.sqrt(np.where(squares > 0.0, squares, np.nan))
    return errors
