"""From the options of `privasso fit` to a privacy value."""

from __future__ import annotations

from typing import TYPE_CHECKING

from privasso.cli._options import label_budget

if TYPE_CHECKING:
    from privasso.cli._fit_settings import FitSettings
    from privasso.privacy import Privacy

#: Options that belong to one kind of privacy, and why another kind refuses them.
_OF_LABEL_DP = {"epsilon": "--epsilon", "delta": "--delta", "y_bounds": "--y-bounds"}
_OF_ON_AVERAGE = {"sigma": "--sigma", "scales": "--scales"}


def privacy_from(settings: FitSettings) -> Privacy:
    """Return what to protect; options that are missing or belong to another kind are refused."""
    if settings.label_dp == settings.on_average:
        raise ValueError(
            "say what to protect: --label-dp for differential privacy of the labels, or "
            "--on-average for noise without a worst-case claim"
        )
    if settings.label_dp:
        _refuse(settings, _OF_ON_AVERAGE, "belongs to --on-average; the budget sets the noise here")
    else:
        _refuse(settings, _OF_LABEL_DP, "belongs to --label-dp; --on-average has no ε")
    budget = label_budget(settings.label_dp, settings.epsilon, settings.delta, settings.y_bounds)
    return budget or _on_average(settings)


def _on_average(settings: FitSettings) -> Privacy:
    from privasso.privacy import OnAverage

    if settings.sigma is not None:
        return OnAverage(settings.sigma)
    if settings.saved is None:
        raise ValueError("--on-average needs --sigma, the level of the noise, or --design")
    return OnAverage(settings.saved.noise.sigma)


def _refuse(settings: FitSettings, options: dict[str, str], why: str) -> None:
    for name, option in options.items():
        if getattr(settings, name) is not None:
            raise ValueError(f"{option} {why}")
