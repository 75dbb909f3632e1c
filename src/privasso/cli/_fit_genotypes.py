"""`privasso fit study.bed --record-dp --screen`: genotypes stay packed while columns are chosen."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

import numpy as np

from privasso._text import escaped
from privasso.cli._fit_read import features_of, table_of, target_of
from privasso.cli._fit_rehearsal import rehearse_model
from privasso.cli._progress import working

if TYPE_CHECKING:
    from privasso.cli._fit_rescue import Paid
    from privasso.cli._fit_settings import FitSettings
    from privasso.cli._fit_write import FitResult
    from privasso.cli._outputs import Outputs
    from privasso.encoding import Dictionary
    from privasso.fit import Published


def fit_genotypes(paid: Paid, outputs: Outputs, quiet: bool) -> FitResult:
    """Choose variants, fit these, and write a model that has no others."""
    from privasso.cli._fit_records import finished, plan_records
    from privasso.fit import Published
    from privasso.operators import Genotypes
    from privasso.privacy import ScreenedObjective
    from privasso.tables import BedTable

    settings = paid.settings
    with working("Reading", quiet=quiet):
        table, target = table_of(settings), target_of(settings)
        assert isinstance(table, BedTable)
        names = features_of(settings, table, target)
        labels = table.labels(target)
        fill = 1.0 if settings.dictionary is None else _fills(_entries(settings, names))
        F = Genotypes(table.packed(names), table.n_rows, scaling="none", missing=fill)
        plan = plan_records(settings, F, tuple(names))
        assert isinstance(plan.objective, ScreenedObjective)
        # Whichever are chosen, their names are no longer than these.
        count = plan.objective.settings.columns
        longest = sorted(names, key=len)[-count:]
        rehearse_model(settings, plan.guarantee, None, _entries(settings, longest).encoding)
    with working("Releasing", quiet=quiet):
        released = plan.release(
            labels,
            rng=settings.rng(),
            feature_names=tuple(names),
            target=target,
            keep=lambda made, spent: paid.keep(_chosen(settings, made), spent),
        )
    del labels  # no longer needed
    assert isinstance(released, Published)
    few = _chosen(settings, released)
    about = _entries(settings, list(few.model.feature_names or ()))
    return finished(paid, outputs, plan, few, about, target, None)


def _entries(settings: FitSettings, names: list[str]) -> Dictionary:
    """What is public about variants: 0 to 2 copies, one where missing, or what a file says."""
    from privasso.encoding import Dictionary, NumberEntry

    if settings.dictionary is None:
        return Dictionary(tuple(NumberEntry(name, 0.0, 2.0) for name in names))
    try:
        return settings.dictionary.of(names)
    except ValueError as error:
        raise ValueError(f"--bounds {escaped(settings.bounds)}: {error}") from None


def _fills(about: Dictionary) -> list[float]:
    """What stands for a missing genotype of each variant."""
    from privasso.encoding import NumberEntry

    for one in about.entries:
        if not isinstance(one, NumberEntry):
            raise ValueError(f"the variant {one.name!r} has levels in --bounds; give low and high")
    return [one.filled for one in about.entries if isinstance(one, NumberEntry)]


def _chosen(settings: FitSettings, released: Published) -> Published:
    """The model of the chosen columns alone; all others have the coefficient zero."""
    model = released.model
    assert model.screened is not None
    assert model.feature_names is not None
    at = model.screened
    names = [model.feature_names[k] for k in at]
    few = replace(
        model,
        coef=model.coef[at],
        feature_names=tuple(names),
        screened=np.arange(at.size),
        encoding=_entries(settings, names).encoding,
    )
    return replace(released, model=few)
