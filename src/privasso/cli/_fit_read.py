"""What `privasso fit` reads: columns of the data file, and prior scales."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from privasso._text import escaped
from privasso.cli._ledger import opened

if TYPE_CHECKING:
    from privasso.cli._fit_settings import FitSettings
    from privasso.fit import FitOptions, Plan
    from privasso.privacy import Scales
    from privasso.tables import Table


def target_of(settings: FitSettings) -> str:
    """The column of labels; in an NPZ file it is y."""
    if settings.target is not None:
        return settings.target
    if settings.data.suffix.lower() == ".npz":
        return "y"
    raise ValueError("--target COLUMN says which column holds the labels; it is missing")


def features_of(settings: FitSettings, table: Table, target: str) -> list[str]:
    """The covariates: the columns that --features and --exclude select.

    The column of labels must be in the file, because with a wrong name the labels would be taken
    for covariates; only --no-target-column says that the file has none.
    """
    if not settings.no_target_column:
        table.require([target])
    elif target in table.names:
        raise ValueError(
            f"{escaped(settings.data)} has the target {target!r} among its columns; leave out "
            "--no-target-column"
        )
    return table.feature_names(
        target,
        features=settings.names(settings.features),
        exclude=settings.names(settings.exclude),
    )


def options_of(settings: FitSettings, names: list[str]) -> FitOptions:
    """The options of the fit itself."""
    from privasso.fit import FitOptions

    privacy, lam = settings.privacy(), settings.lam_value()
    if lam is None and privacy.covers_release:
        lam = "auto"
    return FitOptions(
        privacy,
        lam=lam,
        noise=settings.named_noise(),
        scales=_prior_scales(settings, names),
        fit_intercept=not settings.no_intercept,
        time_limit=settings.time_limit,
        ledger=None if settings.ledger is None else opened(settings.ledger),
    )


def plan_of(settings: FitSettings, X: object, names: list[str]) -> Plan:
    """Plan the fit; covariates without any data are refused."""
    from privasso.fit import plan_fit

    plan = plan_fit(X, options_of(settings, names), seeded=settings.seed is not None)
    if not plan.rows.live.any():
        raise ValueError(
            f"every feature is constant, {names[0]!r} for example, so there is nothing to fit"
        )
    return plan


def _prior_scales(settings: FitSettings, names: list[str]) -> Scales:
    """What --scales stands for: nothing, a law, or one scale per column from a file."""
    if settings.scales is None or settings.scales == "data":
        return None
    from privasso.cli._parsing import scale_law
    from privasso.cli._scales_file import scales_by_name
    from privasso.scales import LAW_NAMES

    law = settings.scales.partition(":")[0].lower() in LAW_NAMES
    if law or not Path(settings.scales).exists():
        return scale_law(settings.scales)

    return scales_by_name(Path(settings.scales), names)
