"""From a finished fit to what its report and its summary may say."""

from __future__ import annotations

import shlex
import warnings
from typing import TYPE_CHECKING, Any

from privasso.cli._fit_settings import FitSettings
from privasso.report import (
    Assumptions,
    FitFacts,
    Forecast,
    coefficient_noise,
    columns_of,
    compare,
    stability_of,
)

if TYPE_CHECKING:
    from privasso.artefact import KeptRelease, ReleasedModel
    from privasso.estimator import CoefficientPath, Postprocess
    from privasso.noise import NoiseDesign
    from privasso.operators import Covariates


def facts_of(
    settings: FitSettings,
    kept: KeptRelease,
    post: Postprocess,
    model: ReleasedModel,
    path: CoefficientPath | None,
    privacy: Any,
) -> FitFacts:
    """Collect the facts; those of single columns only where covariates are public."""
    common: dict[str, Any] = {
        "model": model,
        "target": kept.target,
        "n_rows": post.rows.shape[0],
        "command": settings.command(),
    }
    if kept.guarantee.kind != "label-dp":
        return FitFacts(**common)
    common |= {"mu": kept.release.mu, "columns": columns_of(post.rows, kept.release.sigma)}
    if settings.report is None:  # the rest is only shown there
        return FitFacts(**common)
    suppose = assumptions(settings, privacy)
    return FitFacts(
        **common,
        coef_noise=coefficient_noise(post, model.coef),
        path=path,
        stability=stability_of(post),
        assumptions=suppose,
        forecasts=forecasts(post.rows, privacy, design_of(kept), suppose),
        resolve=_resolve(settings),
    )


def assumptions(settings: FitSettings, privacy: Any) -> Assumptions:
    """What predictions suppose; labels that fill their bounds deviate by a sixth of the width."""
    from privasso.mechanism import LabelDP

    deviation = settings.assume_label_sd
    if deviation is None:
        if not isinstance(privacy, LabelDP):
            raise ValueError(
                "--on-average knows no bounds of the labels, so --dry-run needs their standard "
                "deviation: --assume-label-sd"
            )
        deviation = privacy.width / 6.0
    return Assumptions(settings.assume_rho, settings.assume_r2, deviation)


def forecasts(
    rows: Covariates,
    privacy: Any,
    design: NoiseDesign | None,
    suppose: Assumptions,
    lam: float | None = None,
) -> tuple[Forecast, ...]:
    """Predictions for the design and for isotropic noise; none where the model cannot speak."""
    if design is None:
        return ()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # of quadrature, far below what a prediction is good for
        try:
            return tuple(compare(rows, privacy, design, suppose, lam))
        except ValueError:
            return ()


def design_of(kept: KeptRelease) -> NoiseDesign | None:
    """The shape of the noise, where the file tells it."""
    from privasso.noise import PowerLaw

    gamma = kept.design["gamma"]
    return None if gamma is None else PowerLaw(1.0, gamma)


def _resolve(settings: FitSettings) -> str | None:
    """The command that solves again at another λ."""
    where = settings.from_release or settings.keep_release
    if where is None:
        return None
    words = ["privasso", "fit", str(settings.data), "--from-release", str(where)]
    return shlex.join([*words, "--lam", "LAMBDA", "--out", "another-model.json"])
