"""What a design is for, and the question that it answers."""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass
from typing import Generic, TypeVar

import numpy as np

from privasso.model import Model

D = TypeVar("D", covariant=True)


@dataclass(frozen=True, eq=False)
class Setting:
    """What the data are expected to be, and what of the design is given.

    - `models`: one model, or several for which one design is wanted.
    - `lam`, `gamma`: λ and the exponent of the shape; None where they are to be chosen.
    - `family`, `n_features`, `scale_error`, `rng`: as in `optimal_design`.
    """

    models: tuple[Model, ...]
    lam: float | None
    gamma: float | None
    family: str
    n_features: int | None
    scale_error: float
    rng: np.random.Generator

    @property
    def correlated(self) -> bool:
        """Whether the columns have a covariance; there is one model then."""
        return self.models[0].covariance is not None

    @property
    def null_error(self) -> float:
        """Error ρE[v] + σ_ξ² of releasing nothing, in the model where it is largest."""
        return max(m.rho * m.scales.moment(1.0) + m.sigma_xi**2 for m in self.models)

    @property
    def plain(self) -> bool:
        """Whether there is one model, with right scales, and no shape beyond a power of them."""
        return len(self.models) == 1 and self.family != "free" and self.scale_error == 0.0


class Target(ABC, Generic[D]):
    """A question about privacy and error that a design of the class D answers."""

    @abstractmethod
    def design(self, setting: Setting) -> D:
        """Return the best design, or raise `InfeasibleError`."""
