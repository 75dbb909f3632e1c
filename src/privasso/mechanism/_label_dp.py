"""Label differential privacy: the covariates are public, the labels are not."""

from __future__ import annotations

from dataclasses import dataclass

from privasso._validation import positive_float, real_float
from privasso.mechanism._gaussian import sensitivity_for

NEIGHBOURS = "replace-one-label"


@dataclass(frozen=True)
class LabelDP:
    """(ε, δ)-differential privacy of the labels, given public covariates F.

    For any two label vectors that differ in one entry, and any set of outputs A,
    P(A | y) ≤ e^ε P(A | y') + δ. Labels are clipped to `y_bounds`, which must be chosen before
    looking at the labels.

    Parameters
    ----------
    epsilon : float
        ε > 0.
    delta : float
        δ in (0, 1), well below one over the number of rows.
    y_bounds : (float, float)
        Smallest and largest label; values outside are clipped without notice, since a count of
        them would itself depend on the labels.
    neighbours : str
        The relation between neighbouring data sets; only ``"replace-one-label"``.

    Examples
    --------
    >>> from privasso import LabelDP
    >>> privacy = LabelDP(epsilon=1.0, delta=1e-6, y_bounds=(0, 10))
    >>> privacy
    LabelDP(epsilon=1.0, delta=1e-06, y_bounds=(0.0, 10.0))
    >>> round(privacy.mu, 4)
    0.2367
    """

    epsilon: float
    delta: float
    y_bounds: tuple[float, float]
    neighbours: str = NEIGHBOURS

    def __post_init__(self) -> None:
        object.__setattr__(self, "epsilon", positive_float("epsilon", self.epsilon))
        delta = positive_float("delta", self.delta)
        if delta >= 1.0:
            raise ValueError(f"delta is a probability below 1, not {delta!r}")
        object.__setattr__(self, "delta", delta)
        try:
            low, high = self.y_bounds
        except (TypeError, ValueError):
            raise ValueError(
                "y_bounds must be a pair (low, high) that every label lies in, "
                "fixed before looking at the labels"
            ) from None
        bounds = real_float("y_bounds[0]", low), real_float("y_bounds[1]", high)
        if not bounds[0] < bounds[1]:
            raise ValueError(f"y_bounds must increase, not {bounds}")
        real_float("the width of y_bounds", bounds[1] - bounds[0])
        object.__setattr__(self, "y_bounds", bounds)
        if self.neighbours != NEIGHBOURS:
            raise ValueError(
                f"neighbours must be {NEIGHBOURS!r}, the only relation under which the covariates "
                f"may be used freely, not {self.neighbours!r}"
            )

    @property
    def mu(self) -> float:
        """The largest Mahalanobis sensitivity that (ε, δ) allows."""
        return sensitivity_for(self.epsilon, self.delta)

    @property
    def width(self) -> float:
        """High minus low."""
        return self.y_bounds[1] - self.y_bounds[0]

    @property
    def centre(self) -> float:
        """The middle of the bounds."""
        return self.y_bounds[0] + 0.5 * self.width

    def __repr__(self) -> str:
        return (
            f"LabelDP(epsilon={self.epsilon!r}, delta={self.delta!r}, y_bounds={self.y_bounds!r})"
        )
