"""The work of `privasso fit --record-dp`: nothing but public numbers decides what is done."""

from __future__ import annotations

import contextlib
from dataclasses import replace
from typing import TYPE_CHECKING

import numpy as np

from privasso._text import escaped
from privasso.cli._fit_blocks import opened_blocks, reading
from privasso.cli._fit_forecast import NOT_SIMULATED
from privasso.cli._fit_genotypes import fit_genotypes
from privasso.cli._fit_privacy import privacy_from
from privasso.cli._fit_read import coded, features_of, table_of, target_of
from privasso.cli._fit_rehearsal import rehearse_model
from privasso.cli._fit_rescue import keep_somewhere, rescue
from privasso.cli._fit_settings import FitSettings
from privasso.cli._fit_write import FitResult, write_files
from privasso.cli._ledger import opened
from privasso.cli._outputs import Outputs
from privasso.cli._progress import counting, working

if TYPE_CHECKING:
    from privasso.blocks import RowBlocks
    from privasso.encoding import Dictionary
    from privasso.fit import KeptStatistics, PerturbedPlan, Published
    from privasso.forecast import Forecast
    from privasso.operators import Genotypes
    from privasso.report import FitFacts
    from privasso.tables import Table

#: The path if none is given: factors of the λ of the model, and how many values.
_PATH_FROM, _PATH_TO, _PATH_POINTS = 1000.0, 0.1, 25
#: What a fit from a file assumes besides.
_GENOTYPES = "which people and variants are in the files and which allele is counted is public"
_FILE = "the types of the columns in the file, and that it could be read, are public"


def dictionary_of(settings: FitSettings, table: Table, names: list[str]) -> Dictionary:
    """What is public about the covariates; a name that is no column is refused."""
    from privasso.encoding import Dictionary, NumberEntry

    known = settings.dictionary
    if known is None and settings.genotypes and settings.bounds is None:
        return Dictionary(tuple(NumberEntry(name, 0.0, 2.0) for name in names))
    if known is None:
        table.check_header()  # the names are published
        types = table.types
        for name in names:
            if types.get(name) == "text":
                raise ValueError(
                    f"column {name!r} holds text by its type, and --bounds private is for numbers; "
                    "leave it out with --exclude, or give a data dictionary with its levels"
                )
        return Dictionary(tuple(NumberEntry(name) for name in names))
    try:
        table.require(known.names)
        return known.of(names)
    except ValueError as error:
        raise ValueError(f"--bounds {escaped(settings.bounds)}: {error}") from None


def plan_records(
    settings: FitSettings,
    X: np.ndarray | RowBlocks | Genotypes,
    names: tuple[str, ...],
    dictionary: Dictionary | None = None,
) -> PerturbedPlan:
    """Plan the fit; only the shape of X is used. Public rows for a shape need a dictionary."""
    from privasso.fit import DECLARED, FitOptions, PerturbedPlan, plan_for
    from privasso.privacy import StatisticsMechanism

    lam = settings.lam_value()
    options = FitOptions(
        privacy_from(settings, dictionary),
        lam="auto" if lam is None else lam,
        fit_intercept=not settings.no_intercept,
        ledger=None if settings.ledger is None else opened(settings.ledger),
        screen=settings.screened(),
        classes=settings.classes,
    )
    plan = plan_for(X, options, seeded=settings.seed is not None, feature_names=names)
    assert isinstance(plan, PerturbedPlan)
    settings.check_statistics(isinstance(plan.objective, StatisticsMechanism))
    said = (*plan.guarantee.assumptions, *([DECLARED] if settings.dictionary else []), _FILE)
    said = (*said, *([_GENOTYPES] if settings.genotypes else []))
    return replace(plan, guarantee=replace(plan.guarantee, assumptions=said))


def forecast_of(
    settings: FitSettings, plan: PerturbedPlan, dictionary: Dictionary, *, quiet: bool
) -> tuple[Forecast | None, str | None]:
    """What could be expected before the data are read, or the reason why that is not known."""
    from privasso.cli._fit_run import assumptions_of
    from privasso.forecast import RecordScheme, forecast_records
    from privasso.privacy import ScreenedObjective

    if isinstance(plan.objective, ScreenedObjective):
        return None, "fits of chosen columns are not simulated; see the chances above"
    if plan.options.classes is not None:
        return None, NOT_SIMULATED
    scheme = RecordScheme.of(plan, dictionary)
    if scheme.unavailable is not None:
        return None, scheme.unavailable
    suppose = assumptions_of(settings, plan.options.privacy)
    what = "Simulating fits"
    with counting(what, quiet=quiet) as show:
        return forecast_records(
            scheme, suppose, progress=lambda done, total: show(done, total, what)
        ), None


