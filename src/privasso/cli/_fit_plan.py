"""From the options of `privasso fit` and a table to a plan, and what is expected of it."""

from __future__ import annotations

from dataclasses import replace
from typing import cast

from privasso.cli._fit_check import check_plan, privacy_from
from privasso.cli._fit_read import FitTable
from privasso.cli._fit_settings import FitSettings
from privasso.cli._ledger import opened
from privasso.cli._model_settings import prior_scales
from privasso.cli._progress import counting
from privasso.fit import DECLARED, FitOptions, Plan, encoded_guarantee, plan_for
from privasso.forecast import Assumptions, Forecast, forecast_of, unavailable
from privasso.planning import Aim
from privasso.privacy import Guarantee, Privacy

#: What a fit of records from a file assumes besides.
_GENOTYPES = "which people and variants are in the files and which allele is counted is public"
_FILE = "the types of the columns in the file, and that it could be read, are public"


def planned(settings: FitSettings, table: FitTable) -> Plan:
    """Plan the fit; covariates without any data are refused."""
    privacy, lam = privacy_from(settings, table.dictionary), settings.lam_value()
    given = None if settings.scales == "data" else settings.scales
    scales = None if given is None else prior_scales(given, list(table.names))
    options = FitOptions(
        privacy,
        lam="auto" if lam is None and privacy.automatic_lam else lam,
        noise=settings.named_noise(),
        scales=scales,
        fit_intercept=not settings.no_intercept,
        time_limit=settings.time_limit,
        ledger=None if settings.ledger is None else opened(settings.ledger),
        screen=settings.screened(),
        classes=settings.named_classes(),
        loss=settings.named_loss(),
        aim=cast(Aim, settings.aim),
        intervals=settings.targets,
    )
    seeded = settings.seed is not None
    plan = plan_for(table.X, options, seeded=seeded, feature_names=table.names)
    check_plan(settings, plan)
    if plan.covariates is not None and not plan.covariates.live.any():
        raise ValueError(
            f"every feature is constant, {table.names[0]!r} for example, so there is nothing to fit"
        )
    return plan.stating(_guarantee(settings, plan, table))


def _guarantee(settings: FitSettings, plan: Plan, table: FitTable) -> Guarantee:
    """The statement of the plan, with what it assumes about the file."""
    if not settings.record_dp:
        assert table.encoding is not None
        return encoded_guarantee(plan.guarantee, plan.options.privacy, table.encoding)
    return replace(plan.guarantee, assumptions=(*plan.guarantee.assumptions, *about_file(settings)))


def about_file(settings: FitSettings) -> list[str]:
    """What a statement about private records assumes about how they were read."""
    said = [*([DECLARED] if settings.dictionary else []), _FILE]
    return [*said, _GENOTYPES] if settings.genotypes else said


def assumptions_of(settings: FitSettings, privacy: Privacy) -> Assumptions:
    """What predictions assume about the labels."""
    deviation = settings.assume_label_sd or privacy.label_deviation
    if deviation is None:
        raise ValueError(
            "labels without bounds need --assume-label-sd, their standard deviation, for a "
            "prediction"
        )
    found = Assumptions(settings.assume_rho, settings.assume_r2, deviation)
    if privacy.label_width is not None:
        found.check_width(privacy.label_width)
    return found


def foreseen(
    settings: FitSettings, plan: Plan, table: FitTable, *, quiet: bool
) -> tuple[Forecast | None, str | None]:
    """What can be expected before labels are read, or the reason why that is not known."""
    why_not = unavailable(plan, table.dictionary)
    if why_not is not None:
        return None, why_not
    suppose, what = assumptions_of(settings, plan.options.privacy), "Simulating fits"
    with counting(what, quiet=quiet) as show:
        return forecast_of(
            plan,
            suppose,
            table.dictionary,
            progress=lambda done, total: show(done, total, what),
        ), None
