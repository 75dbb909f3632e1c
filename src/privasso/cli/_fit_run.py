"""The work of `privasso fit`: read, release, solve, write."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

import numpy as np

from privasso._text import escaped
from privasso.cli._fit_read import (
    categorical_of,
    coded,
    encoding_of,
    features_of,
    plan_of,
    table_of,
    target_of,
)
from privasso.cli._fit_rehearsal import rehearse
from privasso.cli._fit_rescue import Paid
from privasso.cli._fit_settings import FitSettings
from privasso.cli._fit_write import FitResult, write_files, written
from privasso.cli._outputs import MODEL, PATH, REPORT, Outputs
from privasso.cli._progress import working

if TYPE_CHECKING:
    from privasso.fit import KeptStatistics, LabelPlan, Released, ReleasedModel
    from privasso.forecast import Assumptions
    from privasso.privacy import Privacy

#: The path if none is given: from the λ of the first coefficient down to this share of the λ of the
#: model. Far below that the coefficients are mostly noise.
_PATH_END, _PATH_POINTS = 0.1, 25


def run(paid: Paid, *, quiet: bool = False) -> FitResult:
    """Fit, or solve again from a kept release, and write the files."""
    from privasso.cli._fit_records import fit_records, solve_again
    from privasso.fit import KeptStatistics

    settings = paid.settings
    settings.check()
    if settings.path_out is not None:
        from privasso.tables import check_ending

        check_ending(settings.path_out)
    with Outputs(reads=settings.files_read(), force=settings.force) as outputs:
        outputs.claim("--path-out", settings.path_out, PATH)
        outputs.claim("--report", settings.report, REPORT)
        outputs.claim("--out", settings.out, MODEL)
        outputs.claim("--keep-release", settings.keep_release)
        if settings.from_release is not None:
            with working("Reading", quiet=quiet):
                released = _reopened(settings)
            if isinstance(released, KeptStatistics):
                if settings.binary:
                    raise ValueError("--binary needs a release of labels, not statistics")
                return solve_again(settings, outputs, released)
            return _finish(settings, outputs, released, quiet)
        work = fit_records if settings.record_dp else _fit
        return work(paid, outputs, quiet)


def assumptions_of(settings: FitSettings, privacy: Privacy) -> Assumptions:
    """What predictions assume about the labels."""
    from privasso.forecast import Assumptions

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


def _fit(paid: Paid, outputs: Outputs, quiet: bool) -> FitResult:
    from privasso.cli._fit_screened import fit_screened
    from privasso.fit import ScreenedLabelPlan

    settings = paid.settings
    if settings.in_blocks:
        return _fit_blocks(paid, outputs, quiet)
    with working("Reading", quiet=quiet):
        table, target = table_of(settings), target_of(settings)
        names = features_of(settings, table, target)
        levels = categorical_of(settings, names)
        columns, labels = table.columns_and_labels(names, target, categorical=levels)
        encoding = encoding_of(settings, table, columns, names)
        X = encoding.matrix(columns)
        del columns
        labels = coded(settings, labels)
        if settings.classes is not None:
            labels = settings.classes.coded(labels)
        plan = plan_of(settings, X, encoding)
        if isinstance(plan, ScreenedLabelPlan):
            return fit_screened(paid, outputs, plan, labels, encoding, target, quiet=quiet)
        rehearse(settings, plan, encoding, target)
        if settings.report is not None and plan.options.privacy.public_covariates:
            assumptions_of(settings, plan.options.privacy)  # refused before anything is spent
    kept = None if encoding.plain else encoding
    with working("Releasing", quiet=quiet):
        released = plan.release(
            labels,
            rng=settings.rng(),
            feature_names=encoding.names,
            target=target,
            keep=lambda made, spent: paid.keep(replace(made, encoding=kept), spent),
        )
    labels.fill(0.0)  # no longer needed
    return _kept_and_finished(paid, outputs, plan, replace(released, encoding=kept), quiet)


def _fit_blocks(paid: Paid, outputs: Outputs, quiet: bool) -> FitResult:
    """The same for a table that is read in blocks, which hold the labels."""
    from privasso.cli._fit_blocks import opened_label_blocks, reading
    from privasso.cli._fit_screened import fit_screened
    from privasso.fit import ScreenedLabelPlan

    settings = paid.settings
    with (
        opened_label_blocks(settings) as (blocks, encoding, target),
        reading(blocks, quiet=quiet) as shown,
    ):
        plan = plan_of(settings, shown, encoding)
        if isinstance(plan, ScreenedLabelPlan):
            return fit_screened(paid, outputs, plan, None, encoding, target, quiet=quiet)
        rehearse(settings, plan, encoding, target)
        released = plan.release(
            None,
            rng=settings.rng(),
            feature_names=encoding.names,
            target=target,
            keep=paid.keep,
        )
    return _kept_and_finished(paid, outputs, plan, released, quiet)


def _kept_and_finished(
    paid: Paid, outputs: Outputs, plan: LabelPlan, released: Released, quiet: bool
) -> FitResult:
    """Keep the release where that was asked for, and do the rest."""
    from privasso.artefact import release_text

    where = paid.settings.keep_release
    if where is not None and released.kept is not None:
        outputs.write({"--keep-release": release_text(released.kept)})
        paid.moved(where)
    result = _finish(paid.settings, outputs, released, quiet)
    return written(paid, result, plan.options.ledger)


def _reopened(settings: FitSettings) -> Released | KeptStatistics:
    from privasso.artefact import DocumentError, load_release
    from privasso.fit import KeptStatistics

    assert settings.from_release is not None
    try:
        kept = load_release(settings.from_release)
    except DocumentError as error:
        raise ValueError(f"--from-release {escaped(settings.from_release)}: {error}") from None
    if isinstance(kept, KeptStatistics):
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
    try:
        return kept.open(X, time_limit=settings.time_limit, classes=settings.classes)
    except ValueError as error:
        raise ValueError(f"{escaped(settings.source)}: {error}") from None


def _finish(settings: FitSettings, outputs: Outputs, released: Released, quiet: bool) -> FitResult:
    """Do everything after the release, from it and the covariates alone."""
    with working("Solving", quiet=quiet):
        return _write(settings, outputs, released, released.solve(settings.lam_value() or "auto"))


def _write(
    settings: FitSettings, outputs: Outputs, released: Released, model: ReleasedModel
) -> FitResult:
    from privasso.report import fit_facts

    path = None
    if released.kept is not None and (settings.path_out or settings.report):
        path = released.path(_lams(settings, released, model))
    facts = fit_facts(
        released,
        model,
        command=settings.command(),
        path=path,
        assumptions=assumptions_of(settings, released.privacy)
        if settings.report is not None and released.privacy.public_covariates
        else None,
        given_lam=settings.lam_value(),
        resolve=settings.solve_again_command(),
    )
    return write_files(settings, outputs, facts, path)


def _lams(settings: FitSettings, released: Released, model: ReleasedModel) -> list[float]:
    """The λ of the path: those given, or a range around that of the model."""
    asked = settings.lams()
    if asked is not None:
        return asked
    largest = max(released.post.largest_lam, model.lam)
    return list(np.geomspace(largest, _PATH_END * model.lam, _PATH_POINTS))