def fit_records(settings: FitSettings, outputs: Outputs, quiet: bool) -> FitResult:
    """Fit and write the files."""
    if settings.genotypes and settings.screen is not None:
        return fit_genotypes(settings, outputs, quiet)
    if settings.in_blocks:
        with opened_blocks(settings) as (blocks, dictionary, target):
            with reading(blocks, quiet=quiet) as shown:
                plan, expected = _planned(settings, shown, dictionary)
                released = released_by(settings, plan, None, dictionary.encoding.names, target)
            return finished(settings, outputs, plan, released, dictionary, target, expected)
    with working("Reading", quiet=quiet):
        table, target = table_of(settings), target_of(settings)
        dictionary = dictionary_of(settings, table, features_of(settings, table, target))
        columns, labels = table.declared(dictionary, target)
        labels = coded(settings, labels)
        if settings.binary:
            # A label that is neither 0 nor 1 makes an empty record: no error may tell of it.
            labels = np.where((labels == 0.0) | (labels == 1.0), labels, np.nan)
        held = [dictionary.matrix(columns)]
        del columns
        # The plan alone holds the matrix from here on.
        plan, expected = _planned(settings, held.pop(), dictionary)
    with working("Releasing", quiet=quiet):
        released = released_by(settings, plan, labels, dictionary.encoding.names, target)
    del labels  # no longer needed
    return finished(settings, outputs, plan, released, dictionary, target, expected)


def _planned(
    settings: FitSettings, X: np.ndarray | RowBlocks, dictionary: Dictionary
) -> tuple[PerturbedPlan, Forecast | None]:
    """The plan, and a forecast for a report: what they refuse is refused before it costs."""
    plan = plan_records(settings, X, dictionary.encoding.names, dictionary)
    rehearse_model(plan.guarantee, None, dictionary.encoding)
    if settings.report is None:
        return plan, None
    return plan, forecast_of(settings, plan, dictionary, quiet=True)[0]


def finished(
    settings: FitSettings,
    outputs: Outputs,
    plan: PerturbedPlan,
    released: Published | KeptStatistics,
    dictionary: Dictionary,
    target: str,
    expected: Forecast | None,
) -> FitResult:
    """Solve, and write the files."""
    from privasso.artefact import release_text
    from privasso.fit import KeptStatistics
    from privasso.ledger import summary
    from privasso.report import record_facts

    encoding = dictionary.encoding
    ledger = plan.options.ledger
    statistics = None
    if isinstance(released, KeptStatistics):
        released = statistics = replace(released, encoding=encoding)
    where = None
    try:
        if statistics is not None and settings.keep_release is not None:
            outputs.write({"--keep-release": release_text(statistics)}, new=True)
            where = settings.keep_release
        elif statistics is not None:
            # Until the model is written: not even the end of the process loses what was paid for.
            with contextlib.suppress(OSError):
                where = rescue(settings, statistics)
        model = replace(released.solve(), encoding=encoding)
        facts = record_facts(
            model,
            plan,
            dictionary,
            command=settings.command(),
            target=target,
            forecast=expected,
            statistics=statistics,
        )
        result = finish_records(settings, outputs, facts, statistics)
        if where is not None and settings.keep_release is None:
            where.unlink(missing_ok=True)
    except (ValueError, RuntimeError, OSError) as error:
        raise released.failure(error, keep_somewhere(settings, statistics, where)) from error
    except BaseException as error:
        error.add_note(released.after_failure(keep_somewhere(settings, statistics, where)))
        raise
    return result if ledger is None else replace(result, ledger=summary(ledger.book))


def solve_again(settings: FitSettings, outputs: Outputs, kept: KeptStatistics) -> FitResult:
    """Solve from kept statistics, which needs no data."""
    from privasso.report import statistics_facts

    lam = settings.lam_value()
    model = kept.solve("auto" if lam is None else lam)
    facts = statistics_facts(model, kept, command=settings.command())
    return finish_records(settings, outputs, facts, kept)


def finish_records(
    settings: FitSettings,
    outputs: Outputs,
    facts: FitFacts,
    statistics: KeptStatistics | None,
) -> FitResult:
    """Write report, path and model, from what was released alone."""
    path, model = None, facts.model
    if statistics is not None and (settings.path_out or settings.report):
        asked = settings.lams()
        if asked is None:
            ends = model.lam * _PATH_FROM, model.lam * _PATH_TO
            asked = list(np.geomspace(*ends, _PATH_POINTS))
        path = statistics.path(asked)
    resolve = settings.solve_again_command() if statistics is not None else None
    facts = replace(facts, path=path, resolve=resolve)
    return write_files(settings, outputs, facts, path)


def released_by(
    settings: FitSettings,
    plan: PerturbedPlan,
    labels: np.ndarray | None,
    names: tuple[str, ...],
    target: str,
) -> Published | KeptStatistics:
    """Draw the noise once, and return the model or what it is solved from."""
    from privasso.fit import AfterReleaseError
    from privasso.privacy import UncertifiedError

    try:
        return plan.release(
            labels,
            rng=settings.rng(),
            feature_names=names,
            target=target,
            give_up_rows=True,
        )
    except UncertifiedError as error:
        spent = plan.options.privacy.after_failure("")
        raise AfterReleaseError(f"{spent} What happened: {error}.") from None
    except KeyboardInterrupt as error:
        error.add_note(plan.options.privacy.after_failure(""))
        raise
