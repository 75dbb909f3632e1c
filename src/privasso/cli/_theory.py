"""`privasso theory`: predict error, sparsity, stability and privacy without data."""

from __future__ import annotations

import math
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

from privasso._text import finite
from privasso.cli._model_settings import ModelSettings
from privasso.cli._options import (
    FIGURES,
    NO_BOUND,
    AsJson,
    Force,
    check_ending,
    option,
    tell,
)
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


class _Prediction(NamedTuple):
    """A fixed point, the critical noise level, and what is to be shown of both."""

    point: FixedPoint
    edge: float
    leakage: dict[str, float]
    """On-average divergences and attack; NaN where they are not known or do not exist."""
    errors: dict[str, float]
    """Standard errors of numbers that were simulated; empty where none was."""
    asked: dict[str, Any]
    """The options that say what the columns are like."""

    @property
    def words(self) -> list[str]:
        """What the columns are like."""
        if "covariance" not in self.asked:
            return [self.asked["scales"]]
        return [f"{self.asked['n_features']} columns", self.asked["covariance"]]


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
    plot: Path | None = option("Draw error against leakage to this file (png, pdf, svg).")
    force: Force = False


def theory(settings: TheorySettings, columns: ModelSettings, as_json: AsJson = False) -> None:
    """Predict error, sparsity, stability and average privacy at one point, without data.

    Example: `privasso theory --scales lognormal:0,0.5 --lam 0.2 --noise power:1 --sigma 0.1`

    Correlated columns: `privasso theory --covariance ar:0.8 --n-features 500 --noise matrix:1`
    """
    from privasso.cli._outputs import PICTURE, Outputs, files_read

    plot = settings.plot
    check_ending("--plot", plot, *FIGURES)
    reads = files_read(columns.scales, columns.covariance)
    with Outputs(reads=reads, force=settings.force) as outputs:
        outputs.claim("--plot", plot, PICTURE)
        simulated = columns.covariance is not None
        with working("Simulating effective problems", quiet=as_json or not simulated):
            found = (_correlated if simulated else _independent)(settings, columns)
        tell(_record(found) if as_json else _text(found))
        if plot is not None:
            from privasso.cli._plots import draw_theory

            words = ", ".join(reversed(found.words))
            draw_theory(found.point, found.edge, columns.n_features, words, plot)
            if not as_json:
                print(f"wrote {plot}")


def _independent(settings: TheorySettings, columns: ModelSettings) -> _Prediction:
    from privasso.noise import noise_from_name
    from privasso.theory import critical_noise, state_evolution

    model, n = columns.model(), columns.n_features
    shape = noise_from_name("--noise", settings.noise, settings.sigma)
    fp = state_evolution(model, settings.lam, shape, n_features=n)
    edge = critical_noise(model, settings.lam, shape, n_features=n)
    leakage = {"onavekl": fp.onavekl(), "onavekl_paper": fp.onavekl(kind="paper")}
    leakage |= _attack(fp) if fp.status.value == "stable" else {}
    return _Prediction(fp, edge, leakage, {}, {"scales": repr(model.scales)})


def _correlated(settings: TheorySettings, columns: ModelSettings) -> _Prediction:
    """The same for correlated columns, by simulation."""
    import numpy as np

    from privasso.noise import column_noise_from_name
    from privasso.theory import correlated_edge, state_evolution

    rng, draws, model = np.random.default_rng(columns.seed), settings.draws, columns.model()
    shape = column_noise_from_name("--noise", settings.noise, settings.sigma)
    many = None if model.covariance.n_columns else _MANY
    model = model.realised(columns.n_features or many, rng)
    fp = state_evolution(model, settings.lam, shape, draws=draws, rng=rng)
    ratio = correlated_edge(model, shape, draws=draws, rng=rng).ratio
    leakage, errors = {"onavekl_bound": math.nan}, fp.standard_errors._asdict()
    errors["onavekl"] = math.nan
    if fp.status.value == "stable":
        leakage["onavekl_bound"] = fp.onavekl("bound")
        if fp.onavekl_is_known:
            leakage |= {"onavekl": fp.onavekl(), "onavekl_paper": fp.onavekl("paper")}
            leakage |= _attack(fp)
            errors["onavekl"] = fp.onavekl_error
    asked = {
        "covariance": columns.covariance, "n_features": model.covariance.n_columns,
        "scales": repr(model.scales), "draws": fp.n_draws,
    }  # fmt: skip
    edge = settings.lam / ratio if ratio > 0.0 else math.inf
    return _Prediction(fp, edge, leakage, errors, asked)


def _attack(fp: FixedPoint) -> dict[str, float]:
    """AUC and advantage of the predicted attack."""
    attack = fp.attack()
    return {"attack_auc": attack.auc, "attack_advantage": attack.advantage}


def _record(found: _Prediction) -> dict[str, object]:
    fp, model = found.point, found.point.model
    missing = dict.fromkeys(
        ("onavekl", "onavekl_paper", "attack_auc", "attack_advantage"), math.nan
    )
    numbers = {
        "E": fp.E, "V": fp.V, "rho_hat": fp.rho_hat, "stability": fp.stability,
        **missing, **found.leakage, "critical_noise": found.edge,
    }  # fmt: skip
    errors = {name: finite(value) for name, value in found.errors.items()}
    return {
        "status": fp.status.value,
        **{name: finite(value) for name, value in numbers.items()},
        **({"standard_errors": errors} if errors else {}),
        "input": {
            "alpha": model.alpha, "rho": model.rho, "sigma_xi": model.sigma_xi, **found.asked,
            "lam": fp.lam, "noise": repr(fp.noise),
        },
    }  # fmt: skip


def _text(found: _Prediction) -> str:
    """A line for each number, with its standard error where it was simulated."""
    fp, model, leak, simulated = found.point, found.point.model, found.leakage, found.errors != {}
    whole = "one record replaced" if simulated else "one record replaced, whole released vector"
    rows = [
        ("E", fp.E, "E", "prediction error on a new record, label noise included"),
        ("ρ̂", fp.rho_hat, "rho_hat", "fraction of nonzero coefficients"),
        ("ρ̂/α", fp.stability, "stability", "stability: the estimator exists below 1"),
        ("V", fp.V, "V", "response of the other coefficients"),
        ("OnAveKL", leak.get("onavekl"), "onavekl", f"{whole} (average)"),
        ("  bound", leak.get("onavekl_bound"), "", "upper bound of it, for any covariance of noise")
        if simulated
        else ("  paper", leak["onavekl_paper"], "", "the same, coefficient by coefficient"),
        ("attack", leak.get("attack_auc"), "", "AUC of the best membership attack (average)"),
        ("  gain", leak.get("attack_advantage"), "", "its true- minus false-positive rate"),
        ("critical σ", found.edge, "", "noise level at which the estimator ceases to exist"),
    ]
    lines = [
        f"λ = {fp.lam:g}, {fp.noise!r}, α = {model.alpha:g}, ρ = {model.rho:g}, "
        f"σ_ξ = {model.sigma_xi:g}, {', '.join(found.words)}",
        f"{'status':<12}{fp.status.value:<22}{MEANING[fp.status.value]}",
    ]
    for name, value, error, meaning in rows:
        missing, spread = value is None or math.isnan(value), found.errors.get(error, math.nan)
        shown = "—" if missing else f"{value:.4g}" if simulated else f"{value:.6g}"
        shown += f" ± {spread:.2g}" if spread > 0.0 else ""
        lines.append(f"{name:<12}{shown:<22}{meaning}")
    return "\n".join([*lines, NO_BOUND])
