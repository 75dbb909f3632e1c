"""The settings of a fit of whole records, all of them public, as numbers and in words."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from privasso.fit import RecordPlan
from privasso.planning import ScreeningPrior
from privasso.privacy import RecordDP
from privasso.programs import (
    Level,
    PerturbedObjective,
    ScreenedObjective,
    ShapedObjective,
    StatisticsMechanism,
)

#: Parts of the variance of the labels that a column may explain, and what is expected of the table.
_STRENGTHS, _PRIOR = (0.01, 0.02, 0.05, 0.1), ScreeningPrior()


@dataclass(frozen=True)
class RecordMechanism:
    """How records become coefficients; no number here depends on a record.

    - `name`: ``"objective"``, ``"logistic"`` or ``"statistics"``.
    - `numbers`: in units of labels of range 1 and of columns that are divided by half the range of
      their bounds (by their scales, where these are found); λ is in units of the labels.
    - `before`: what is released before the fit.
    - `share`: part of the budget for that.
    - `unit`: what columns are divided by.
    - `label_width`: range of the labels.
    - `chances`: where columns are chosen: parts of the variance of the labels, and the predicted
      chance that a column which explains so much is among those of the first round.
    """

    name: str
    numbers: dict[str, float]
    before: tuple[str, ...]
    share: float
    unit: str
    label_width: float
    chances: tuple[tuple[float, float], ...] = ()

    @classmethod
    def of(cls, plan: RecordPlan) -> RecordMechanism:
        """The mechanism of a plan."""
        objective, privacy = plan.objective, plan.options.privacy
        if isinstance(objective, StatisticsMechanism):
            name = "statistics"
            numbers = {"radius": objective.radius, "sigma": objective.sigma, "mu": objective.mu}
        else:
            name, noise = "objective", objective.noise
            keys = ("kappa", "radius", "ridge", "t", "sigma", "c")
            name = "logistic" if noise.loss.slope == "logistic" else name
            numbers = {key: getattr(noise, key) for key in keys}
            level = _level(objective)
            if level is not None:
                numbers["level"] = level.noise(plan.guarantee["n_rows"])
        unit, before, share, chances = "its standard deviation", (), 0.0, ()
        if isinstance(privacy, RecordDP):
            unit, before, share = _unit(privacy), privacy.released_before, privacy.share
        if isinstance(objective, ShapedObjective):
            unit += ", and rows in the norm of the shape"
        if isinstance(objective, ScreenedObjective):
            before, share = plan.guarantee.released[:1], objective.settings.share
            size = int(plan.guarantee["n_rows"]), len(objective.screening.bounds)
            found = objective.settings.chances(_PRIOR, *size, _STRENGTHS)
            chances = tuple(zip(_STRENGTHS, found.tolist(), strict=True))
        return cls(
            name,
            {**numbers, "lam": plan.lam},
            before,
            share,
            unit,
            privacy.label_width or 1.0,
            chances,
        )

    def lines(self) -> list[tuple[str, str]]:
        """A table in words: what is set, and to what."""
        x = self.numbers
        lines = [("each column is divided by", self.unit)]
        if self.name == "logistic":
            lines += [
                ("mechanism", "objective perturbation of a logistic regression"),
                ("strongest pull of a record, R; longer rows weigh less", f"{x['radius']:.4g}"),
                ("ridge, Λ", f"{x['ridge']:.4g} (t = {x['t']:.3g})"),
                ("noise on the gradient, σ", f"{x['sigma']:.4g}"),
                ("one record moves the gradient by at most", f"{x['c']:.4g} σ"),
            ]
        elif self.name == "objective":
            lines += [
                ("mechanism", "objective perturbation"),
                (
                    "largest residual that is not clipped, κ",
                    f"{x['kappa']:.3g} of the range of the labels: "
                    f"{x['kappa'] * self.label_width:.3g}",
                ),
                ("longest row, R; longer ones are shrunk with their labels", f"{x['radius']:.4g}"),
                ("ridge, Λ = R²/t", f"{x['ridge']:.4g} (t = {x['t']:.3g})"),
                ("noise on the gradient, σ", f"{x['sigma']:.4g}"),
                ("one record moves the gradient by at most", f"{x['c']:.4g} σ"),
            ]
        else:
            lines += [
                ("mechanism", "noisy sums of products of covariates and labels"),
                ("longest row with its label, R; longer ones are shrunk", f"{x['radius']:.4g}"),
                ("noise on a sum of squares, σ", f"{x['sigma']:.4g}"),
                ("one record moves all sums together by at most", f"{x['mu']:.4g} σ"),
            ]
        if "level" in x:
            lines.append(
                (
                    "noise of the mean that corrects the intercept",
                    f"{x['level']:.3g} of the range of the labels",
                )
            )
        unit = "" if self.name == "logistic" else ", in units of the labels"
        lines.append((f"λ{unit}", f"{x['lam']:.6g}"))
        if self.before:
            lines.append(
                (f"released before the fit, for {self.share:g} of μ²", "; ".join(self.before))
            )
        lines += [
            (
                f"chance that a column is chosen which explains {part:.0%} of the labels",
                f"at least {chance:.2f} (predicted for independent columns)",
            )
            for part, chance in self.chances
        ]
        return lines

    def to_dict(self) -> dict[str, Any]:
        """Plain values for JSON."""
        found = {"name": self.name, **self.numbers, "released_before": list(self.before)}
        if self.chances:
            found["chances"] = [{"explains": x, "chosen": p} for x, p in self.chances]
        return found


def _unit(privacy: RecordDP) -> str:
    """What columns are divided by."""
    if privacy.scales == "private":
        return "its scale, which is found with noise"
    found = privacy.bounds == "private"
    return "half the range that is found" if found else "half the range of its bounds"


def _level(objective: PerturbedObjective | ScreenedObjective | ShapedObjective) -> Level | None:
    """How the intercept is corrected, if it is."""
    return objective.table.level if isinstance(objective, ShapedObjective) else objective.level
