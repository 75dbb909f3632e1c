"""The loss of a quantile of the labels, smoothed."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from privasso._validation import probability
from privasso.problem._loss import Clipped, register_loss

#: The offset has so many bits, relative to the power of two above κ.
_BITS = 40
#: κ for few rows, and the power with which it falls where the κ of means grows: from 18 simulated
#: cases, 1,000 to 50,000 rows, the 0.5-, 0.9- and 0.97-quantiles, normal and skewed labels, ε = 1.
_WIDTH, _NARROWER = 0.05, 0.6


@register_loss("quantile")
@dataclass(frozen=True)
class Quantile(Clipped):
    """The pinball loss of the q-quantile, averaged over residuals within ±κ.

    The slope of the pinball loss is q above the prediction and q − 1 below it. Averaged over
    [r − κ, r + κ], and times 2κ, it is ψ = clip(r, −κ, κ) + (2q − 1)κ: a clipped residual and a
    constant. Where the density of the labels does not change within κ of the quantile, the average
    does not move the minimiser.

    Parameters
    ----------
    level : float
        q in (0, 1).
    kappa : float
        Half the width of the average, as a part of the range of the labels; infinity leaves it to
        the fit.

    Examples
    --------
    >>> import numpy as np, privasso as pv
    >>> rng = np.random.default_rng(0)
    >>> X = rng.uniform(0, 1, (5000, 2))
    >>> y = X[:, 0] + (0.2 + X[:, 1]) * rng.uniform(0, 1, 5000)
    >>> privacy = pv.RecordDP(3.0, 1e-6, bounds=(0, 1), y_bounds=(0, 2.2))
    >>> est = pv.PrivateLasso(privacy=privacy, loss=pv.Quantile(0.9), random_state=0).fit(X, y)
    >>> 0.85 < float(np.mean(y <= est.predict(X))) < 0.95
    True
    """

    level: float
    kappa: float = math.inf

    def __post_init__(self) -> None:
        object.__setattr__(self, "level", probability("level", self.level))
        super().__post_init__()

    @property
    def about(self) -> str:
        """In words."""
        return f"the {self.level:g}-quantile of the labels"

    @property
    def offset(self) -> float:
        """(2q − 1)κ, rounded towards zero."""
        if self.kappa == math.inf:
            raise ValueError("a quantile needs a finite kappa; only a private fit chooses one")
        grid = _BITS - math.frexp(self.kappa)[1]
        exact = (2.0 * self.level - 1.0) * self.kappa
        return math.ldexp(math.trunc(math.ldexp(exact, grid)), -grid)

    def suited(self, usual: float) -> Quantile:
        """A narrower average where rows are many, which is where means have a larger κ.

        An average that is too wide moves the quantile, and the move does not shrink with more rows.
        """
        return self.clipped(_WIDTH * (_WIDTH / usual) ** _NARROWER)

    def score(
        self, y: np.ndarray, predicted: np.ndarray, weights: np.ndarray | None = None
    ) -> float:
        """1 − (mean pinball loss)/(that of the quantile of the labels)."""
        from sklearn.metrics import d2_pinball_score

        return float(d2_pinball_score(y, predicted, alpha=self.level, sample_weight=weights))
