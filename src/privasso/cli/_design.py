"""`privasso design`: choose λ and the noise for a given amount of privacy, without data."""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, cast

from privasso._text import aligned, finite
from privasso._types import Found, Passed
from privasso.cli._fit import FitSettings
from privasso.cli._model_settings import ModelSettings
from privasso.cli._options import (
    NO_BOUND,
    AsJson,
    Force,
    option,
    option_name,
    tell,
)

if TYPE_CHECKING:
    from privasso.design import OptimalDesign, Target
    from privasso.privacy import LabelDP

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
    mechanism: str | None = option(
        "release: noise on Fᵀy. objective: noise in the objective of a fit that clips "
        "residuals. The default is release with --label-dp and objective with --record-dp."
    )
    lam: float | None = option("Use this λ instead of choosing one.")
    family: str = option(
        "Shape of the noise: power (∝ v^γ); with --covariance power (∝ C^γ) or full.",
        "power",
    )
    scale_error: float = option("τ: the noise follows v·exp(τZ) instead of v.", 0.0)

    def target(self, budget: FitSettings) -> tuple[Target, LabelDP | None]:
        """What the design must meet, and the budget of labels if it is one."""
        from privasso import design
        from privasso._validation import positive_float
        from privasso.cli._fit_check import privacy_from
        from privasso.privacy import RecordBudget

        asked = {**vars(budget), **vars(self)}
        given = [name for name in _TARGETS if asked[name] not in (None, False)]
        if len(given) != 1:
            names = " and ".join(map(option_name, given))
            found = f"{names} were given" if given else "none was given"
            raise ValueError(
                "say what the design must meet by exactly one of "
                f"{', '.join(map(option_name, _TARGETS))}: {found}; try "
                "privasso design --max-onavekl 2"
            )
        mechanism: Passed = self.mechanism
        epsilon, delta, y_bounds = budget.epsilon, budget.delta, budget.y_bounds
        if budget.record_dp:
            if epsilon is None or delta is None:
                raise ValueError("--record-dp needs --epsilon and --delta")
            if y_bounds is not None:
                raise ValueError(
                    "--y-bounds plays no part with --record-dp, where residuals are clipped; leave "
                    "it out"
                )
            return design.Budget(RecordBudget(epsilon, delta), mechanism), None
        if budget.label_dp:
            labels = cast("LabelDP", privacy_from(budget))
            return design.Budget(labels, mechanism), labels
        if (epsilon, delta, y_bounds) != (None, None, None):
            raise ValueError("--epsilon, --delta and --y-bounds need --label-dp; add it")
        if mechanism is not None:
            raise ValueError("--mechanism goes with --label-dp or --record-dp; leave it out")
        limit = getattr(design, _LIMITS[given[0]])
        return limit(positive_float(option_name(given[0]), getattr(self, given[0]))), None


@dataclass(frozen=True)
class DesignFiles:
    """Where a design goes."""

    out: Path | None = option("Write λ and the noise to this file, for `fit --design`.")
    force: Force = False


def design(
    ask: DesignSettings,
    protects: Annotated[FitSettings, "label_dp record_dp epsilon delta y_bounds"],
    columns: ModelSettings,
    files: DesignFiles,
    as_json: AsJson = False,
) -> None:
    """Choose λ, the level of the noise and its shape for a given amount of privacy, without data.

    Give one target: --max-onavekl, --max-advantage, --max-error, --label-dp or --record-dp.

    Example: `privasso design --scales lognormal:0,0.5 --max-onavekl 2 --out design.json`

    Correlated columns: `privasso design --covariance ar:0.8 --n-features 200 --max-onavekl 2`
    """
    from privasso.cli._outputs import DESIGN, Outputs, files_read
    from privasso.cli._progress import working
    from privasso.design import optimal_design, save_design

    (target, budget), model, n_features = ask.target(protects), columns.model(), columns.n_features
    where = None if model.covariance is None else "--covariance"
    if protects.record_dp or ask.mechanism == "objective":
        where = "mechanism objective"
    if where is not None and files.out is not None:
        raise ValueError(f"--out is not for {where}; use --json to keep it")
    if model.covariance is not None and n_features is None and model.covariance.n_columns is None:
        n_features = _COLUMNS
    with Outputs(reads=files_read(columns.scales), force=files.force) as outputs:
        outputs.claim("--out", files.out, DESIGN)
        with working("Searching", quiet=as_json):
            best: Found = optimal_design(
                model, target, lam=ask.lam, family=ask.family, n_features=n_features,
                scale_error=ask.scale_error, rng=columns.seed,
            )  # fmt: skip
            if model.covariance is not None:
                best.comparison()  # takes longest, and is kept
        if files.out is not None:
            save_design(best, files.out)
        tell(_record(best) if as_json else _text(best, budget))
        if files.out is not None and not as_json:
            print(f"wrote {files.out}")


