"""The plan of a fit at one λ, of records or of labels, or of noisy statistics of records."""

from __future__ import annotations

from functools import partial
from typing import Any

import scipy.sparse as sp

from privasso._covariates import covariates
from privasso.blocks import RowBlocks
from privasso.fit._options import FitOptions
from privasso.fit._plan import Plan, statement, with_classes
from privasso.fit._rows import prepared_rows
from privasso.planning import (
    RecordProgram,
    RecordTable,
    aimed_lam,
    check_room,
    labels_at_one_lam,
)
from privasso.privacy import LabelDP, RecordDP, Terms
from privasso.problem import Clipped


def plan_records(
    X: Any,
    options: FitOptions,
    privacy: RecordDP,
    *,
    seeded: bool,
    feature_names: tuple[str, ...] | None,
) -> Plan:
    """Determine noise, ridge, λ and statement from public numbers; only the shape of X is used."""
    if isinstance(X, RowBlocks):
        feature_names = X.names
    else:
        X = covariates(X, finite=False)
    m, n = X.shape
    table = RecordTable(privacy, m, n, feature_names, options.fit_intercept, options.loss)
    program = table.screened(options.choice(n))
    if program is None:
        if sp.issparse(X):
            raise ValueError(
                f"{type(privacy).__name__} moves each column to the middle of its bounds, which "
                "fills a sparse matrix; pass X.toarray(), or choose some columns first with screen="
            )
        check_room(n)
        program = table.direct()
    return _planned(X, options, program, seeded=seeded, names=feature_names)


def plan_labels_at_one_lam(X: Any, options: FitOptions, privacy: LabelDP, *, seeded: bool) -> Plan:
    """The same for labels of public covariates and a loss that is not about their mean."""
    rows = prepared_rows(X, options.fit_intercept)
    if rows.sparse:
        raise ValueError("a fit at one λ fills a sparse matrix; pass X.toarray()")
    X = X if isinstance(X, RowBlocks) else covariates(X, finite=False)
    assert isinstance(options.loss, Clipped)
    return _planned(X, options, labels_at_one_lam(privacy, rows, options.loss), seeded=seeded)


def _planned(
    X: Any,
    options: FitOptions,
    asking: RecordProgram,
    *,
    seeded: bool,
    names: tuple[str, ...] | None = None,
) -> Plan:
    intercept, classes = options.fit_intercept, options.classes
    lam = options.fixed_lam
    if lam is None:
        lam = aimed_lam(asking, options.aim, X.shape[0])
    what = "the coefficients and the intercept" if intercept else "the coefficients"
    then = f"{what} at {'every' if asking.again else 'one'} λ"
    terms = Terms(fit_intercept=intercept, seeded=seeded, n_rows=X.shape[0])
    guarantee = statement(options.privacy, partial(asking, lam=lam), terms, (then,))
    return Plan(options, X, asking, with_classes(guarantee, classes), seeded, lam=lam, names=names)
