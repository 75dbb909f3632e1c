"""What is predicted of a choice of columns and of the fit of them, and of a fit of all columns."""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np

from privasso._tuned import CHOICE_CLIP, TRUE_COLUMNS
from privasso.planning._screening_forecast import ScreeningPrior, association_law
from privasso.planning._screening_settings import ScreeningSettings, direct_r2

#: Parts of the variance of the labels that a column may explain.
STRENGTHS = (0.01, 0.02, 0.05, 0.1)
#: Simulated tables, and choices from each.
_TABLES, _DRAWS = 20, 6


@dataclass(frozen=True)
class Expected:
    """R² that is predicted if so many columns have coefficients.

    Attributes
    ----------
    n_true : int
        Number of columns with coefficients.
    screened, direct : float
        R² of the fit of chosen columns, and of a fit of all; zero where it is worse than no fit.
    found : float
        Chance that a column with a coefficient is chosen.
    common : float
        Part of the chosen columns that two choices from the same table have in common, in the
        first round and on average over simulated tables.
    """

    n_true: int
    screened: float
    direct: float
    found: float
    common: float


@dataclass(frozen=True)
class ScreeningOutlook:
    """Predictions for independent columns from the size of the table and the budget alone.

    Attributes
    ----------
    settings : ScreeningSettings
        Number of columns, rounds and shares.
    n_rows, n_columns : int
        Size of the table.
    explained : float
        Part of the variance of the labels that all columns explain together.
    missed : tuple of (float, float)
        Parts of the variance that a single column explains, and the chance that such a column is
        not among those of the first round.
    lines : tuple of Expected
        By the number of columns with coefficients.
    """

    settings: ScreeningSettings
    n_rows: int
    n_columns: int
    explained: float
    missed: tuple[tuple[float, float], ...]
    lines: tuple[Expected, ...]

    @classmethod
    def of(
        cls,
        settings: ScreeningSettings,
        n_rows: int,
        n_columns: int,
        prior: ScreeningPrior | None = None,
        n_true: Sequence[int] = TRUE_COLUMNS,
    ) -> ScreeningOutlook:
        """Predict for a table of this size; `prior` says all but the numbers of true columns."""
        prior = ScreeningPrior() if prior is None else prior
        chances = settings.chances(prior, n_rows, n_columns, STRENGTHS)
        size, lines = (n_rows, n_columns), []
        for number in [k for k in n_true if k < n_columns] or [1]:
            one = replace(prior, n_true=number)
            direct = direct_r2(one, settings.epsilon, settings.delta, *size, settings.neighbours)
            lines.append(
                Expected(
                    number,
                    max(settings.r2(one, *size), 0.0),
                    max(direct, 0.0),
                    settings.found(one, *size),
                    common_part(settings, one, *size),
                )
            )
        missed = tuple(zip(STRENGTHS, (1.0 - chances).tolist(), strict=True))
        return cls(settings, n_rows, n_columns, prior.explained, missed, tuple(lines))

    @property
    def better(self) -> str:
        """``"screened"`` or ``"direct"``, by the mean over the numbers of true columns."""
        gain = sum(one.screened - one.direct for one in self.lines)
        return "screened" if gain > 0.0 else "direct"

    def in_words(self) -> str:
        """What is predicted, and for what."""
        about = (
            f"Predicted for independent columns that together explain {self.explained:.0%} of the "
            "labels."
        )
        if self.settings.components:
            return (
                f"{about} The columns of this table are correlated: its first "
                f"{self.settings.components} principal components are fitted, too, and labels "
                "that follow them are predicted better than this."
            )
        best = {"screened": "choosing columns first", "direct": "a fit of all columns"}
        return f"{about} On average over these numbers of columns {best[self.better]} is better."

    def to_dict(self) -> dict[str, object]:
        """Plain values for JSON."""
        return {
            "columns": self.settings.columns,
            "rounds": self.settings.further + 1,
            "components": self.settings.components,
            "share": self.settings.share,
            "explained": self.explained,
            "missed": [{"explains": part, "missed": chance} for part, chance in self.missed],
            "predicted": [
                {
                    "columns_with_coefficients": one.n_true,
                    "r2_screened": one.screened,
                    "r2_direct": one.direct,
                    "found": one.found,
                    "in_common": one.common,
                }
                for one in self.lines
            ],
            "better": self.better,
        }


def common_part(
    settings: ScreeningSettings, prior: ScreeningPrior, n_rows: int, n_columns: int
) -> float:
    """Part of the chosen columns that two choices from one table have in common.

    Associations of independent columns are drawn from their Gaussian law, and Gumbel noise several
    times for the same associations. The outcome is the same each time: the seed is fixed.

    Examples
    --------
    >>> settings = ScreeningSettings(10, 0.5, 1.0, 1e-6)
    >>> few, many = (common_part(settings, ScreeningPrior(), m, 2000) for m in (200, 20_000))
    >>> few < 0.1, many > 0.9
    (True, True)
    """
    rng = np.random.default_rng(0)
    law = association_law(settings.known(prior), n_rows, clip=CHOICE_CLIP)
    means = np.zeros(n_columns)
    means[: min(prior.n_true, n_columns)] = law.mean(prior.explained / prior.n_true)
    gumbel, count = settings.span * CHOICE_CLIP / settings.choices.epsilon_each, settings.count
    shared = []
    for _ in range(_TABLES):
        sizes = np.abs(means + law.deviation * rng.standard_normal(n_columns))
        chosen = []
        for _ in range(_DRAWS):
            noisy = sizes + gumbel * rng.gumbel(size=n_columns)
            chosen.append(set(np.argpartition(noisy, -count)[-count:].tolist()))
        shared += [len(one & two) / count for one, two in itertools.combinations(chosen, 2)]
    return float(np.mean(shared))
