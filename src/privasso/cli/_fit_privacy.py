"""From the options of `privasso fit` to a privacy value."""

from __future__ import annotations

from typing import TYPE_CHECKING

from privasso.cli._fit_settings import FitSettings, option_of
from privasso.cli._options import label_budget

if TYPE_CHECKING:
    from privasso.privacy import Privacy


def privacy_from(settings: FitSettings) -> Privacy:
    """Return what to protect; options that are missing or belong to another kind are refused."""
    if settings.label_dp == settings.on_average:
        raise ValueError(
            "say what to protect: --label-dp for differential privacy of the labels, or "
            "--on-average for noise without a worst-case claim"
        )
    if settings.label_dp:
        refused, why = ("sigma", "scales"), "--on-average; the budget sets the noise here"
    else:
        refused, why = ("epsilon", "delta", "y_bounds"), "--label-dp; --on-average has no ε"
    for name in refused:
        if getattr(settings, name) is not None:
            raise ValueError(f"{option_of(name)} belongs to {why}")
    budget = label_budget(settings.label_dp, settings.epsilon, settings.delta, settings.y_bounds)
    return budget or _on_average(settings)


def _on_average(settings: FitSettings) -> Privacy:
    from privasso.privacy import OnAverage

    if settings.sigma is not None:
        return OnAverage(settings.sigma)
    if settings.saved is None:
        raise ValueError("--on-average needs --sigma, the level of the noise, or --design")
    return OnAverage(settings.saved.noise.sigma)
