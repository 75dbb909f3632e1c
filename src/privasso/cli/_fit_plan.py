"""From the options of `privasso fit` and a table to a plan, and what a dry run says of it."""

from __future__ import annotations

import math
from dataclasses import asdict, replace
from typing import cast

from privasso._text import aligned, json_text
from privasso.cli._fit import FitSettings
from privasso.cli._fit_check import check_plan, privacy_from
from privasso.cli._fit_read import FitTable, classes_words, opened
from privasso.cli._fit_show import encoding_words, statement_words
from privasso.cli._ledger import opened as ledger_at
from privasso.cli._ledger import remainder
from privasso.cli._model_settings import prior_scales
from privasso.cli._options import NO_BOUND
from privasso.cli._progress import counting
from privasso.fit import DECLARED, FitOptions, Plan, encoded_guarantee, interval_outlook, plan_for
from privasso.forecast import (
    Assumptions,
    Forecast,
    Prediction,
    forecast_of,
    predictions_of,
    unavailable,
)  # fmt: skip
from privasso.ledger import summary
from privasso.planning import Aim
from privasso.privacy import Guarantee, Privacy
from privasso.programs import Outlook
from privasso.report import mechanism_of, outlook_text

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
        ledger=None if settings.ledger is None else ledger_at(settings.ledger),
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
    return replace(plan, guarantee=_guarantee(settings, plan, table))


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
            plan, suppose, table.dictionary, progress=lambda done, total: show(done, total, what)
        ), None


#: What was decided about a choice of columns, by whether one is made, and why.
_CHOSEN = {
    False: "All columns are fitted: choosing some first is not expected to predict better. "
    "--screen chooses some nevertheless.",
    True: "Some columns are chosen first, which is expected to predict better than a fit of all. "
    "--screen all fits all of them.",
}


def dry_run(settings: FitSettings, as_json: bool) -> None:
    """Print noise, predictions and guarantee; of private records only the size is used."""
    suppose = assumptions_of(settings, privacy_from(settings))
    with opened(settings, labels=False, quiet=as_json) as table:
        plan = planned(settings, table)
    (n_rows, n_columns), ledger, outlook = plan.shape, plan.options.ledger, plan.outlook
    expected, why_not = foreseen(settings, plan, table, quiet=as_json)
    predicted = predictions_of(plan, suppose)
    mechanism = mechanism_of(plan, table.names)
    classes = plan.options.classes is not None
    rest = 0.5 if classes else suppose.label_sd * math.sqrt(1.0 - suppose.usual_r2)
    lengths = interval_outlook(plan, rest)
    left = None if ledger is None else remainder(ledger, plan.guarantee)
    if as_json:
        assumed = {"rho": suppose.rho, "r2": suppose.r2, "label_sd": suppose.label_sd}
        record = {
            "n_rows": n_rows,
            "n_features": n_columns,
            **({} if mechanism is None else mechanism.to_dict()),
            "chosen_by": "planning" if plan.options.choice(plan.shape[1]) is None else "options",
            "screening": None if outlook is None else outlook.to_dict(),
            "assumptions": assumed,
            "forecast": None if expected is None else expected.to_dict(),
            "predictions": [one.to_dict() for one in predicted],
            "intervals": None if lengths is None else asdict(lengths),
            "guarantee": plan.guarantee.to_dict(),
            "ledger": left,
        }
        print(json_text(record))
        return
    unread = f"no label has been read (column {table.target!r})"
    if settings.record_dp:
        unread = "nothing of the data but the names of the columns and the number of rows is used"
    print(f"Dry run: {unread}, no budget is spent.\n")
    if plan.guarantee.warning is not None:
        print(f"{plan.guarantee.warning}\n")
    print(f"{n_rows} rows, {n_columns} features.")
    assert table.encoding is not None
    print(end=classes_words(settings))
    print(end=encoding_words(table.encoding, settings.record_dp))
    if mechanism is not None:
        print(f"{mechanism.text()}\n")
    if plan.options.choice(plan.shape[1]) is None and plan.shape[1] > 1:
        print(f"{_CHOSEN[outlook is not None]}\n")
    if outlook is not None:
        print(outlook_text(outlook))
    elif expected is not None:
        print(_forecast(expected, plan.options.fixed_lam))
    elif predicted:
        print(_predictions(predicted, suppose, plan))
    else:
        print(f"No prediction is available: {why_not}.")
    if plan.mu:
        print(f"\n{_intervals(plan, lengths)}")
    print(f"\nA fit would state:\n{statement_words(plan.guarantee)}")
    if ledger is not None:
        print(f"\nThe ledger with this fit: {summary(ledger.after(plan.guarantee))}")


def _intervals(plan: Plan, found: Outlook | None) -> str:
    """What intervals cost, and how long they may be."""
    said = "Intervals take a part of the budget, so that the fit has more noise."
    if found is None:
        return said
    if found.more > 1.0:
        return (
            f"{said} At this size noise hides how columns are correlated: few columns or none will "
            f"have an interval. About {found.more:.1f} × the rows would be enough."
        )
    low, high = plan.guarantee.label_bounds or (0.0, 1.0)
    unit = "of the labels" if plan.range is None else "of their range"
    unit = unit if plan.options.classes is None else "of log odds"
    scale = 4.0 if plan.options.classes is not None else high - low
    return (
        f"{said} One of 95 % is expected to be {scale * found.length:.3g} units {unit} long, for "
        "the effect of one standard deviation of a column that is not correlated with others; "
        f"without privacy {scale * found.plain:.3g}. This uses --assume-r2 and --assume-label-sd."
    )


def _forecast(expected: Forecast, lam: float | None) -> str:
    """A table of R² and what it assumes; `lam` is λ where it is given."""
    at = "" if lam is None else f" at λ = {lam:g}"
    return "\n".join([
        f"R² on new rows: {expected.fits} simulated fits on {expected.on}{at}",
        aligned([["", "median", "8 of 10 fits", "above 0", "kept"], *expected.lines()]),
        "R² itself depends on what the covariates explain, which nobody knows beforehand: give "
        "--assume-r2 if you do. What is kept of the R² without privacy depends on it far less.",
        f"{expected.in_words()} It is a forecast under these assumptions, not a promise; "
        "--assume-rho, --assume-r2 and --assume-label-sd change them.",
    ])  # fmt: skip


def _predictions(predicted: tuple[Prediction, ...], suppose: Assumptions, plan: Plan) -> str:
    """A table with a line for each noise design."""
    at = "at the given λ" if plan.options.fixed_lam is not None else "each at its best λ"
    styles = {"lam": ".4g", "r2": ".3f", "nonzero": ".1f", "critical_lam": ".4g", "onavekl": ".3g"}
    rows = [["noise", "level", "λ", "R² on new rows", "non-zero", "critical λ", "OnAveKL"]]
    for one in predicted:
        numbers = ((getattr(one, name), style) for name, style in styles.items())
        shown = (f"{x:{style}}" if math.isfinite(x) else "—" for x, style in numbers)
        rows.append([one.noise.in_words(), f"{one.noise.sigma:.4g}", *shown])
    return "\n".join([
        f"Predicted by state evolution, at the same {plan.options.privacy.compared_at}, {at}",
        aligned(rows),
        f"This assumes {suppose.as_model()}. It is a prediction under that model, not a promise.",
        NO_BOUND,
    ])  # fmt: skip
