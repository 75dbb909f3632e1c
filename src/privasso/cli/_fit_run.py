"""The work of `privasso fit`: read, plan, release, solve, write, show."""

from __future__ import annotations

import sys
from contextlib import ExitStack, nullcontext
from functools import partial
from typing import NamedTuple, cast

import numpy as np

from privasso._text import escaped
from privasso.artefact import load_release
from privasso.cli._fit import FitSettings
from privasso.cli._fit_plan import assumptions_of, foreseen, planned
from privasso.cli._fit_read import FitTable, classes_words, opened, table_of
from privasso.cli._fit_rescue import Paid
from privasso.cli._fit_show import command_of, show, solve_again_command
from privasso.cli._fit_write import PATH_POINTS, FitResult, rehearse, write_files
from privasso.cli._options import named
from privasso.cli._outputs import MODEL, PATH, REPORT, Outputs
from privasso.cli._progress import working
from privasso.fit import CoefficientPath, Outcome, Plan, ReleasedModel
from privasso.forecast import Assumptions, Forecast
from privasso.ledger import summary
from privasso.planning import Aim
from privasso.privacy import Privacy
from privasso.report import facts_of
from privasso.tables import check_ending

#: A path that is not given ends at this share of the λ of the model. Far below that the
#: coefficients are mostly noise.
_PATH_END = 0.1


class _Made(NamedTuple):
    """What a fit has released, by which plan; there is none for a release that was kept."""

    released: Outcome
    plan: Plan | None = None
    table: FitTable | None = None
    forecast: Forecast | None = None


def run(settings: FitSettings, *, as_json: bool = False) -> None:
    """Fit, or solve again from a kept release; write the files and print a summary."""
    with Paid(settings) as paid:
        show(_result(paid, quiet=as_json), as_json)
        sys.stdout.flush()


def _result(paid: Paid, *, quiet: bool) -> FitResult:
    settings = paid.settings
    if settings.path_out is not None:
        check_ending(settings.path_out)
    with Outputs(reads=settings.files_read(), force=settings.force) as outputs:
        outputs.claim("--path-out", settings.path_out, PATH)
        outputs.claim("--report", settings.report, REPORT)
        outputs.claim("--out", settings.out, MODEL)
        outputs.claim("--keep-release", settings.keep_release)
        if settings.from_release is None:
            made = _released(paid, quiet)
        else:
            with working("Reading", quiet=quiet):
                made = _Made(_reopened(settings))
        if settings.keep_release is not None:
            assert paid.text is not None
            outputs.write({"--keep-release": paid.text})
            paid.moved(settings.keep_release)
        with working("Solving", quiet=quiet):
            return _finished(paid, outputs, made)


def _released(paid: Paid, quiet: bool) -> _Made:
    """Read the table, and draw the noise once; what comes of it is kept before all else."""
    settings = paid.settings
    # Blocks of rows show their own progress.
    step = nullcontext if settings.in_blocks else partial(working, quiet=quiet)
    with ExitStack() as stack:
        with step("Reading"):
            table = stack.enter_context(opened(settings, quiet=quiet))
            plan = planned(settings, table)
            rehearse(settings, plan, table)
            expected = None
            if settings.report is not None:  # what is refused for it is refused before it costs
                _supposed(settings, plan.options.privacy, plan)
                if not plan.options.privacy.public_covariates:
                    expected, _ = foreseen(settings, plan, table, quiet=True)
        with step("Releasing"):
            made = plan.release(
                table.labels,
                rng=settings.rng(),
                feature_names=table.names,
                target=table.target,
                keep=lambda made, spent: paid.keep(table.published(made), spent),
            )
        if table.labels is not None:
            table.labels.fill(0.0)  # no longer needed
    return _Made(table.published(made), plan, table, expected)


def _reopened(settings: FitSettings) -> Outcome:
    assert settings.from_release is not None
    with named(f"--from-release {settings.from_release}"):
        kept = load_release(settings.from_release)
    if isinstance(kept, Outcome):
        if settings.binary:
            raise ValueError(
                f"{settings.given('classes', 'binary')} needs a release of labels, not statistics"
            )
        return kept
    table = table_of(settings)
    names = kept.feature_names
    if names is None:  # columns that nobody named: all of them, but never the labels
        target = kept.target or ("y" if settings.source.suffix.lower() == ".npz" else None)
        names = tuple(name for name in table.names if name != target)
        if len(names) != kept.b.size:
            raise ValueError(
                f"{escaped(settings.source)} has {len(names)} columns and the release, which knows "
                f"no names, was made from {kept.b.size}"
            )
    if kept.encoding is None:
        X = table.matrix(names)
    else:
        inputs, levels = kept.encoding.inputs, kept.encoding.categorical
        X = kept.encoding.matrix(table.columns(inputs, categorical=levels))
    with named(settings.source, ValueError):
        return kept.open(
            X,
            time_limit=settings.time_limit,
            classes=settings.named_classes(),
            aim=cast(Aim, settings.aim),
        )


def _finished(paid: Paid, outputs: Outputs, made: _Made) -> FitResult:
    """Do everything after the release, from it and public numbers alone."""
    settings, (released, plan, table, forecast) = paid.settings, made
    model = released.solve(None if plan is not None else settings.lam_value() or "auto")
    path = _path(settings, released, model)
    facts = facts_of(
        released,
        model,
        plan,
        None if table is None else table.described(model.feature_names),
        command=command_of("fit", settings),
        target=None if table is None else table.target,
        path=path,
        assumptions=_supposed(settings, released.privacy, plan),
        forecast=forecast,
        given_lam=settings.lam_value(),
        resolve=solve_again_command(settings),
        references=settings.references,
    )
    files = write_files(settings, outputs, facts, path)
    paid.done(*files.values())
    ledger = None if plan is None else plan.options.ledger
    read = "" if plan is None else classes_words(settings)
    return FitResult(facts, files, None if ledger is None else summary(ledger.book), read)


def _supposed(settings: FitSettings, privacy: Privacy, plan: Plan | None) -> Assumptions | None:
    """What the report assumes about labels where it simulates fits on public covariates."""
    chosen = plan is not None and plan.outlook is not None
    if settings.report is None or chosen or not privacy.public_covariates:
        return None
    return assumptions_of(settings, privacy)


def _path(settings: FitSettings, released: Outcome, model: ReleasedModel) -> CoefficientPath | None:
    """Coefficients at the λ that were given, or in a range around that of the model."""
    asked = settings.path_out is not None or settings.report is not None
    if not released.solves_again or not asked:
        return None
    ends = released.path_start(model.lam), _PATH_END * model.lam
    return released.path(settings.lams() or list(np.geomspace(*ends, PATH_POINTS)))
