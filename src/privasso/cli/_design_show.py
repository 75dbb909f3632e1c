"""What `privasso design` says about a design: sentences with a table, or one JSON object."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from typing import Any

from privasso._text import aligned, finite
from privasso.cli._options import NO_BOUND
from privasso.design import CorrelatedDesign, ObjectiveDesign, OptimalDesign
from privasso.noise import MatrixPower, PowerLaw, noise_to_dict
from privasso.privacy import LabelDP, exactly, rounded_up

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
_HEADS = {"noise": "each tuned for the target", "kappa": "κ", "lam": "λ", "sigma": "σ"}
_HEADS |= {"E": "error E", "E_se": "±", "rho_hat": "ρ̂", "onavekl": "OnAveKL"}
_NAMES = {"isotropic": "isotropic noise", "gamma=1": "noise ∝ v", "gram": "Gram-based, ∝ v²"}


def record(best: Any) -> dict[str, object]:
    """The design as plain values; null where a number is not finite."""
    formal, correlated = isinstance(best, ObjectiveDesign), best.point.model.covariance is not None
    return {name: _value(best, name, correlated) for name in _FIELDS[formal, correlated].split()}


def text(best: Any, budget: LabelDP | None) -> str:
    """The design and what is predicted for it; `budget` is that of --label-dp."""
    correlated = best.point.model.covariance is not None
    if isinstance(best, ObjectiveDesign):
        said = [*_formal(best, correlated), *([_table(best)] if correlated else [])]
    elif correlated:
        said = [*_correlated(best), _table(best), NO_BOUND]
    else:
        said = _release(best, budget)
    return "\n".join(said)


def _value(best: Any, name: str, correlated: bool) -> object:
    """One field of the JSON object."""
    point = best.point
    if name == "comparison":
        if correlated:
            rows = best.comparison().iter_rows(named=True)
            return [{k: finite(x) if k != "noise" else x for k, x in r.items()} for r in rows]
        return {shape: _numbers(other) for shape, other in best.comparison.items()}
    if name in ("noise", "ridge"):
        return _shape(best) if correlated else noise_to_dict(getattr(best, name))
    if name == "constraint":
        return {"kind": best.constraint.kind, "target": best.constraint.target}
    computed = {
        "mechanism": lambda: "objective",
        "E_standard_error": lambda: point.standard_errors.E,
        "n_features": lambda: point.model.covariance.n_columns,
        "onavekl": lambda: finite(best.onavekl()),
        "onavekl_standard_error": lambda: finite(point.onavekl_error),
        "multiplier": lambda: finite(best.multiplier),
    }
    return computed[name]() if name in computed else getattr(best, name, getattr(point, name, None))


def _numbers(other: Any) -> dict[str, float | None]:
    """The numbers of a design that is compared."""
    numbers = {"E": other.E, "lam": other.lam, "sigma": other.sigma, "onavekl": other.onavekl()}
    return {name: finite(x) for name, x in (numbers | {"ratio": other.ratio}).items()}


def _predicted(error: str, best: Any, then: str) -> str:
    """The sentence on the error, beside the least that is possible and that of no model."""
    least = f"label noise alone {best.point.model.sigma_xi**2:.4g}"
    nothing = getattr(best, "null_error", None)
    if nothing is not None:
        least += f", releasing nothing {nothing:.4g}"
    return f"Predicted: error {error} on a new record ({least}), {then}"


def _release(best: OptimalDesign, budget: LabelDP | None) -> list[str]:
    shape = f"σ_η = {best.noise.sigma:.4g}, noise variance ∝ v^{best.gamma:.2f}"
    use = f"Use λ = {best.lam:.4g}, {shape}."
    said = _predicted(
        f"{best.E:.4g}",
        best,
        f"OnAveKL {best.onavekl():.4g}, {best.rho_hat:.1%} of the coefficients nonzero, ρ̂/α = "
        f"{best.stability:.2f}.",
    )
    if budget is not None:
        said += (
            f" The level meets ε = {rounded_up(budget.epsilon)}, δ = {rounded_up(budget.delta)} "
            f"for labels in [{exactly(budget.y_bounds[0])}, {exactly(budget.y_bounds[1])}] on data "
            "of this model; a fit computes the level again from its own rows."
        )
    ratio = best.comparison["isotropic"].ratio
    if not math.isfinite(ratio):
        said += " Isotropic noise on all columns cannot meet the target."
    else:
        by_error = best.constraint.kind == "max_error"
        what, same = ("OnAveKL", "error") if by_error else ("The error", "privacy")
        less = f"{1.0 - 1.0 / ratio:.0%} lower"
        said += f" {what} is {less} than with isotropic noise at the same {same}."
    # The design beside common ones that are tuned for the same target.
    rows = [["tuned for the same target", "λ", "σ_η", "error E", "OnAveKL", "ratio"]]
    own = (best.lam, best.noise.sigma, best.E, best.onavekl(), 1.0)
    rows.append(["this design", *_cells(own)])
    for name, x in best.comparison.items():
        rows.append([_NAMES[name], *_cells((x.lam, x.sigma, x.E, x.onavekl(), x.ratio))])
    return [use, said, aligned(rows), *_remarks(best)]


def _cells(numbers: Sequence[float]) -> list[str]:
    if not math.isfinite(numbers[2]):
        return ["—"] * len(numbers)
    return [*(f"{x:.4g}" for x in numbers[:-1]), f"{numbers[-1]:.3f}"]


def _remarks(best: OptimalDesign) -> Iterable[str]:
    if not all(math.isfinite(other.E) for other in best.comparison.values()):
        yield (
            "— : cannot meet the target in the limit of many columns; "
            "--n-features predicts for a given number of them."
        )
    yield f"Price of the constraint, {best.constraint.price_in_words.format(best.multiplier)}."
    if best.nearly_null:
        yield (
            f"Warning: releasing nothing has the error {best.null_error:.4g}. At this privacy the "
            "model is hardly worth fitting."
        )
    yield NO_BOUND


def _formal(best: ObjectiveDesign, correlated: bool) -> list[str]:
    error, explained = f"{best.E:.4g}", f"{best.explained:.1%} of the signal explained, "
    shape = "the same on all columns" if best.gamma == 0.0 else f"∝ v^{best.gamma:.2f}"
    mean = best.ridge.mean_power
    ridge = f", that is a ridge of mean {mean:.4g}; noise variance and ridge {shape}"
    public = (
        "scales of columns are public. The prediction is for independent columns and normal label "
        "noise"
    )
    if correlated:
        error, explained = f"{error} ± {best.point.standard_errors.E:.2g}", ""
        ridge = f"; covariance of the noise, and ridge: {_shape(best)}"
        public = "the covariance C is public"
    said = [
        f"Clip residuals at κ = {best.kappa:.4g}; use λ = {best.lam:.4g}, σ = {best.sigma:.4g} and "
        f"t = {best.t:.4g}{ridge}.",
        _predicted(error, best, f"{explained}{best.rho_hat:.1%} of the coefficients nonzero."),
        f"The noise meets ε = {rounded_up(best.epsilon)}, δ = {rounded_up(best.delta)} for "
        f"{best.covers} where ‖f‖ ≤ {best.radius:.4g} for all rows in units of the noise shape, "
        f"and {public}.",
    ]
    if best.nearly_null and not correlated:
        said.append(
            "Warning: releasing nothing is about as accurate. At this privacy the model is hardly "
            "worth fitting; more rows per column would help."
        )
    return said


def _correlated(best: CorrelatedDesign) -> list[str]:
    fp = best.point
    said = [
        f"Use λ = {best.lam:.4g} and noise of mean standard deviation {best.sigma:.4g}; "
        f"covariance of the noise: {_shape(best)}.",
        _predicted(
            f"{fp.E:.4g} ± {fp.standard_errors.E:.2g}",
            best,
            f"OnAveKL {best.onavekl():.4g}, {fp.rho_hat:.1%} of the coefficients nonzero, ρ̂/α = "
            f"{fp.stability:.2f}.",
        ),
    ]
    if best.certificate is not None:
        said.append(
            "No noise of the same sensitivity has a smaller tr(WΣ), to a relative accuracy of "
            f"{max(best.certificate, 0.0):.0e}; W is the best of three that were tried."
        )
    return said


def _table(best: Any) -> str:
    """The comparison of shapes for correlated columns."""
    found = best.comparison()
    rows = [
        ["—" if x is None else x if isinstance(x, str) else f"{x:.4g}" for x in row]
        for row in found.iter_rows()
    ]
    return aligned([[_HEADS.get(name, str(name)) for name in found.columns], *rows])


def _shape(best: Any) -> str:
    """The shape in words: a power of C, or the weight whose best shape it is."""
    if isinstance(best.noise, MatrixPower):
        return f"C^{best.noise.gamma:.3g}"
    if isinstance(best.noise, PowerLaw):
        return f"diagonal, v^{best.noise.gamma:g}"
    return f"full, W = {best.weight}"
