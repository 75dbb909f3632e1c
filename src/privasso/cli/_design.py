"""`privasso design`: choose λ and the noise for a given amount of privacy, without data."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, cast

from privasso.cli._model_settings import ModelSettings
from privasso.cli._options import (
    FIGURES,
    AsJson,
    Delta,
    Epsilon,
    Force,
    LabelDpFlag,
    YBounds,
    check_ending,
    label_budget,
    option,
    option_name,
    tell,
)

if TYPE_CHECKING:
    from privasso.design import Target
    from privasso.privacy import LabelDP, RecordBudget

#: Columns of a correlation that is for any number of them, unless --n-features says otherwise.
_COLUMNS = 200
#: What a design must meet: exactly one is given. Limits, by their targets, and budgets.
_LIMITS = {"max_onavekl": "MaxLeakage", "max_advantage": "MaxAdvantage", "max_error": "MaxError"}
_TARGETS = (*_LIMITS, "label_dp", "record_dp")


@dataclass(frozen=True)
class DesignSettings:
    """What a design must meet, in the order of the help."""

    max_onavekl: float | None = option("Largest on-average KL divergence κ.")
    max_advantage: float | None = option("Largest advantage of the best attack, on average.")
    max_error: float | None = option("Largest prediction error E.")
    label_dp: LabelDpFlag = False
    record_dp: bool = option("Protect whole records (mechanism: objective).", False)
    mechanism: str | None = option(
        "release: noise on Fᵀy. objective: noise in the objective of a fit that clips "
        "residuals. The default is release with --label-dp and objective with --record-dp."
    )
    epsilon: Epsilon = None
    delta: Delta = None
    y_bounds: YBounds = None
    lam: float | None = option("Use this λ instead of choosing one.")
    family: str = option(
        "Shape of the noise: power (∝ v^γ); with --covariance power (∝ C^γ) or full.",
        "power",
    )
    scale_error: float = option("τ: the noise follows v·exp(τZ) instead of v.", 0.0)

    def budgets(self) -> tuple[LabelDP | None, RecordBudget | None]:
        """The budget of labels and that of records, of which at most one is given."""
        from privasso.privacy import RecordBudget

        given = [name for name in _TARGETS if getattr(self, name) not in (None, False)]
        if len(given) != 1:
            names = " and ".join(map(option_name, given))
            found = f"{names} were given" if given else "none was given"
            raise ValueError(
                "say what the design must meet by exactly one of "
                f"{', '.join(map(option_name, _TARGETS))}: {found}; try "
                "privasso design --max-onavekl 2"
            )
        if not self.record_dp:
            return label_budget(self.label_dp, self.epsilon, self.delta, self.y_bounds), None
        if self.epsilon is None or self.delta is None:
            raise ValueError("--record-dp needs --epsilon and --delta")
        if self.y_bounds is not None:
            raise ValueError(
                "--y-bounds plays no part with --record-dp, where residuals are clipped; leave it "
                "out"
            )
        return None, RecordBudget(self.epsilon, self.delta)

    def target(self, budget: LabelDP | RecordBudget | None) -> Target:
        """What is given, as a target."""
        from privasso import design
        from privasso._validation import positive_float

        if budget is not None:
            return design.Budget(budget, cast(Any, self.mechanism))
        if self.mechanism is not None:
            raise ValueError("--mechanism goes with --label-dp or --record-dp; leave it out")
        name = next(name for name in _LIMITS if getattr(self, name) is not None)
        return getattr(design, _LIMITS[name])(
            positive_float(option_name(name), getattr(self, name))
        )


@dataclass(frozen=True)
class DesignFiles:
    """Where a design goes."""

    plot: Path | None = option("Draw least errors and noise to this file (png, pdf, svg).")
    out: Path | None = option("Write λ and the noise to this file, for `fit --design`.")
    force: Force = False


def design(
    ask: DesignSettings, columns: ModelSettings, files: DesignFiles, as_json: AsJson = False
) -> None:
    """Choose λ, the level of the noise and its shape for a given amount of privacy, without data.

    Give one target: --max-onavekl, --max-advantage, --max-error, --label-dp or --record-dp.

    Example: `privasso design --scales lognormal:0,0.5 --max-onavekl 2 --out design.json`

    Correlated columns: `privasso design --covariance ar:0.8 --n-features 200 --max-onavekl 2`
    """
    from privasso.cli._design_show import record, text
    from privasso.cli._outputs import DESIGN, PICTURE, Outputs, files_read
    from privasso.cli._progress import working
    from privasso.design import optimal_design, save_design

    check_ending("--plot", files.plot, *FIGURES)
    budget, records = ask.budgets()
    target, model, n_features = ask.target(budget or records), columns.model(), columns.n_features
    where = None if model.covariance is None else "--covariance"
    if records is not None or ask.mechanism == "objective":
        where = "mechanism objective"
    if where is not None and (files.out is not None or files.plot is not None):
        raise ValueError(f"--out and --plot are not for {where}; use --json to keep it")
    if model.covariance is not None and n_features is None and model.covariance.n_columns is None:
        n_features = _COLUMNS
    with Outputs(reads=files_read(columns.scales), force=files.force) as outputs:
        outputs.claim("--out", files.out, DESIGN)
        outputs.claim("--plot", files.plot, PICTURE)
        with working("Searching", quiet=as_json):
            best: Any = optimal_design(
                model, target, lam=ask.lam, family=ask.family, n_features=n_features,
                scale_error=ask.scale_error, rng=columns.seed,
            )  # fmt: skip
            if model.covariance is not None:
                best.comparison()  # takes longest, and is kept
        if files.out is not None:
            save_design(best, files.out)
        tell(record(best) if as_json else text(best, budget))
        if files.plot is not None:
            from privasso.cli._plots import draw_design

            with working("Drawing", quiet=as_json):
                draw_design(best, budget, ask.scale_error, files.plot)
        if not as_json:
            for path in filter(None, (files.out, files.plot)):
                print(f"wrote {path}")
