"""A kept release as a file, field by field."""

from __future__ import annotations

import os
from dataclasses import replace
from typing import cast

import numpy as np

from privasso._documents import DocumentError, Fields, check_moderate, read_json
from privasso._files import write_whole
from privasso._validation import ZERO_ONE
from privasso.accounting import GaussianLoss
from privasso.artefact._header import (
    MAX_BYTES,
    bounded_text,
    header,
    opened,
    written_intervals,
)
from privasso.fit import KeptRelease, KeptStatistics
from privasso.noise import (
    covariance_from_dict,
    covariance_to_dict,
    noise_from_dict,
    noise_to_dict,
)
from privasso.planning import RecordTable
from privasso.privacy import Guarantee, LabelDP, Privacy, RecordDP
from privasso.programs import RecordStatistics, SecondMoments

FORMAT = "privasso-kept-release"
#: Settings of objective perturbation.
_SETTINGS = ("kappa", "t", "level")
#: Most rows that a release may be made from.
_MAX_ROWS = 10**12


def save_release(kept: KeptRelease | KeptStatistics, path: str | os.PathLike[str]) -> None:
    """Write a kept release, from which models at any λ can be computed without the labels.

    It is the ``release_`` or the ``statistics_`` of a fitted `PrivateLasso`. The file appears whole
    or not at all. The guarantee covers its content.

    Examples
    --------
    >>> import tempfile, numpy as np, privasso as pv
    >>> privacy = pv.LabelDP(epsilon=1.0, delta=1e-6, y_bounds=(0, 1))
    >>> X = np.eye(9)
    >>> est = pv.PrivateLasso(lam=100.0, privacy=privacy).fit(X, np.ones(9))
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     pv.save_release(est.release_, f"{folder}/release.json")
    ...     kept = pv.load_release(f"{folder}/release.json")
    >>> bool(np.all(kept.open(X).solve(100.0).coef == est.coef_))
    True
    """
    write_whole(path, release_text(kept))


def release_text(kept: KeptRelease | KeptStatistics, more: int = 0) -> str:
    """Return the text of the file, checked by the rules of `load_release`.

    One whose numbers take `more` bytes would be read, too.
    """
    document = statistics_document(kept) if isinstance(kept, KeptStatistics) else _document(kept)
    _checked(document)
    return bounded_text(document, more)


def _document(kept: KeptRelease) -> dict[str, object]:
    """Plain values for JSON."""
    return {
        **header(FORMAT, kept, kept.b.size),
        "target": kept.target,
        "n_rows": kept.n_rows,
        "column_squares": kept.column_squares.tolist(),
        "b": kept.b.tolist(),
        "covariance": covariance_to_dict(kept.covariance),
        "centre": kept.centre,
        "label_sum": kept.label_sum,
        "sigma_sum": kept.sigma_sum,
        "mu": kept.mu,
        "weight_sum": kept.weight_sum,
        "unit": kept.unit,
        **({"level": kept.level} if kept.level != 0.0 else {}),
        "noise": noise_to_dict(kept.noise),
        "mechanism": _mechanism(kept.privacy),
        **written_intervals(kept.intervals),
        "guarantee": kept.guarantee.to_dict(),
    }


def _mechanism(privacy: Privacy) -> dict[str, object]:
    """What the guarantee does not say of the privacy under which the release was made."""
    return {
        "name": cast(LabelDP, privacy).mechanism,
        **{one: getattr(privacy, one) for one in _SETTINGS},
    }


def _privacy(fields: Fields, guarantee: Guarantee) -> LabelDP:
    """The privacy under which the release was made."""
    if guarantee.kind != "label-dp" or guarantee.label_bounds is None:
        raise DocumentError(f"a release of kind {guarantee.kind!r} may not be kept")
    inner = fields.inner("mechanism")
    name = inner.text("name")
    kappa, t = (None if inner.is_null(one) else inner.number(one) for one in ("kappa", "t"))
    level = None if inner.is_null("level") else inner.flag("level")
    inner.end()
    perturbed = None not in (kappa, t, level)
    if name not in ("objective", "release") or (name == "objective") != perturbed:
        raise DocumentError("the mechanism must be release, or objective with kappa, t and level")
    budget = guarantee["epsilon"], guarantee["delta"], guarantee.label_bounds
    assert guarantee.neighbours is not None
    return LabelDP(*budget, name, kappa, t, level, guarantee.neighbours.relation)


