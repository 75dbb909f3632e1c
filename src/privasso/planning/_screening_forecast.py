"""What a choice of columns and the fit of them can be expected to reach, from public numbers alone.

The prior: columns are independent and have one variance; s of them have coefficients of one size,
which explain a part of the variance of normal labels. The association of a column is then Gaussian,
which gives the chance that a column is chosen. The fit of the chosen ones follows by state
evolution; the signal of those that were missed is further noise.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike
from scipy.special import ndtr

from privasso._tuned import COLUMN_VARIANCE, EXPLAINED, LABEL_DEVIATION
from privasso._validation import integer, positive_float, probability
from privasso.model import Model
from privasso.planning._settings import usual_kappa, usual_lam, usual_row, usual_t
from privasso.scales import Constant
from privasso.theory import clipped_point, selection_chances

_ONE = np.ones(1)


@dataclass(frozen=True)
class ScreeningPrior:
    """What is expected of a table before it is seen.

    Parameters
    ----------
    n_true : int
        s, how many columns have coefficients.
    explained : float
        Part of the variance of the labels that they explain.
    label_deviation : float
        Standard deviation of the labels, as a part of their range.
    column_variance : float
        Variance of a column in units of half its range.

    Examples
    --------
    >>> prior = ScreeningPrior(n_true=5)
    >>> prior.explained  # half of the variance of the labels, by default
    0.5
    """

    n_true: int = 10
    explained: float = EXPLAINED
    label_deviation: float = LABEL_DEVIATION
    column_variance: float = COLUMN_VARIANCE

    def __post_init__(self) -> None:
        object.__setattr__(self, "n_true", integer("n_true", self.n_true, minimum=1))
        object.__setattr__(self, "explained", probability("explained", self.explained))
        for name in ("label_deviation", "column_variance"):
            object.__setattr__(self, name, positive_float(name, getattr(self, name)))


@dataclass(frozen=True)
class AssociationLaw:
    """The Gaussian law of the association of a column.

    Attributes
    ----------
    unit : float
        Its mean, for a column that explains all of the variance of the labels.
    deviation : float
        Its deviation.
    """

    unit: float
    deviation: float

    def mean(self, part: ArrayLike) -> np.ndarray:
        """The mean for a column that explains this part of the variance of the labels."""
        return self.unit * np.sqrt(np.asarray(part, dtype=np.float64))


def association_law(prior: ScreeningPrior, n_rows: int, *, clip: float) -> AssociationLaw:
    """Return the law for normal labels that are clipped, as a part of their range.

    Examples
    --------
    >>> law = association_law(ScreeningPrior(), 1000, clip=0.08)
    >>> round(law.unit / law.deviation, 1)
    28.0
    """
    d, v, b = prior.label_deviation, prior.column_variance, clip
    a = b / d
    p = 2.0 * float(ndtr(a)) - 1.0
    density = math.exp(-0.5 * a * a) / math.sqrt(2.0 * math.pi)
    square = d * d * (p - 2.0 * a * density) + b * b * (1.0 - p)
    return AssociationLaw(n_rows * math.sqrt(v) * d * p, math.sqrt(n_rows * v * square))


def choice_chances(
    prior: ScreeningPrior,
    n_rows: int,
    n_columns: int,
    count: int,
    *,
    clip: float,
    epsilon_each: float,
    strengths: ArrayLike | None = None,
    span: float = 2.0,
) -> np.ndarray:
    """Chances of a column without a coefficient and of one with it, or of given strengths.

    A column with the coefficient β has E[f ỹ] = βvp, p the part of the labels that is not clipped,
    for normal labels. Strengths are parts of the variance of the labels that a column explains.
    The noise is that for a difference of two associations that changes by at most `span` times the
    clipped labels.

    Examples
    --------
    >>> prior = ScreeningPrior(n_true=5)
    >>> few, many = (
    ...     choice_chances(prior, rows, 1000, 5, clip=0.08, epsilon_each=0.1)
    ...     for rows in (1000, 20000)
    ... )
    >>> few.round(3), many.round(3)
    (array([0.003, 0.474]), array([0., 1.]))
    >>> bool(abs(995 * few[0] + 5 * few[1] - 5.0) < 1e-6)  # five columns are chosen
    True
    """
    law, each = association_law(prior, n_rows, clip=clip), prior.explained / prior.n_true
    true = min(prior.n_true, n_columns - 1)
    found = np.atleast_1d([0.0, each] if strengths is None else np.append([0.0, each], strengths))
    numbers = np.zeros(found.size)
    numbers[:2] = n_columns - true, true
    gumbel = span * clip / epsilon_each
    chances = selection_chances(law.mean(found), numbers, count, law.deviation, gumbel)
    return chances if strengths is None else chances[2:]


def predicted_r2(
    prior: ScreeningPrior,
    n_rows: int,
    n_columns: int,
    c: float,
    epsilon: float,
    *,
    chance: float = 1.0,
    t: float | None = None,
    kappa: float | None = None,
) -> float:
    """R² of a perturbed fit of so many columns, of which a part of the true ones was kept.

    Parameters
    ----------
    prior : ScreeningPrior
        What is expected of the table.
    n_rows, n_columns : int
        Size of the table that is fitted.
    c : float
        Sensitivity of the fit in deviations of its noise.
    epsilon : float
        What is left of ε for the fit, from which the usual settings follow.
    chance : float
        Part of the true columns that are among them.
    t, kappa : float, optional
        Other settings.

    Examples
    --------
    >>> prior = ScreeningPrior(n_true=10, explained=0.5)
    >>> [round(predicted_r2(prior, m, 20, 0.2, 1.0), 2) for m in (500, 2000, 50_000)]
    [0.42, 0.49, 0.5]
    """
    k, d2, v = n_columns, prior.label_deviation**2, prior.column_variance
    signal = prior.explained * chance
    radius = usual_row(k + 1)
    t = usual_t(epsilon) if t is None else t
    kappa = usual_kappa(epsilon, n_rows, k + 1) if kappa is None else kappa
    # Rows, with their ones, are shrunk to the radius, and labels with them.
    w2 = min(radius**2 / (k * v + 1.0), 1.0)
    if signal <= 0.0:
        return 0.0
    rho = min(prior.n_true * chance / k, 1.0)
    coefficient = signal * d2 / (v * rho * k)
    # In the model a coefficient has the variance 1 and an entry the variance v/k.
    scale = np.array([k * v * w2 * coefficient])
    model = Model(
        alpha=n_rows / k,
        rho=rho,
        sigma_xi=math.sqrt(w2 * d2 * (1.0 - signal)),
        scales=Constant(1.0),
    )
    sigma = kappa * radius / c
    point = clipped_point(
        model,
        usual_lam(n_rows, 1.0) * math.sqrt(coefficient),
        kappa,
        scale,
        _ONE,
        sigma**2 * coefficient * _ONE,
        radius**2 / t * coefficient * _ONE,
    )
    return -math.inf if point is None else 1.0 - point.E / (w2 * d2)
