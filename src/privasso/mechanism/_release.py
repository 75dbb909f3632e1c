"""What leaves the mechanism: noisy products of labels and covariates, and nothing else."""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from privasso._validation import generator, real_array
from privasso.mechanism._label_dp import LabelDP
from privasso.mechanism._on_average import OnAverage
from privasso.noise import NoiseDesign
from privasso.operators import Covariates
from privasso.scales import ScaleLaw

#: Guards the calibrated sensitivity against the rounding of its own computation.
_ROUNDING = 1.0 + 1e-12


@dataclass(frozen=True, eq=False)
class Release:
    """b = Fᵀ(y − c) − η and, with an intercept, the noisy label sum 1ᵀ(y − c) − η₀.

    With an intercept the rows of F are centred. Whoever holds a `Release` holds neither the
    labels nor the noise; with the public F it is all that the solvers need.

    Attributes
    ----------
    b : ndarray of shape (N,)
        The linear term, zero for columns that carry no data.
    sigma : ndarray of shape (N,)
        Standard deviation of the noise in each entry of b.
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

    Examples
    --------
    >>> import numpy as np, privasso as pv
    >>> release = pv.Release(b=np.array([1.0, -2.0]), sigma=np.ones(2), n_rows=10, centre=0.0)
    >>> release
    Release(n_rows=10, n_features=2, intercept=False)
    """

    b: np.ndarray
    sigma: np.ndarray
    n_rows: int
    centre: float
    label_sum: float | None = None
    sigma_sum: float | None = None
    mu: float | None = field(default=None)

    def __post_init__(self) -> None:
        b = real_array("b", self.b, ndim=1)
        object.__setattr__(self, "b", b)
        object.__setattr__(self, "sigma", real_array("sigma", self.sigma, shape=b.shape))
        if (self.label_sum is None) != (self.sigma_sum is None):
            raise ValueError("label_sum and sigma_sum go together: give both or neither")

    @property
    def fit_intercept(self) -> bool:
        """Whether the label sum was released, and the rows of F centred."""
        return self.label_sum is not None

    @property
    def mean_label(self) -> float:
        """The noisy mean of the labels; zero without an intercept."""
        return 0.0 if self.label_sum is None else self.centre + self.label_sum / self.n_rows

    def __repr__(self) -> str:
        return (
            f"Release(n_rows={self.n_rows}, n_features={self.b.size}, "
            f"intercept={self.fit_intercept})"
        )


def release_labels(
    F: Any,
    y: Any,
    privacy: LabelDP | OnAverage,
    design: NoiseDesign,
    *,
    fit_intercept: bool = True,
    scales: Any = None,
    rng: int | np.random.Generator | None = None,
) -> Release:
    """Run the mechanism once: draw the noise and return what may be used from here on.

    Under `LabelDP` the labels are clipped, and the level of the noise is such that

        (hi − lo) · max_μ ‖S^(−½) f_μ‖ = μ(ε, δ),    S = diag σ_i²,  σ_i² ∝ design.variances(v),

    the maximum taken over the rows of F exactly. With an intercept the rows are
    (f_μ − mean, 1): of the squared sensitivity the label sum takes the share 1/(1+√N), which
    costs the coefficients a factor 1 + 1/√N in variance whatever the units of F are.

    Under `OnAverage` the variances average to sigma², and the label sum gets the noise of a
    column of ones whose noise is proportional to its norm, σ_0² = σ²·N/mean(v).

    Parameters
    ----------
    F : array_like or sparse matrix, shape (M, N)
        Covariates; public under `LabelDP`.
    y : array_like, shape (M,)
        Labels.
    privacy : LabelDP or OnAverage
        What to protect, and how much.
    design : NoiseDesign
        The profile of the noise over the columns; its level comes from `privacy`.
    fit_intercept : bool
        Centre F and release the label sum as well.
    scales : None, "data", array_like of shape (N,) or ScaleLaw
        Where v comes from: the columns of F (the default), given scales s with v = s², or a
        law, which says nothing about single columns and so gives all the same variance.
    rng : None, int or numpy.random.Generator
        Source of the noise; None takes entropy from the operating system.

    Examples
    --------
    >>> import numpy as np, privasso as pv
    >>> F, y = np.eye(4), np.array([0.0, 1.0, 1.0, 0.0])
    >>> privacy = pv.LabelDP(epsilon=1.0, delta=1e-6, y_bounds=(0, 1))
    >>> release = pv.release_labels(F, y, privacy, pv.PowerLaw(1.0, 0.5), fit_intercept=False)
    >>> bool(np.allclose(release.sigma, 1 / privacy.mu))  # each row touches one entry of b
    True
    """
    if not isinstance(privacy, (LabelDP, OnAverage)):
        raise ValueError(
            "privacy must be LabelDP(epsilon, delta, y_bounds) or OnAverage(sigma), "
            f"not an object of type {type(privacy).__name__}"
        )
    if not isinstance(design, NoiseDesign):
        raise ValueError(
            "design must be a noise design, such as PowerLaw(1.0, gamma=0.5), "
            f"not an object of type {type(design).__name__}"
        )
    rows = F if isinstance(F, Covariates) else Covariates(F, centre=fit_intercept)
    if rows.centred != fit_intercept:
        raise ValueError("F is prepared with centring that contradicts fit_intercept")
    labels = real_array("y", y, shape=(rows.shape[0],))
    noise = generator(rng)
    everywhere, sigma_sum = noise_levels(rows, privacy, design, scales=scales)
    if isinstance(privacy, LabelDP):
        labels = np.clip(labels, *privacy.y_bounds) - privacy.centre
        centre, mu = privacy.centre, privacy.mu
    else:
        centre, mu = 0.0, None

    b = rows.rmatvec(labels) - everywhere * noise.standard_normal(everywhere.size)
    label_sum = float(np.sum(labels) - sigma_sum * noise.standard_normal())
    return Release(
        b=b,
        sigma=everywhere,
        n_rows=rows.shape[0],
        centre=centre,
        label_sum=label_sum if fit_intercept else None,
        sigma_sum=sigma_sum if fit_intercept else None,
        mu=mu,
    )


