"""The plan of a fit of labels on public covariates, and of noise without a guarantee."""

from __future__ import annotations

from dataclasses import replace
from functools import partial

from numpy.typing import ArrayLike

from privasso._types import Matrix
from privasso.blocks import RowBlocks
from privasso.fit._options import FitOptions
from privasso.fit._plan import Plan, statement, with_classes
from privasso.fit._release_law import MOST_COLUMNS
from privasso.fit._rows import prepared_rows
from privasso.operators import Covariates
from privasso.planning import calibrate, release_mechanism
from privasso.privacy import Terms

#: What a statement covers besides the answers to the questions.
COMPUTED = "everything computed from these and the covariates, such as coefficients at any lambda"


def plan_fit(
    X: Matrix,
    options: FitOptions,
    *,
    sample_weight: ArrayLike | None = None,
    seeded: bool = False,
    rows: Covariates | None = None,
) -> Plan:
    """Determine the noise, its level and the privacy statement from the covariates.

    Parameters
    ----------
    X : array_like or sparse matrix, shape (M, N)
        Covariates.
    options : FitOptions
        What to protect, and how to fit.
    sample_weight : array_like of shape (M,), optional
        Public weights of the rows; only their ratios matter.
    seeded : bool
        Whether the noise will come from a fixed random state, which the statement must say.
    rows : Covariates, optional
        The same, prepared for the fit.
    """
    privacy = options.privacy
    mechanism = release_mechanism(privacy)
    if options.classes is not None and sample_weight is not None:
        raise ValueError("logistic regression takes no sample_weight; leave it out")
    if rows is None:
        rows = prepared_rows(X, bool(options.fit_intercept), sample_weight)
    if options.classes is not None and int(rows.live.sum()) > MOST_COLUMNS:
        raise ValueError(
            f"logistic regression from a release of labels takes at most {MOST_COLUMNS} columns; "
            "choose some by what is known without the labels"
        )
    design = options.design(rows)
    calibration = calibrate(rows, privacy, design, scales=options.scales)
    privacy = mechanism.settled(calibration)
    options = replace(options, privacy=privacy)
    noise = design.with_sigma(calibration.level)
    terms = Terms(
        fit_intercept=rows.centred,
        seeded=seeded,
        n_rows=rows.shape[0],
        scales=options.scales,
        noise=noise,
        model=options.model,
        lam=options.fixed_lam,
    )
    source, asking = X if isinstance(X, RowBlocks) else None, mechanism.program(rows, calibration)
    guarantee = statement(privacy, partial(asking, lam=0.0), terms, (COMPUTED,))
    return Plan(
        options,
        rows,
        asking,
        with_classes(guarantee, options.classes),
        seeded,
        noise=noise,
        calibration=calibration,
        source=source,
    )