def load_release(path: str | os.PathLike[str]) -> KeptRelease | KeptStatistics:
    """Read a kept release, or kept statistics of records; any other file raises `DocumentError`.

    Examples
    --------
    >>> import os, tempfile
    >>> import numpy as np, privasso as pv
    >>> privacy = pv.LabelDP(1.0, 1e-6, y_bounds=(0.0, 9.0), mechanism="release")
    >>> est = pv.PrivateLasso(privacy=privacy).fit(np.eye(9), np.arange(9.0))
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     file = os.path.join(folder, "release.json")
    ...     pv.save_release(est.release_, file)
    ...     kept = pv.load_release(file)
    >>> type(kept).__name__, kept.guarantee["epsilon"]
    ('KeptRelease', 1.0)
    """
    return _checked(read_json(path, most_bytes=MAX_BYTES))


def _checked(document: object) -> KeptRelease | KeptStatistics:
    """Build the release; also refuse a statement that contradicts the numbers."""
    try:
        if isinstance(document, dict) and document.get("format") == STATISTICS:
            return statistics_from(document)
        return _from_document(document)
    except DocumentError:
        raise
    except ValueError as error:
        raise DocumentError(str(error)) from None


def _from_document(document: object) -> KeptRelease:
    fields, n, known = opened(document, "a kept release", FORMAT)
    without_sum = fields.is_null("label_sum")
    if without_sum != fields.is_null("sigma_sum"):
        raise DocumentError("label_sum and sigma_sum go together: both numbers or both null")
    guarantee = Guarantee.from_dict(fields.take("guarantee"))
    kept = KeptRelease(
        b=fields.numbers("b", n),
        covariance=covariance_from_dict(fields.take("covariance"), n),
        n_rows=fields.whole("n_rows", 1, _MAX_ROWS),
        centre=fields.number("centre"),
        label_sum=None if without_sum else fields.number("label_sum"),
        sigma_sum=None if without_sum else fields.number("sigma_sum", above=0.0),
        mu=None if fields.is_null("mu") else fields.number("mu", least=0.0),
        weight_sum=fields.number("weight_sum", above=0.0),
        unit=fields.number("unit", above=0.0),
        level=fields.number("level") if "level" in fields.names() else 0.0,
        column_squares=fields.numbers("column_squares", n, least=0.0),
        privacy=_privacy(fields, guarantee),
        guarantee=guarantee,
        noise=noise_from_dict(fields.take("noise")),
        target=None if fields.is_null("target") else fields.text("target"),
        **known,
    )
    fields.end()
    check_moderate(b=kept.b, label_sum=kept.label_sum, unit=kept.unit)
    if kept.unit < 1e-150:
        raise DocumentError("unit is below 1e-150, which that of no release is")
    return kept


STATISTICS = "privasso-kept-statistics"


def statistics_document(kept: KeptStatistics) -> dict[str, object]:
    """Plain values for JSON; of the symmetric matrix the entries up to the diagonal."""
    table, moments = kept.statistics.table, kept.statistics.moments
    scaling = None
    if table.scaling is not None:
        scaling = {"origin": table.scaling[0].tolist(), "scale": table.scaling[1].tolist()}
    return {
        **header(STATISTICS, kept, kept.n_features),
        "target": kept.target,
        "fit_intercept": table.fit_intercept,
        "low": table.bounds[:, 0].tolist(),
        "high": table.bounds[:, 1].tolist(),
        **(
            {}
            if table.indicators is None
            else {"indicators": np.flatnonzero(table.indicators).tolist()}
        ),
        "scaling": scaling,
        "lam": kept.lam,
        "sigma": moments.sigma,
        "matrix": moments.matrix[np.tril_indices(len(moments.matrix))].tolist(),
        **written_intervals(kept.intervals),
        "guarantee": kept.guarantee.to_dict(),
    }


def statistics_from(document: object) -> KeptStatistics:
    """Check every field and build the statistics; the noise must be that of the statement."""
    fields, n, known = opened(document, "kept statistics", STATISTICS)
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
        statistics=RecordStatistics(moments, table, mechanism.weight),
        privacy=privacy,
        guarantee=guarantee,
        lam=fields.number("lam", above=0.0),
        target=None if fields.is_null("target") else fields.text("target"),
        **known,
    )
    fields.end()
    check_moderate(matrix=matrix, sigma=moments.sigma)
    return kept


def _indicators(fields: Fields, bounds: list[list[float]]) -> list[int]:
    """Which columns are said to be of zeros and ones: their bounds are 0 and 1."""
    if "indicators" not in fields.names():
        return []
    places = fields.numbers("indicators", most=len(bounds)).tolist()
    known = {float(k) for k, pair in enumerate(bounds) if pair == [0.0, 1.0]}
    if not set(places) <= known or len(set(places)) < len(places):
        raise DocumentError("indicators must be the numbers of columns with the bounds 0 and 1")
    return [int(k) for k in places]