#: Fields of the JSON object: of noise on Fᵀy and of objective perturbation, each for independent
#: and for correlated columns.
_FIELDS = {
    (False, False): "lam noise E rho_hat stability onavekl multiplier null_error nearly_null "
    "constraint comparison",
    (False, True): "lam sigma noise E E_standard_error rho_hat n_features stability onavekl "
    "onavekl_standard_error weight certificate constraint comparison",
    (True, False): "mechanism covers epsilon delta kappa t lam sigma gamma radius noise ridge E "
    "rho_hat explained null_error nearly_null",
    (True, True): "mechanism covers epsilon delta kappa t radius lam sigma noise E "
    "E_standard_error rho_hat n_features null_error nearly_null comparison",
}
_HEADS = {"noise": "tuned for the same target", "kappa": "κ", "lam": "λ", "sigma": "σ"}
_HEADS |= {"E": "error E", "E_se": "±", "rho_hat": "ρ̂", "onavekl": "OnAveKL"}
_USELESS = (
    "Warning: releasing nothing has the error {:.4g}. At this privacy the model is hardly worth "
    "fitting; more rows per column would help."
)


def _kind(best: Found) -> tuple[bool, bool]:
    """Whether it is objective perturbation, and whether columns are correlated."""
    return hasattr(best, "kappa"), best.point.model.covariance is not None


def _record(best: Found) -> dict[str, object]:
    """The design as plain values; null where a number is not finite."""
    from privasso.noise import noise_to_dict

    point, kind = best.point, _kind(best)
    computed = {
        "mechanism": lambda: "objective",
        "E_standard_error": lambda: point.standard_errors.E,
        "n_features": lambda: point.model.covariance.n_columns,
        "onavekl": lambda: finite(best.onavekl()),
        "onavekl_standard_error": lambda: finite(point.onavekl_error),
        "multiplier": lambda: finite(best.multiplier),
        "noise": lambda: _shape(best) if kind[1] else noise_to_dict(best.noise),
        "ridge": lambda: noise_to_dict(best.ridge),
        "constraint": lambda: {"kind": best.constraint.kind, "target": best.constraint.target},
        "comparison": lambda: _compared(best),
    }
    names = _FIELDS[kind].split()
    plain = {name: getattr(best, name, getattr(point, name, None)) for name in names}
    return {name: computed[name]() if name in computed else plain[name] for name in names}


def _compared(best: Found) -> Found:
    """The designs beside this one: by their names, or for correlated columns in a list."""
    if _kind(best)[1]:
        rows = best.comparison().iter_rows(named=True)
        return [{k: x if isinstance(x, str) else finite(x) for k, x in r.items()} for r in rows]
    return {name: _numbers(one, one.ratio) for name, one in best.comparison.items()}


def _numbers(one: Found, ratio: float) -> dict[str, float | None]:
    sigma = one.noise.sigma if hasattr(one, "noise") else one.sigma
    numbers = {"E": one.E, "lam": one.lam, "sigma": sigma, "onavekl": one.onavekl()}
    return {name: finite(x) for name, x in (numbers | {"ratio": ratio}).items()}