def noise_levels(
    rows: Covariates, privacy: LabelDP | OnAverage, design: NoiseDesign, *, scales: Any = None
) -> tuple[np.ndarray, float]:
    """Standard deviations of the noise in each entry of b and in the label sum; reads no label.

    Columns that carry no data have zero, and so has the label sum where F is not centred.

    Examples
    --------
    >>> import numpy as np, privasso as pv
    >>> rows = pv.operators.Covariates(np.diag([1.0, 10.0]), centre=False)
    >>> privacy = pv.LabelDP(epsilon=1.0, delta=1e-6, y_bounds=(0, 1))
    >>> sigma, _ = noise_levels(rows, privacy, pv.PowerLaw(1.0, gamma=1.0))
    >>> bool(np.isclose(sigma[1] / sigma[0], 10.0))
    True
    """
    v = column_scales(rows, scales)
    if isinstance(privacy, LabelDP):
        sigma, sigma_sum = _label_dp_levels(rows, privacy, design, v)
    else:
        sigma, sigma_sum = _on_average_levels(rows, privacy, design, v)
    everywhere = np.zeros(rows.shape[1])
    everywhere[rows.live] = sigma
    return everywhere, sigma_sum


def column_scales(rows: Covariates, scales: Any = None) -> np.ndarray:
    """V of the live columns, from wherever `scales` says."""
    if scales is None or (isinstance(scales, str) and scales == "data"):
        return rows.v
    if isinstance(scales, str):
        raise ValueError(f"scales must be 'data', an array of scales or a law, not {scales!r}")
    if isinstance(scales, ScaleLaw):
        mean = scales.moment(1.0)
        if not 0.0 < mean < math.inf:
            raise ValueError("scales is a law without a finite mean of v = s²; pass another")
        return np.full(int(rows.live.sum()), mean)
    s = real_array("scales", scales, shape=(rows.shape[1],))
    if np.min(s) < 0.0:
        raise ValueError("scales must be zero or more; they are scales s, with v = s²")
    return s[rows.live] ** 2


def _profile(rows: Covariates, design: NoiseDesign, v: np.ndarray) -> np.ndarray:
    """Variances of the live columns at level 1; none may be zero, for their entries are not."""
    variances = design.with_sigma(1.0).variances(v)
    silent = ~((variances > 0.0) & np.isfinite(variances))
    if silent.any():
        column = int(np.flatnonzero(rows.live)[np.flatnonzero(silent)[0]])
        raise ValueError(
            f"the design gives column {column} no noise (or infinite noise) although it has "
            "non-zero entries, so no level of noise protects the labels; drop the column, or "
            "choose a design or scales that give every column noise"
        )
    return variances


def _label_dp_levels(
    rows: Covariates, privacy: LabelDP, design: NoiseDesign, v: np.ndarray
) -> tuple[np.ndarray, float]:
    """Standard deviations of the live columns and of the label sum."""
    budget = (privacy.mu / privacy.width / _ROUNDING) ** 2
    share = 1.0 / (1.0 + math.sqrt(v.size)) if rows.centred else 0.0
    sigma_sum = 1.0 / math.sqrt(share * budget) if rows.centred else 0.0
    if v.size == 0:
        return v, sigma_sum
    profile = _profile(rows, design, v)
    largest = rows.largest_row(1.0 / profile)
    sigma = np.sqrt(profile) * math.sqrt(largest / ((1.0 - share) * budget))
    if not np.isfinite(sigma).all():
        raise ValueError(
            "the noise this design needs exceeds the largest float; choose a design that spares "
            "small columns less, such as PowerLaw(1.0, gamma=0.5)"
        )
    return sigma, sigma_sum


def _on_average_levels(
    rows: Covariates, privacy: OnAverage, design: NoiseDesign, v: np.ndarray
) -> tuple[np.ndarray, float]:
    if v.size == 0 or privacy.sigma == 0.0:
        return np.zeros(v.size), 0.0
    sigma = np.sqrt(design.with_sigma(privacy.sigma).variances(v))
    mean = float(np.mean(v))
    return sigma, privacy.sigma * math.sqrt(rows.shape[1] / mean) if rows.centred else 0.0
