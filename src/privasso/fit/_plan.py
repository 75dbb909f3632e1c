"""Everything that is decided before the labels are read."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from privasso._text import is_unicode
from privasso._version import __version__
from privasso.fit._options import FitOptions
from privasso.fit._released import Released
from privasso.fit._rows import prepared_rows, released_weights
from privasso.fit._uses import note_use
from privasso.noise import Noise
from privasso.operators import Covariates
from privasso.privacy import Calibration, Guarantee, Release, Terms, calibrate, release_labels


@dataclass(frozen=True, eq=False)
class Plan:
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

    Examples
    --------
    >>> import numpy as np, privasso as pv
    >>> from privasso.fit import FitOptions, plan_fit
    >>> privacy = pv.LabelDP(epsilon=1.0, delta=1e-6, y_bounds=(0, 1))
    >>> plan = plan_fit(np.eye(9), FitOptions(privacy, lam=100.0))
    >>> plan.guarantee["epsilon"]
    1.0
    >>> plan.release(np.ones(9)).solve().coef.tolist()
    [0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0]
    """

    options: FitOptions
    rows: Covariates = field(repr=False)
    noise: Noise
    calibration: Calibration
    guarantee: Guarantee = field(repr=False)
    seeded: bool

    def release(
        self,
        y: ArrayLike,
        *,
        rng: np.random.Generator | None = None,
        feature_names: tuple[str, ...] | None = None,
        target: str | None = None,
    ) -> Released:
        """Read the labels, draw the noise once, and return the release.

        The ledger, if there is one, is charged before the noise is drawn. The budget is spent from
        here on, and no later step sees the labels.
        """
        if (rng is not None) != self.seeded:
            raise ValueError(f"pass rng exactly if the plan is seeded; here seeded={self.seeded}")
        _check_names(feature_names, target)
        options, rows = self.options, self.rows

        def account(labels: np.ndarray) -> None:
            if options.ledger is None:
                note_use(labels, self.guarantee)
            else:
                options.ledger.charge(self.guarantee, self._what(target))

        made = release_labels(
            rows,
            y,
            options.privacy,
            self.calibration,
            fit_intercept=rows.centred,
            rng=rng,
            before_noise=account,
        )
        return self._released(made, feature_names, target)

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
        )
        return self._released(made, feature_names, target)

    def _released(
        self, made: Release, feature_names: tuple[str, ...] | None, target: str | None
    ) -> Released:
        options = self.options
        return Released(
            release=made,
            rows=self.rows,
            weights=released_weights(made, self.rows, options.privacy),
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
        )

    def _what(self, target: str | None) -> str:
        """Say what is fitted, for a ledger."""
        of = "" if target is None else f" of {target!r}"
        m, n = self.rows.shape
        seed = ", fixed seed" if self.seeded else ""
        return f"fit{of} on {m} rows and {n} columns{seed}, privasso {__version__}"


def _check_names(feature_names: tuple[str, ...] | None, target: str | None) -> None:
    """Refuse names that no file could hold, before the budget is spent on what they belong to."""
    names = feature_names or ()
    for name in (*names, *(() if target is None else (target,))):
        if not is_unicode(name):
            raise ValueError(
                f"the name {name!r} holds half a character (a lone surrogate) and could not be "
                "saved; rename the column"
            )
    if len(set(names)) != len(names):
        twice = next(name for k, name in enumerate(names) if name in names[:k])
        raise ValueError(f"two columns have the name {twice!r}; rename one of them")


def plan_fit(
    X: Any,
    options: FitOptions,
    *,
    sample_weight: ArrayLike | None = None,
    seeded: bool = False,
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
    """
    rows = prepared_rows(X, bool(options.fit_intercept), sample_weight)
    design = options.design(rows)
    calibration = calibrate(rows, options.privacy, design, scales=options.scales)
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
    return Plan(options, rows, noise, calibration, options.privacy.guarantee(terms), seeded)
