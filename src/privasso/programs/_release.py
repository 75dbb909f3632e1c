"""What leaves the mechanism: noisy products of labels and covariates, and nothing else."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from privasso._validation import real_array
from privasso.noise import Covariance


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