def _shape(best: Found) -> str:
    """The shape: a power of C or of v, or the weight whose best shape it is."""
    gamma, correlated = getattr(best.noise, "gamma", None), _kind(best)[1]
    if type(best.noise).__name__ == "MatrixPower":
        return f"C^{gamma:.3g}"
    if gamma is None:
        return f"full, W = {best.weight}"
    return f"diagonal, v^{gamma:g}" if correlated else f"v^{gamma:.2f}"


def _text(best: Found, budget: LabelDP | None) -> str:
    """The design and what is predicted for it; `budget` is that of --label-dp."""
    from privasso.privacy import exactly, rounded_up

    (formal, correlated), point, model = _kind(best), best.point, best.point.model
    level = best.sigma if formal or correlated else best.noise.sigma
    use = f"Clip residuals at κ = {best.kappa:.4g}; use" if formal else "Use"
    use += f" λ = {best.lam:.4g}, {'σ' if formal else 'σ_η'} = {level:.4g}"
    use += f" and t = {best.t:.4g}; ridge and" if formal else ","
    use += f" noise {'covariance' if correlated else 'variance'} ∝ {_shape(best)}."
    error = f"{point.E:.4g}" + (f" ± {point.standard_errors.E:.2g}" if correlated else "")
    least = f"label noise alone {model.sigma_xi**2:.4g}"
    if hasattr(best, "null_error"):
        least += f", releasing nothing {best.null_error:.4g}"
    predicted = f"Predicted: error {error} on a new record ({least}), "
    if formal and not correlated:
        predicted += f"{best.explained:.1%} of the signal explained, "
    predicted += f"{point.rho_hat:.1%} of the coefficients nonzero"
    if not formal:
        predicted += f", OnAveKL {best.onavekl():.4g}, ρ̂/α = {point.stability:.2f}"
    said, met = [use, f"{predicted}."], best if formal else budget
    words = "" if met is None else f"ε = {rounded_up(met.epsilon)}, δ = {rounded_up(met.delta)}"
    words = f"The noise meets {words} for "
    if formal:
        public = "the covariance C is" if correlated else "scales of columns are"
        said.append(
            f"{words}{best.covers} where ‖f‖ ≤ {best.radius:.4g} for all rows in units of the "
            f"noise shape, and {public} public."
        )
    elif budget is not None:
        low, high = map(exactly, budget.y_bounds)
        said.append(
            f"{words}labels in [{low}, {high}] on data of this model; a fit computes the level "
            "again from its own rows."
        )
    if not formal or correlated:
        found: Found = _compared(best)
        if not correlated:
            said.append(_against_isotropic(best))
            own = {"noise": "this design", **_numbers(best, 1.0)}
            found = [own, *({"noise": name, **x} for name, x in found.items())]
        head = [str(_HEADS.get(name, name)) for name in found[0]]
        said.append(aligned([head, *(_cells(row.values()) for row in found)]))
    if getattr(best, "certificate", None) is not None:
        said.append(
            "No noise of the same sensitivity has a smaller tr(WΣ), to a relative accuracy of "
            f"{max(best.certificate, 0.0):.0e}; W is the best of three that were tried."
        )
    if getattr(best, "nearly_null", False) and not (formal and correlated):
        said.append(_USELESS.format(best.null_error))
    return "\n".join(said if formal else [*said, NO_BOUND])


def _cells(numbers: Iterable[str | float | None]) -> list[str]:
    return ["—" if x is None else x if isinstance(x, str) else f"{x:.4g}" for x in numbers]


def _against_isotropic(best: OptimalDesign) -> str:
    """What the design gains over noise of one size, and the price of what it must meet."""
    ratio, price = best.comparison["isotropic"].ratio, best.constraint.price_in_words
    said = "Isotropic noise on all columns cannot meet the target."
    if math.isfinite(ratio):
        by_error = best.constraint.kind == "max_error"
        what, same = ("OnAveKL", "error") if by_error else ("The error", "privacy")
        less = f"{1.0 - 1.0 / ratio:.0%} lower"
        said = f"{what} is {less} than with isotropic noise at the same {same}."
    if not all(math.isfinite(other.E) for other in best.comparison.values()):
        said += " What cannot (—) may be possible for a given number of columns: --n-features."
    return f"{said} Price of the constraint, {price.format(best.multiplier)}."
