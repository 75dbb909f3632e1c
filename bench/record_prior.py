"""Settings of a fit of whole records by state evolution, for a table of given size."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import SupportsIndex

from privasso._validation import integer, positive_float, probability
from privasso.design import Budget, ObjectiveDesign, optimal_design
from privasso.model import Model
from privasso.planning._settings import usual_row
from privasso.privacy import RecordDP
from privasso.scales import Constant

#: Length of a typical row before it is shrunk, relative to √N: entries of variance 0.4 or so, some
#: columns off their origin, and the intercept.
_LENGTH = 0.75


@dataclass(frozen=True)
class RecordSettings:
    """Settings of a fit of whole records.

    Attributes
    ----------
    kappa, t : float
        As in `RecordDP`.
    lam : float
        λ, in units of the labels.
    explained : float
        Part of the signal that the fit is expected to explain.
    """

    kappa: float
    t: float
    lam: float
    explained: float


def record_settings(
    privacy: RecordDP,
    n_rows: SupportsIndex,
    n_columns: SupportsIndex,
    *,
    explained: float = 0.5,
    rho: float = 0.3,
    label_deviation: float = 0.13,
) -> RecordSettings:
    """Return κ, t and λ with the least error that state evolution predicts under a prior.

    The prior: columns are independent and of one scale, a part ρ of them has normal coefficients,
    they explain a part of the variance of the labels, and labels vary by a part of their range. No
    data are read, and nothing is spent.

    Real columns are correlated and coefficients not sparse, so that this λ is often too large; the
    defaults of `RecordDP` were better on real tables. Use it where the prior is known to hold.

    Parameters
    ----------
    privacy : RecordDP
        The budget and the bounds of the labels.
    n_rows, n_columns : int
        Rows and columns of the table, the intercept not counted.
    explained : float
        Part of the variance of the labels that the columns explain.
    rho : float
        Part of the columns with a coefficient.
    label_deviation : float
        Standard deviation of the labels, as a part of their range.
    """
    rows, columns = integer("n_rows", n_rows, minimum=1), integer("n_columns", n_columns, minimum=1)
    explained, rho = probability("explained", explained), probability("rho", rho)
    unit = positive_float("label_deviation", label_deviation) / math.sqrt(rho / explained)
    n = columns + 1
    model = Model(
        alpha=rows / n,
        rho=rho,
        sigma_xi=math.sqrt(rho * (1.0 - explained) / explained),
        scales=Constant(1.0),
    )
    best = optimal_design(model, Budget(privacy), gamma=0.0)
    assert isinstance(best, ObjectiveDesign)
    # Rows of the model have length 1; here they have length R, and labels were shrunk with them.
    radius = usual_row(n)
    shrunk = unit * min(radius / (_LENGTH * math.sqrt(n)), 1.0)
    return RecordSettings(
        kappa=shrunk * best.kappa,
        t=best.t,
        lam=shrunk * radius * best.lam * privacy.label_width,
        explained=best.explained,
    )
