"""What is decided about a fit before private data are read, as numbers and in words."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

import numpy as np

from privasso._text import aligned, escaped
from privasso.fit import Plan
from privasso.noise import Noise, NoiseDesign, noise_to_dict
from privasso.operators import Covariates
from privasso.planning import ScreeningOutlook
from privasso.programs import Calibration
from privasso.report._columns import QUANTILES, ColumnNoise, column_noise, quantiles


@dataclass(frozen=True, eq=False)
class LabelMechanism:
    """How labels become a release; no number here depends on a label.

    - `plan`: the plan of the fit.
    - `rows`, `calibration`: its covariates and noise.
    - `names`: names of the columns.
    """

    plan: Plan = field(repr=False)
    rows: Covariates = field(repr=False)
    calibration: Calibration
    names: Sequence[str]

    @property
    def columns(self) -> ColumnNoise:
        """The noise of each column."""
        return column_noise(self.rows, self.calibration.covariance)

    @property
    def constant(self) -> list[str]:
        """Columns without data, whose coefficients are zero."""
        live = self.rows.live
        return [name for name, lives in zip(self.names, live, strict=True) if not lives]

    def to_dict(self) -> dict[str, object]:
        """Plain values for JSON; those of a perturbed objective are for labels of range 1."""
        rows, made, noise = self.rows, self.calibration, self.plan.noise
        perturbed = None
        if made.objective is not None:
            keys = ("c", "kappa", "ridge", "sigma", "t")
            perturbed = {key: getattr(made.objective, key) for key in keys}
        return {
            "columns_without_data": self.constant,
            "noise": {**(noise_to_dict(noise) or {}), **_spread(made.covariance.sigma)},
            "shrunk_rows": made.shrunk[0],
            "mean_weight_of_shrunk_rows": made.shrunk[1],
            "mu": made.mu,
            "perturbed_objective": perturbed,
            "noise_of_label_sum": made.sigma_sum if rows.centred else None,
            "in_label_units": _spread(self.columns.in_label_units[rows.live]),
        }

    def text(self) -> str:
        """What is done to rows and labels, and the noise over the columns."""
        columns = self.columns
        table = aligned([["", *QUANTILES], *columns.table()])
        effect = [columns.in_words()] if self.plan.options.classes is None else []
        return "\n".join([*self._sentences(), "", "Over the columns", table, *effect])

    def _sentences(self) -> list[str]:
        made, shrunk = self.calibration, self.calibration.shrunk
        said = [f"Noise: {noise_words(self.plan.noise)}."]
        if self.constant:
            shown = escaped(", ".join(self.constant))
            said.insert(0, f"Constant, with coefficient zero: {shown}.")
        if shrunk[0]:
            said.append(
                f"Rows shrunk with their labels: {shrunk[0]}, on average by the factor "
                f"{shrunk[1]:.2g}."
            )
        if made.mu is not None:
            said.append(
                "Sensitivity: changing one label within its bounds moves the release by at most "
                f"μ = {made.mu:.4g} standard deviations of its noise."
            )
        if made.objective is not None:
            x = made.objective
            said.append(
                f"Mechanism: objective perturbation. Residuals beyond {x.kappa:.2g} of the range "
                f"of the labels are clipped, and the ridge is {x.ridge:.3g} (t = {x.t:.3g}); one "
                f"label moves the gradient by at most c = {x.c:.4g} standard deviations of the "
                "noise."
            )
        return said


#: The mechanisms in words, and what is said of the radius of each.
_WORDS = {
    "logistic": (
        "objective perturbation of a logistic regression",
        "strongest pull of a record, R; longer rows weigh less",
    ),
    "objective": (
        "objective perturbation",
        "longest row, R; longer ones are shrunk with their labels",
    ),
    "statistics": (
        "noisy sums of products of covariates and labels",
        "longest row with its label, R; longer ones are shrunk",
    ),
}


@dataclass(frozen=True)
class RecordMechanism:
    """How records become coefficients; no number here depends on a record.

    - `name`: ``"objective"``, ``"logistic"`` or ``"statistics"``.
    - `numbers`: in units of labels of range 1 and of columns that are divided by half the range of
      their bounds (by their scales, where these are found); λ is in units of the labels.
    - `before`: what is released before the fit.
    - `share`: part of the budget for that.
    - `unit`: what columns are divided by.
    - `label_width`: range of the labels; None where it is found in them.
    - `chances`: where columns are chosen: parts of the variance of the labels, and the predicted
      chance that a column which explains so much is among those of the first round.
    """

    name: str
    numbers: dict[str, float]
    before: tuple[str, ...]
    share: float
    unit: str
    label_width: float | None
    chances: tuple[tuple[float, float], ...] = ()

    @classmethod
    def of(cls, plan: Plan) -> RecordMechanism | None:
        """The mechanism of a plan; None where questions hold public covariates."""
        facts, privacy = plan.asking.facts(plan.shape[0]), plan.options.privacy
        if facts is None:
            return None
        name, numbers, unit = facts
        (before, share), outlook = privacy.before, plan.outlook
        chances = ()
        if outlook is not None:
            before, share = plan.guarantee.released[:1], outlook.settings.share
            chances = tuple((part, 1.0 - missed) for part, missed in outlook.missed)
        width = None if plan.range is not None else privacy.label_width or 1.0
        return cls(name, {**numbers, "lam": plan.lam}, before, share, unit, width, chances)

    def lines(self) -> list[tuple[str, str]]:
        """A table in words: what is set, and to what."""
        x, perturbed = self.numbers, self.name != "statistics"
        mechanism, longest = _WORDS[self.name]
        lines = [("each column is divided by", self.unit), ("mechanism", mechanism)]
        if self.name == "objective":
            kappa = f"{x['kappa']:.3g} of the range of the labels"
            width = self.label_width
            kappa += "" if width is None else f": {x['kappa'] * width:.3g}"
            lines.append(("largest residual that is not clipped, κ", kappa))
        lines.append((longest, f"{x['radius']:.4g}"))
        if perturbed:
            ridge = "ridge, Λ = R²/t" if self.name == "objective" else "ridge, Λ"
            lines.append((ridge, f"{x['ridge']:.4g} (t = {x['t']:.3g})"))
        on, moved = (
            ("the gradient",) * 2 if perturbed else ("a sum of squares", "all sums together")
        )
        lines.append((f"noise on {on}, σ", f"{x['sigma']:.4g}"))
        sensitivity = x["c"] if perturbed else x["mu"]
        lines.append((f"one record moves {moved} by at most", f"{sensitivity:.4g} σ"))
        if "level" in x:
            level = f"{x['level']:.3g} of the range of the labels"
            lines.append(("noise of the mean that corrects the intercept", level))
        of = "the labels" if self.label_width is not None else "the range of the labels"
        unit = "" if self.name == "logistic" else f", in units of {of}"
        lines.append((f"λ{unit}", f"{x['lam']:.6g}"))
        if self.before:
            what = f"released before the fit, for {self.share:g} of μ²"
            lines.append((what, "; ".join(self.before)))
        for part, chance in self.chances:
            what = f"chance that a column is chosen which explains {part:.0%} of the labels"
            lines.append((what, f"at least {chance:.2f} (predicted for independent columns)"))
        return lines

    def text(self) -> str:
        """The table for a terminal."""
        width = max(len(what) for what, _ in self.lines())
        return "\n".join(f"  {what:<{width}}  {value}" for what, value in self.lines())

    def to_dict(self) -> dict[str, object]:
        """Plain values for JSON."""
        found = {"name": self.name, **self.numbers, "released_before": list(self.before)}
        if self.chances:
            found["chances"] = [{"explains": x, "chosen": p} for x, p in self.chances]
        return {"mechanism": found}


def mechanism_of(plan: Plan, names: Sequence[str] = ()) -> LabelMechanism | RecordMechanism | None:
    """The mechanism of a plan; None where columns are chosen by public covariates and labels."""
    if plan.covariates is None or plan.calibration is None:
        return RecordMechanism.of(plan)
    return LabelMechanism(plan, plan.covariates, plan.calibration, names)


def noise_words(noise: Noise | None) -> str:
    """The noise in words."""
    if noise is None:
        return "of a design that the file does not describe"
    of = " (v: squared scale)" if isinstance(noise, NoiseDesign) else ""
    return f"{noise.in_words()}{of}, root mean variance {noise.sigma:.4g}"


def _spread(values: np.ndarray) -> dict[str, float]:
    return {**quantiles(values), "root_mean_square": float(np.sqrt(np.mean(values**2)))}


OUTLOOK_TITLES = (
    "columns with coefficients",
    "R² of chosen columns",
    "R² of all columns",
    "chance that one is chosen",
    "in common in two choices",
)


def outlook_lines(outlook: ScreeningOutlook) -> list[str]:
    """How columns are chosen, and the chances of missing one."""
    settings = outlook.settings
    rounds = "one round" if settings.further == 0 else f"{settings.further + 1} rounds"
    said = [
        f"Columns: {settings.columns} of {outlook.n_columns} are chosen, in {rounds}, for "
        f"{settings.share:g} of the squared sensitivity."
    ]
    if settings.components:
        said.append(
            f"Components: the first {settings.components} of the covariates are fitted, too."
        )
    said += [
        f"Chance to miss in the first round a column that explains {part:.0%}: {chance:.2f}."
        for part, chance in outlook.missed
    ]
    return said


def outlook_table(outlook: ScreeningOutlook) -> list[list[str]]:
    """A line for each number of columns with coefficients."""
    return [
        [str(one.n_true), *(f"{x:.2f}" for x in (one.screened, one.direct, one.found, one.common))]
        for one in outlook.lines
    ]


def outlook_text(outlook: ScreeningOutlook) -> str:
    """All of it for a terminal."""
    table = aligned([OUTLOOK_TITLES, *outlook_table(outlook)])
    return "\n".join([*outlook_lines(outlook), "\nPredicted", table, outlook.in_words()])
