"""From the options of `privasso fit` to a privacy value."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from privasso._types import Matrix
from privasso.cli._fit_settings import FitSettings
from privasso.cli._options import label_budget, named, option_name
from privasso.encoding import Dictionary
from privasso.privacy import LabelDP, OnAverage, Privacy, RecordDP
from privasso.tables import open_table

#: The smallest ε for which a minimiser is found and certified in floating-point numbers.
_LEAST_EPSILON = 1e-5
_ABOUT_RECORDS = ("bounds", "private_scales", "shape", "share")
#: Options that a kind of privacy has no use for, and where they belong.
_ELSEWHERE = {
    "label_dp": {
        **dict.fromkeys(("sigma", "scales"), "--on-average; the budget sets the noise here"),
        **dict.fromkeys(_ABOUT_RECORDS, "--record-dp; under --label-dp covariates are public"),
    },
    "record_dp": {
        **dict.fromkeys(("sigma", "scales"), "--on-average; the budget sets the noise here"),
        **dict.fromkeys(("noise", "design"), "--label-dp; the bounds shape the noise here"),
        **dict.fromkeys(
            ("categorical", "keep", "missing"),
            "--label-dp; under --record-dp the data dictionary of --bounds says what a column is",
        ),
        "time_limit": "--label-dp; under --record-dp when a fit ends would depend on the data",
    },
    "on_average": {
        **dict.fromkeys(("epsilon", "delta", "y_bounds"), "--label-dp; --on-average has no ε"),
        **dict.fromkeys(_ABOUT_RECORDS, "--record-dp; --on-average has no bounds"),
        **dict.fromkeys(
            ("mechanism", "neighbours", "kappa", "t", "screen", "intervals"),
            "--label-dp or --record-dp",
        ),
    },
}


def privacy_from(settings: FitSettings, dictionary: Dictionary | None = None) -> Privacy:
    """Return what to protect; options that are missing or belong to another kind are refused.

    A shape from public rows needs the `dictionary` of the columns that are used; without one it is
    left out.
    """
    chosen = [kind for kind in _ELSEWHERE if getattr(settings, kind)]
    if len(chosen) != 1:
        raise ValueError(
            "say what to protect: --label-dp for differential privacy of the labels, --record-dp "
            "for that of whole records, or --on-average for noise without a worst-case claim"
        )
    for name, where in _ELSEWHERE[chosen[0]].items():
        if settings.given(name) is not None:
            raise ValueError(f"{settings.given(name)} belongs to {where}")
    third = "statistics" if settings.record_dp else "release"
    if settings.mechanism not in (None, "auto", "objective", third):
        raise ValueError(
            f"--mechanism must be auto, objective or {third} under {option_name(chosen[0])}, not "
            f"{settings.mechanism!r}"
        )
    if settings.epsilon is not None and 0.0 < settings.epsilon < _LEAST_EPSILON:
        raise ValueError(
            f"--epsilon must be at least {_LEAST_EPSILON:g}: with less the noise is larger than "
            "any result, and whether one is found depends on the data"
        )
    if settings.label_dp:
        return _label_dp(settings)
    return _record_dp(settings, dictionary) if settings.record_dp else _on_average(settings)


def _label_dp(settings: FitSettings) -> LabelDP:
    budget = label_budget(True, settings.epsilon, settings.delta, settings.label_bounds)
    assert budget is not None
    return replace(budget, **_given(settings, "mechanism", "neighbours", "kappa", "t"))


def _record_dp(settings: FitSettings, dictionary: Dictionary | None) -> RecordDP:
    epsilon, delta, y_bounds = settings.epsilon, settings.delta, settings.label_bounds
    unbounded = settings.bounds is None and not settings.genotypes
    if epsilon is None or delta is None or y_bounds is None or unbounded:
        raise ValueError(
            "--record-dp needs --epsilon, --delta, --y-bounds LOW HIGH and --bounds FILE, a data "
            "dictionary that `privasso bounds` makes a template of, or --bounds private; choose "
            "all of them before looking at the data"
        )
    private = settings.bounds == "private" or settings.private_scales or settings.shape == "private"
    if settings.share is not None and not private:
        raise ValueError(
            "--share is for what is found in the data before the fit, and nothing is; leave it "
            "out, or ask for private bounds, scales or a private shape"
        )
    known = None if settings.dictionary is None else settings.dictionary.bounds
    if settings.bounds is None:
        known = 0.0, 2.0  # copies of an allele
    shape = settings.shape
    if shape not in (None, "private"):
        shape = None if dictionary is None else _public_rows(settings, dictionary)
    return RecordDP(
        epsilon,
        delta,
        bounds="private" if known is None else known,
        y_bounds=y_bounds,
        scales="private" if settings.private_scales else None,
        shape=shape,
        **_given(settings, "mechanism", "neighbours", "share", "kappa", "t"),
    )


def _given(settings: FitSettings, *names: str) -> dict[str, Any]:
    """Those of the options that were given."""
    found = {name: getattr(settings, name) for name in names}
    return {name: value for name, value in found.items() if value is not None}


def _public_rows(settings: FitSettings, dictionary: Dictionary) -> Matrix:
    """The rows of the file of --shape, encoded as those of the fit."""
    assert settings.shape is not None
    table = open_table(settings.shape)
    with named("--shape", ValueError):
        return dictionary.matrix(table.declared(dictionary)[0])


def _on_average(settings: FitSettings) -> Privacy:
    if settings.sigma is not None:
        return OnAverage(settings.sigma)
    if settings.saved is None:
        raise ValueError("--on-average needs --sigma, the level of the noise, or --design")
    return OnAverage(settings.saved.noise.sigma)
