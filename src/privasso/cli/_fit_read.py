"""What `privasso fit` reads: columns of the data file, and prior scales."""

from __future__ import annotations

import csv
from collections.abc import Collection, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from privasso._text import escaped
from privasso.cli._ledger import opened

if TYPE_CHECKING:
    import numpy as np

    from privasso.cli._fit_settings import FitSettings
    from privasso.encoding import Columns, Encoding
    from privasso.fit import FitOptions, LabelPlan, ScreenedLabelPlan
    from privasso.privacy import Scales
    from privasso.tables import Table


def table_of(settings: FitSettings) -> Table:
    """The data file, with the labels of another one beside genotypes."""
    from privasso.tables import BedTable, open_table

    if settings.labels is None:
        return open_table(settings.source, row_names=settings.row_names)
    return BedTable(settings.source, settings.labels)


def coded(settings: FitSettings, labels: np.ndarray) -> np.ndarray:
    """Labels as they are, or with --binary those of genotypes as 0 and 1 in place of 1 and 2."""
    from privasso.tables import case_control

    return case_control(labels) if settings.genotypes and settings.binary else labels


def target_of(settings: FitSettings) -> str:
    """The column of labels; in an NPZ file it is y, in a .fam file pheno."""
    if settings.target is not None:
        return settings.target
    if settings.source.suffix.lower() == ".npz":
        return "y"
    if settings.genotypes and settings.labels is None:
        return "pheno"
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
            f"{escaped(settings.source)} has the target {target!r} among its columns; leave out "
            "--no-target-column"
        )
    return table.feature_names(
        target,
        features=names_in(settings.features, table.names),
        exclude=names_in(settings.exclude, table.names),
    )


def categorical_of(settings: FitSettings, names: list[str]) -> list[str]:
    """The covariates that --categorical selects."""
    return _some_of("--categorical", settings.categorical, names)


def encoding_of(
    settings: FitSettings, table: Table, columns: Columns, names: list[str]
) -> Encoding:
    """How covariates become columns of the matrix; columns that --features names are kept."""
    from privasso.encoding import learn_encoding

    keep = _some_of("--keep", settings.keep, names)
    try:
        return learn_encoding(
            columns,
            missing=settings.missing_rule(),
            keep=names if settings.features is not None else keep,
        )
    except ValueError:
        table.check_header()  # cells of a record that are taken for names are not shown
        raise


def names_in(given: Sequence[str] | None, known: Collection[str]) -> list[str] | None:
    """Names of columns from the values of an option, each one name or several between commas.

    A name that holds a comma is given alone, or in double quotes.

    Examples
    --------
    >>> names_in(["a, b", "height, cm", 'c,"height, cm"'], {"a", "b", "c", "height, cm"})
    ['a', 'b', 'height, cm', 'c', 'height, cm']
    """
    if given is None:
        return None
    names = []
    for value in given:
        parts = [value] if value in known else next(csv.reader([value], skipinitialspace=True), [])
        names += [part if part in known else part.strip() for part in parts if part.strip()]
    return names


def _some_of(option: str, given: Sequence[str] | None, names: list[str]) -> list[str]:
    found = names_in(given, names) or []
    for name in found:
        if name not in names:
            raise ValueError(f"{option} {name!r} is none of the covariates")
    return found


def options_of(settings: FitSettings, names: Sequence[str]) -> FitOptions:
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
        classes=settings.classes,
        screen=settings.screened(),
    )


def plan_of(settings: FitSettings, X: object, encoding: Encoding) -> LabelPlan | ScreenedLabelPlan:
    """Plan the fit; covariates without any data are refused."""
    from privasso.fit import LabelPlan, ScreenedLabelPlan, encoded_guarantee, plan_for

    names = encoding.names
    plan = plan_for(X, options_of(settings, names), seeded=settings.seed is not None)
    assert isinstance(plan, LabelPlan | ScreenedLabelPlan)
    if isinstance(plan, ScreenedLabelPlan):
        settings.check_screened()
    elif not plan.rows.live.any():
        raise ValueError(
            f"every feature is constant, {names[0]!r} for example, so there is nothing to fit"
        )
    guarantee = encoded_guarantee(plan.guarantee, plan.options.privacy, encoding)
    return plan.stating(guarantee)


def _prior_scales(settings: FitSettings, names: Sequence[str]) -> Scales:
    """What --scales stands for: nothing, a law, or one scale per column from a file."""
    if settings.scales is None or settings.scales == "data":
        return None
    from privasso.cli._parsing import scale_law
    from privasso.cli._scales_file import scales_by_name
    from privasso.scales import LAW_NAMES

    law = settings.scales.partition(":")[0].lower() in LAW_NAMES
    if law or not Path(settings.scales).exists():
        return scale_law(settings.scales)

    return scales_by_name(Path(settings.scales), list(names))
