"""A fit with intervals for its coefficients, at a part of the budget."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from privasso.accounting import Loss
from privasso.blocks import RowBlocks
from privasso.fit._options import FitOptions
from privasso.fit._plan import Plan
from privasso.noise import Noise
from privasso.planning import ScreeningOutlook, divided, interval_sensitivity
from privasso.privacy import PRIVATE, Guarantee, LabelDP, RecordDP
from privasso.programs import IntervalSums
from privasso.queries import Ask, UndeclaredError, declared

#: What the intervals are called among what is released.
_ALSO = "intervals for the coefficients"


@dataclass(frozen=True, eq=False)
class IntervalPlan(Plan):
    """The questions of a fit with a part of the budget, and then those for intervals.

    Attributes
    ----------
    options : FitOptions
        What was asked for.
    inner : Plan
        The fit, whose guarantee is that of everything together.
    guarantee : Guarantee
        What holds for both.
    seeded : bool
        Whether the noise comes from a fixed random state.
    mu : float
        Sensitivity of what is asked for the intervals.
    """

    options: FitOptions
    inner: Plan
    guarantee: Guarantee = field(repr=False)
    seeded: bool
    mu: float

    @property
    def noise(self) -> Noise | None:  # pyright: ignore[reportIncompatibleVariableOverride]
        """That of the fit."""
        return self.inner.noise

    @property
    def outlook(self) -> ScreeningOutlook | None:
        """That of the fit."""
        return self.inner.outlook

    @property
    def solves_again(self) -> bool:
        """Whether models at other λ can be solved from what is published."""
        return self.inner.solves_again

    @property
    def shape(self) -> tuple[int, int]:
        """Rows and columns."""
        return self.inner.shape

    def stating(self, guarantee: Guarantee) -> IntervalPlan:
        """The same with another statement, of what comes of the fit too."""
        return replace(self, guarantee=guarantee, inner=self.inner.stating(guarantee))

    def table(self, y: ArrayLike | None) -> RowBlocks:
        """The rows of the fit."""
        return self.inner.table(y)

    def worst(self, y: np.ndarray) -> list[tuple[Plan, np.ndarray, str]]:
        """Those of the fit."""
        found = self.inner.worst(y)
        return [(replace(self, inner=one), labels, name) for one, labels, name in found]

    def program(self, ask: Ask) -> tuple[Any, IntervalSums]:
        """What the fit finds, and the sums at that point."""
        found = self.inner.program(ask)
        return found, self.inner.interval_sums(ask, found, self.mu)

    def published(
        self,
        found: tuple[Any, IntervalSums],
        feature_names: tuple[str, ...] | None,
        target: str | None,
    ) -> Any:
        """What comes of the fit, with intervals."""
        fit, sums = found
        made = self.inner.published(fit, feature_names, target)
        return made.with_intervals(sums.intervals())


def plan_intervals(options: FitOptions, plan: Callable[[FitOptions], Plan]) -> IntervalPlan:
    """Divide the budget; ``plan(options)`` plans the fit alone."""
    privacy = options.privacy
    assert isinstance(privacy, LabelDP | RecordDP)
    if isinstance(privacy, RecordDP) and privacy.bounds == PRIVATE:
        raise ValueError(
            "intervals need bounds of the columns from public knowledge; give bounds, or leave "
            "intervals out"
        )
    epsilon, delta = privacy.epsilon, privacy.delta
    mu = interval_sensitivity(epsilon, delta)

    def alone(share: float) -> tuple[Plan, tuple[Loss, ...]]:
        part = replace(privacy, epsilon=share)
        found = plan(replace(options, privacy=part, ledger=None))
        return found, found.guarantee.losses

    inner = divided(epsilon, delta, mu, alone)
    stated = inner.guarantee
    whole = IntervalPlan(options, inner, stated, inner.seeded, mu)
    asked = declared(whole.program, whole.shape[0])
    losses = [query.loss for query in asked if query.loss is not None]
    own = asked[len(stated.losses) :]
    if len(losses) < len(asked) or any(one.neighbours != stated.neighbours for one in own):
        raise UndeclaredError
    said = dict.fromkeys(query.sentence for query in own)
    return whole.stating(
        replace(
            stated,
            parameters=tuple({**dict(stated.parameters), "epsilon": epsilon}.items()),
            losses=tuple(losses),
            released=(*stated.released, *said, _ALSO),
        )
    )
