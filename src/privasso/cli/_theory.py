"""`privasso theory`: predict error, sparsity, stability and privacy without data."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING

from privasso._text import finite
from privasso._types import Passed
from privasso.cli._model_settings import ModelSettings
from privasso.cli._options import NO_BOUND, AsJson, option, tell
from privasso.cli._progress import working

if TYPE_CHECKING:
    from privasso.theory import FixedPoint

MEANING = {
    "stable": "the estimator exists",
    "unstable": "no estimator exists: use less noise or a larger --lam",
    "infinite error": "the error grows with the number of columns: pass --n-features, "
    "or noise that vanishes with the scale, such as --noise power:1",
}
#: Columns that stand for many, where their number is not given.
_MANY = 1000


#: What is printed: a name, the key of the JSON object, and what it means.
_ROWS = (
    ("E", "E", "prediction error on a new record, label noise included"),
    ("ρ̂", "rho_hat", "fraction of nonzero coefficients"),
    ("ρ̂/α", "stability", "stability: the estimator exists below 1"),
    ("V", "V", "response of the other coefficients"),
    ("OnAveKL", "onavekl", "one record replaced, whole released vector (average)"),
    ("  bound", "onavekl_bound", "upper bound of it, for any covariance of noise"),
    ("  paper", "onavekl_paper", "the same, coefficient by coefficient"),
    ("attack", "attack_auc", "AUC of the best membership attack (average)"),
    ("  gain", "attack_advantage", "its true- minus false-positive rate"),
    ("critical σ", "critical_noise", "noise level at which the estimator ceases to exist"),
)


@dataclass(frozen=True)
class TheorySettings:
    """The options of `privasso theory` in the order of its help."""

    lam: float = option("Regularisation λ.", 0.2)
    sigma: float = option("Noise level σ_η.", 0.1)
    noise: str = option(
        "Shape of the noise: isotropic, gram or power:GAMMA; with --covariance also matrix:GAMMA, "
        "a power of the covariance matrix.",
        "gram",
    )
    draws: int = option("Draws to average over, with --covariance.", 8)


def theory(settings: TheorySettings, columns: ModelSettings, as_json: AsJson = False) -> None:
    """Predict error, sparsity, stability and average privacy at one point, without data.

    Example: `privasso theory --scales lognormal:0,0.5 --lam 0.2 --noise power:1 --sigma 0.1`

    Correlated columns: `privasso theory --covariance ar:0.8 --n-features 500 --noise matrix:1`
    """
    simulated = columns.covariance is not None
    with working("Simulating effective problems", quiet=as_json or not simulated):
        fp, record = _predicted(settings, columns)
    tell(record if as_json else _text(fp, record))


def _predicted(
    settings: TheorySettings, columns: ModelSettings
) -> tuple[FixedPoint, dict[str, Passed]]:
    """The fixed point, and all numbers as plain values."""
    import numpy as np

    from privasso.noise import column_noise_from_name, noise_from_name
    from privasso.theory import correlated_edge, critical_noise, state_evolution

    model, lam, n = columns.model(), settings.lam, columns.n_features
    names = "onavekl", "onavekl_paper", "attack_auc", "attack_advantage"
    leakage: dict[str, Passed] = dict.fromkeys(names)
    spread: dict[str, Passed] = {}
    asked: dict[str, Passed] = {}
    if columns.covariance is None:
        noise = noise_from_name("--noise", settings.noise, settings.sigma)
        fp = state_evolution(model, lam, noise, n_features=n)
        edge = critical_noise(model, lam, noise, n_features=n)
        leakage |= {"onavekl": fp.onavekl(), "onavekl_paper": fp.onavekl("paper")}
    else:
        rng, draws = np.random.default_rng(columns.seed), settings.draws
        noise = column_noise_from_name("--noise", settings.noise, settings.sigma)
        model = model.realised(n or (None if model.covariance.n_columns else _MANY), rng)
        fp = state_evolution(model, lam, noise, draws=draws, rng=rng)
        ratio = correlated_edge(model, noise, draws=draws, rng=rng).ratio
        edge = lam / ratio if ratio > 0.0 else math.inf
        asked = {"covariance": columns.covariance, "n_features": model.covariance.n_columns}
        asked["draws"] = fp.n_draws
        errors, leakage["onavekl_bound"] = {**fp.standard_errors._asdict(), "onavekl": None}, None
        if fp.status.value == "stable":
            leakage["onavekl_bound"] = fp.onavekl("bound")
            if fp.onavekl_is_known:
                leakage |= {"onavekl": fp.onavekl(), "onavekl_paper": fp.onavekl("paper")}
                errors["onavekl"] = fp.onavekl_error
        spread = {"standard_errors": {name: finite(x) for name, x in errors.items()}}
    if fp.status.value == "stable" and leakage["onavekl"] is not None:
        attack = fp.attack()
        leakage |= {"attack_auc": attack.auc, "attack_advantage": attack.advantage}
    numbers = {name: getattr(fp, name) for name in ("E", "V", "rho_hat", "stability")}
    numbers |= {**leakage, "critical_noise": edge}
    given = {name: getattr(model, name) for name in ("alpha", "rho", "sigma_xi")}
    given["scales"] = repr(model.scales)
    return fp, {
        "status": fp.status.value,
        **{name: finite(value) for name, value in numbers.items()},
        **spread,
        "input": {**given, **asked, "lam": lam, "noise": repr(fp.noise)},
    }  # fmt: skip


def _columns(record: dict[str, Passed]) -> str:
    """What the columns are like."""
    asked = record["input"]
    if "covariance" not in asked:
        return asked["scales"]
    return f"{asked['n_features']} columns, {asked['covariance']}"


def _text(fp: FixedPoint, record: dict[str, Passed]) -> str:
    """A line for each number, with its standard error where it was simulated."""
    errors, asked = record.get("standard_errors", {}), record["input"]
    lines = [
        f"λ = {fp.lam:g}, {fp.noise!r}, α = {asked['alpha']:g}, ρ = {asked['rho']:g}, "
        f"σ_ξ = {asked['sigma_xi']:g}, {_columns(record)}",
        f"{'status':<12}{record['status']:<22}{MEANING[record['status']]}",
    ]
    for name, key, meaning in _ROWS:
        if key not in record:
            continue
        endless = "∞" if key in ("E", "critical_noise") else "—"
        shown = endless if record[key] is None else f"{record[key]:.{4 if errors else 6}g}"
        shown += f" ± {errors[key]:.2g}" if errors.get(key) else ""
        lines.append(f"{name:<12}{shown:<22}{meaning}")
    return "\n".join([*lines, NO_BOUND])
