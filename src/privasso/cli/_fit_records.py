"""The work of `privasso fit --record-dp`: nothing but public numbers decides what is done."""

from __future__ import annotations

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
from privasso.cli._fit_rescue import Paid
from privasso.cli._fit_settings import FitSettings
from privasso.cli._fit_write import FitResult, write_files, written
from privasso.cli._ledger import opened
from privasso.cli._outputs import Outputs
from privasso.cli._progress import counting, working

if TYPE_CHECKING:
    from privasso.blocks import RowBlocks
    from privasso.encoding import Dictionary, Encoding
    from privasso.fit import KeptStatistics, Published, RecordPlan
    from privasso.forecast import Forecast
    from privasso.operators import Genotypes
    from privasso.report import FitFacts
    from privasso.tables import Table

#: The path if none is given: factors of the λ of the model, and how many values.
_PATH_FROM, _PATH_TO, _PATH_POINTS = 1000.0, 0.1, 25
#: Characters of a number in kept statistics.
_DIGITS = 24
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
) -> RecordPlan:
    """Plan the fit; only the shape of X is used. Public rows for a shape need a dictionary."""
    from privasso.fit import DECLARED, FitOptions, RecordPlan, plan_for
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
    assert isinstance(plan, RecordPlan)
    settings.check_statistics(isinstance(plan.objective, StatisticsMechanism))
    said = (*plan.guarantee.assumptions, *([DECLARED] if settings.dictionary else []), _FILE)
    said = (*said, *([_GENOTYPES] if settings.genotypes else []))
    return replace(plan, guarantee=replace(plan.guarantee, assumptions=said))


def forecast_of(
    settings: FitSettings, plan: RecordPlan, dictionary: Dictionary, *, quiet: bool
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


def fit_records(paid: Paid, outputs: Outputs, quiet: bool) -> FitResult:
    """Fit and write the files."""
    settings = paid.settings
    if settings.genotypes and settings.screen is not None:
        return fit_genotypes(paid, outputs, quiet)
    if settings.in_blocks:
        with opened_blocks(settings) as (blocks, dictionary, target):
            with reading(blocks, quiet=quiet) as shown:
                plan, expected = _planned(settings, shown, dictionary)
                released = released_by(paid, plan, None, dictionary, target)
            return finished(paid, outputs, plan, released, dictionary, target, expected)
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
        released = released_by(paid, plan, labels, dictionary, target)
    del labels  # no longer needed
    return finished(paid, outputs, plan, released, dictionary, target, expected)


def _planned(
    settings: FitSettings, X: np.ndarray | RowBlocks, dictionary: Dictionary
) -> tuple[RecordPlan, Forecast | None]:
    """The plan, and a forecast for a report: what they refuse is refused before it costs."""
    plan = plan_records(settings, X, dictionary.encoding.names, dictionary)
    rehearse_model(settings, plan.guarantee, None, dictionary.encoding, _rehearsed(plan))
    if settings.report is None:
        return plan, None
    return plan, forecast_of(settings, plan, dictionary, quiet=True)[0]


def _rehearsed(plan: RecordPlan) -> str | None:
    """About as much text as statistics will have that are kept; None if a model is released."""
    from privasso.privacy import StatisticsMechanism

    if not isinstance(plan.objective, StatisticsMechanism):
        return None
    columns = plan.X.shape[1] + 2
    return " " * (_DIGITS * columns * (columns + 1) // 2)


def finished(
    paid: Paid,
    outputs: Outputs,
    plan: RecordPlan,
    released: Published | KeptStatistics,
    dictionary: Dictionary,
    target: str,
    expected: Forecast | None,
) -> FitResult:
    """Solve, and write the files."""
    from privasso.artefact import release_text
    from privasso.fit import KeptStatistics
    from privasso.report import record_facts

    settings = paid.settings
    statistics = released if isinstance(released, KeptStatistics) else None
    if statistics is not None and settings.keep_release is not None:
        outputs.write({"--keep-release": release_text(statistics)})
        paid.moved(settings.keep_release)
    facts = record_facts(
        replace(released.solve(), encoding=dictionary.encoding),
        plan,
        dictionary,
        command=settings.command(),
        target=target,
        forecast=expected,
        statistics=statistics,
    )
    result = finish_records(settings, outputs, facts, statistics)
    return written(paid, result, plan.options.ledger)


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
    paid: Paid,
    plan: RecordPlan,
    labels: np.ndarray | None,
    dictionary: Dictionary,
    target: str,
) -> Published | KeptStatistics:
    """Draw the noise once, and return the model or what it is solved from, which is kept."""
    made: Published | KeptStatistics = plan.release(
        labels,
        rng=paid.settings.rng(),
        feature_names=dictionary.encoding.names,
        target=target,
        keep=lambda made, spent: paid.keep(_encoded(made, dictionary.encoding), spent),
    )
    return _encoded(made, dictionary.encoding)


def _encoded(made: Published | KeptStatistics, encoding: Encoding) -> Published | KeptStatistics:
    """What was released, with the way in which columns became numbers."""
    from privasso.fit import KeptStatistics

    if isinstance(made, KeptStatistics):
        return replace(made, encoding=encoding)
    return replace(made, model=replace(made.model, encoding=encoding))
