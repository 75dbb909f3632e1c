"""A fit of labels on public covariates."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from privasso._validation import real_labels
from privasso._version import __version__
from privasso.blocks import RowBlocks
from privasso.fit._options import FitOptions
from privasso.fit._plan import Plan, statement
from privasso.fit._posterior import MOST_COLUMNS
from privasso.fit._released import Released
from privasso.fit._rows import prepared_rows, released_weights
from privasso.fit._start import with_classes
from privasso.noise import Noise
from privasso.operators import Covariates
from privasso.planning import calibrate, check_room, default_kappa, release_mechanism
from privasso.privacy import Guarantee, LabelDP, Terms
from privasso.programs import Calibration, IntervalProgram, IntervalSums, LabelFrame, Release
from privasso.queries import Ask

#: What a statement covers besides the answers to the questions.
COMPUTED = "everything computed from these and the covariates, such as coefficients at any lambda"


@dataclass(frozen=True, eq=False)
class LabelPlan(Plan):
    """Everything that is decided about a fit before a label is read.

    Attributes
    ----------
    options : FitOptions
        What was asked for.
    rows : Covariates
        The covariates.
    noise : NoiseDesign or Shaped
        The noise at the level that is used.
    calibration : Calibration
        The law of the noise on these covariates.
    guarantee : Guarantee
        What a fit will state.
    asking : callable
        What is asked about the labels.
    source : RowBlocks or None
        The table with its labels that the covariates were taken from, if it was one.
    """

    options: FitOptions
    rows: Covariates = field(repr=False)
    noise: Noise | None
    calibration: Calibration
    guarantee: Guarantee = field(repr=False)
    seeded: bool
    asking: Callable[[Ask], Release] = field(repr=False)
    source: RowBlocks | None = field(default=None, repr=False)

    @property
    def shape(self) -> tuple[int, int]:
        """Rows and columns."""
        return self.rows.shape

    @property
    def solves_again(self) -> bool:
        """Whether the guarantee covers the release."""
        return self.options.privacy.covers_release

    def table(self, y: ArrayLike | None) -> RowBlocks:
        """The covariates with labels."""
        if self.calibration.objective is not None:
            check_room(int(self.rows.live.sum()))
        if y is None and self.source is not None:
            return self.rows.labelled(self.source)
        finite = not self.options.privacy.formal
        return self.rows.labelled(real_labels(y, self.shape[0], finite=finite))

    def program(self, ask: Ask) -> Release:
        """Ask about the labels."""
        return self.asking(ask)

    def interval_sums(self, ask: Ask, found: Release, mu: float) -> IntervalSums:
        """At the best guess of the coefficients."""
        return self.interval_program(mu)(ask, *self.published(found).start)

    def interval_program(self, mu: float) -> IntervalProgram:
        """What is asked about the labels for intervals."""
        privacy, n = self.options.privacy, int(self.rows.live.sum())
        assert isinstance(privacy, LabelDP)
        if self.rows.weights is not None:
            raise ValueError("sample_weight is not supported with intervals; leave one of them out")
        if not 0 < n <= MOST_COLUMNS:
            raise ValueError(
                f"intervals are for 1 to {MOST_COLUMNS} columns that vary; choose some of them "
                "first, by hand or with screen"
            )
        objective, targets = self.calibration.objective, self.options.targets
        kappa = default_kappa(privacy.epsilon) if objective is None else objective.kappa
        return IntervalProgram(self.frame, mu, self.neighbours, targets, privacy.y_bounds, kappa)

    @cached_property
    def frame(self) -> LabelFrame:
        """The coordinates of intervals."""
        return LabelFrame(self.rows)

    def rehearsal(
        self,
        number: float,
        *,
        feature_names: tuple[str, ...] | None = None,
        target: str | None = None,
    ) -> Released:
        """Return what `release` will, with one number for all that labels and noise decide.

        It reads no label and spends nothing: it shows whether what comes of a fit can be written.
        """
        rows, calibration = self.rows, self.calibration
        weights = calibration.weights
        made = Release(
            b=np.full(rows.shape[1], number),
            covariance=calibration.covariance.embedded(rows.live),
            n_rows=rows.shape[0],
            centre=number,
            label_sum=number if rows.centred else None,
            sigma_sum=calibration.sigma_sum if rows.centred else None,
            mu=calibration.mu,
            weight_sum=None if weights is None else float(weights.sum()),
            level=number,
        )
        return self.published(made, feature_names, target)

    def published(
        self,
        found: Release,
        feature_names: tuple[str, ...] | None = None,
        target: str | None = None,
    ) -> Released:
        """The release with what is needed to solve from it."""
        options, privacy = self.options, self.options.privacy
        return Released(
            release=found,
            rows=self.rows,
            weights=released_weights(found, self.rows, privacy),
            denoise=options.denoise,
            privacy=options.privacy,
            guarantee=self.guarantee,
            noise=self.noise,
            feature_names=feature_names,
            target=target,
            software=__version__,
            lam=options.lam,
            method=options.method,
            tol=options.tol,
            time_limit=options.time_limit,
            classes=options.classes,
        )


def plan_fit(
    X: Any,
    options: FitOptions,
    *,
    sample_weight: ArrayLike | None = None,
    seeded: bool = False,
) -> LabelPlan:
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
    """
    privacy = options.privacy
    mechanism = release_mechanism(privacy)
    if options.classes is not None and sample_weight is not None:
        raise ValueError("logistic regression takes no sample_weight; leave it out")
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
    source, program = X if isinstance(X, RowBlocks) else None, mechanism.program(rows, calibration)
    guarantee = with_classes(statement(privacy, program, terms, (COMPUTED,)), options.classes)
    return LabelPlan(options, rows, noise, calibration, guarantee, seeded, program, source)
