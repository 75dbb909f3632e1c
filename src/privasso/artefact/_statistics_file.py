"""Kept statistics of records as a file, field by field."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np

from privasso._documents import DocumentError, Fields, check_moderate
from privasso._validation import ZERO_ONE
from privasso.accounting import GaussianLoss
from privasso.artefact._header import header, opened, read_intervals, written_intervals
from privasso.fit import KeptStatistics
from privasso.planning import RecordTable
from privasso.privacy import Guarantee, RecordDP
from privasso.programs import RecordStatistics, SecondMoments

FORMAT = "privasso-kept-statistics"


def statistics_document(kept: KeptStatistics) -> dict[str, object]:
    """Plain values for JSON; of the symmetric matrix the entries up to the diagonal."""
    table, moments = kept.statistics.table, kept.statistics.moments
    scaling = None
    if table.scaling is not None:
        scaling = {"origin": table.scaling[0].tolist(), "scale": table.scaling[1].tolist()}
    return {
        **header(FORMAT, kept, kept.n_features),
        "target": kept.target,
        "fit_intercept": table.fit_intercept,
        "low": table.bounds[:, 0].tolist(),
        "high": table.bounds[:, 1].tolist(),
        **({} if table.indicators is None else {"indicators": _places(table.indicators)}),
        "scaling": scaling,
        "lam": kept.lam,
        "sigma": moments.sigma,
        "matrix": moments.matrix[np.tril_indices(len(moments.matrix))].tolist(),
        **written_intervals(kept.intervals),
        "guarantee": kept.guarantee.to_dict(),
    }


def statistics_from(document: object) -> KeptStatistics:
    """Check every field and build the statistics; the noise must be that of the statement."""
    fields, n, known = opened(document, "kept statistics", FORMAT)
    guarantee = Guarantee.from_dict(fields.take("guarantee"))
    sums = all(isinstance(loss, GaussianLoss) for loss in guarantee.losses)
    if guarantee.kind != "record-dp" or not sums or guarantee.label_bounds is None:
        raise DocumentError("statistics need a guarantee of records for sums with Gaussian noise")
    intercept, low, high = (
        fields.flag("fit_intercept"),
        *(fields.numbers(side, n) for side in ("low", "high")),
    )
    d = n + intercept + 1
    entries = fields.numbers("matrix", d * (d + 1) // 2)  # before anything of that size is made
    bounds = np.stack([low, high], axis=1).tolist()
    for k in _indicators(fields, bounds):
        bounds[k] = ZERO_ONE
    scaling = None
    if not fields.is_null("scaling"):
        inner = fields.inner("scaling")
        scaling = inner.numbers("origin", n), inner.numbers("scale", n, least=0.0)
        inner.end()
    privacy = RecordDP(
        guarantee["epsilon"],
        guarantee["delta"],
        bounds=bounds,
        y_bounds=guarantee.label_bounds,
        scales=None if scaling is None else "private",
        mechanism="statistics",
        neighbours="emptied" if guarantee.neighbours is None else guarantee.neighbours.relation,
    )
    n_rows = int(guarantee["n_rows"])
    mechanism = RecordTable(privacy, n_rows, n, None, intercept).statistics()
    assert mechanism is not None
    matrix = np.zeros((d, d))
    below = np.tril_indices(d)
    matrix[below] = matrix.T[below] = entries
    table = replace(mechanism.table, scaling=scaling, estimate=None)
    moments = SecondMoments(matrix, fields.number("sigma", above=0.0), n_rows)
    kept = KeptStatistics(
        RecordStatistics(moments, table, mechanism.weight),
        privacy,
        guarantee,
        fields.number("lam", above=0.0),
        target=None if fields.is_null("target") else fields.text("target"),
        intervals=read_intervals(fields, n),
        **known,
    )
    fields.end()
    check_moderate(matrix=matrix, sigma=moments.sigma)
    return kept


def _places(indicators: np.ndarray) -> list[int]:
    """Which columns are said to be of zeros and ones."""
    return np.flatnonzero(indicators).tolist()


def _indicators(fields: Fields, bounds: list[Any]) -> list[int]:
    """The same from a file, in which such columns have the bounds 0 and 1."""
    if "indicators" not in fields.names():
        return []
    places = fields.numbers("indicators", most=len(bounds)).tolist()
    known = {float(k) for k, pair in enumerate(bounds) if pair == [0.0, 1.0]}
    if not set(places) <= known or len(set(places)) < len(places):
        raise DocumentError("indicators must be the numbers of columns with the bounds 0 and 1")
    return [int(k) for k in places]
